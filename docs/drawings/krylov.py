"""Landmarks and Krylov: residual against passes over the kernel matrix."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from ikpca import KernelPCA
from ikpca.solvers import KHA

X = load_digits().data / 16
settings = {"kernel": "rbf", "gamma": 1 / 8, "random_state": 0}
models = {
    "Krylov from landmarks": KernelPCA(16, eigen_solver="krylov", **settings),
    "KHA/et from landmarks": KernelPCA(16, eigen_solver="kha/et", max_iter=20, **settings),
    "KHA/et from a random start": KernelPCA(
        16, eigen_solver=KHA("kha/et", init="random"), max_iter=20, **settings
    ),
}
figure, axes = plt.subplots(figsize=(6.8, 3.8), layout="constrained")
for (name, model), color in zip(models.items(), ["#D55E00", "#009E73", "#0072B2"], strict=True):
    model.fit(X)
    residuals = [record.residuals.max() for record in model.history_]
    axes.semilogy(range(1, len(residuals) + 1), residuals, marker=".", color=color, label=name)
axes.set(
    xlabel="Passes over the kernel matrix",
    xticks=range(0, 21, 5),
    ylabel=r"Largest residual  $\|K\mathrm{′}v - \lambda v\|/\lambda_1$",
)
axes.set_title("Digits, 16 components", loc="left", fontsize=10)
axes.legend(frameon=False)
