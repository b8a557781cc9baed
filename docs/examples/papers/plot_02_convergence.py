"""
Convergence of the Hebbian solvers
==================================

Günter, Schraudolph and Vishwanathan (2006) use a separate gain for every component: KHA/et divides
it by the current estimate of the eigenvalue, and KHA-SMD also adapts it to the data. This example
compares four solvers on handwritten digits, with the papers' random start and gains tuned over
{1, 2, 5}·10ᵇ as in the papers, and KHA/et with default settings, which starts from landmarks.

The gains were tuned on the same rows and for the same number of passes. They may be worse for other
data. In this example, KHA-SMD gives no improvement over KHA/et.

The excess error is :math:`E/E_{min} - 1`, where :math:`E` is the error of the reconstruction of the
kernel matrix, and :math:`E_{min}` that of the exact components.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ikpca import KernelPCA
from ikpca.plotting import convergence
from ikpca.solvers import KHA

X = load_digits().data[:800] / 16
settings = {"n_components": 8, "kernel": "rbf", "gamma": 1 / 8, "max_iter": 30, "random_state": 0}
solvers = {
    "KHA": KHA("kha", gain=0.02, init="random"),
    "KHA/t": KHA("kha/t", gain=0.2, clock="pass", init="random"),
    "KHA/et": KHA("kha/et", gain=0.05, clock="pass", init="random"),
    "KHA-SMD": KHA("kha-smd", gain=0.05, clock="pass", init="random"),
    "KHA/et, default": "kha/et",
}
models = {
    name: KernelPCA(eigen_solver=solver, **settings).fit(X) for name, solver in solvers.items()
}

axes = convergence(models, "excess_error")
axes.set_title("Digits, Gaussian kernel, 8 components", loc="left")

# %%
# ``history_`` has a record of every pass.

for name, model in models.items():
    last = model.history_[-1]
    print(
        f"{name:20s} residual {last.residuals.max():.1e}, "
        f"excess error about {last.excess_error:.1e}"
    )

# %%
# Residuals show the convergence of each component. They are relative to the first eigenvalue, so
# that components of small variance, drawn in light colors, have small residuals.

fitted = models["KHA/et, default"]
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
passes = [record.number for record in fitted.history_]
residuals = np.array([record.residuals for record in fitted.history_])
for number, curve in enumerate(residuals.T, start=1):
    axes.semilogy(passes, curve, color=plt.cm.viridis((number - 1) / 8), label=str(number))
axes.set(xlabel="Passes over the data", ylabel=r"$\|K\mathrm{′}v - \lambda v\| / \lambda_1$")
axes.legend(title="Component", frameon=False, loc="upper left", bbox_to_anchor=(1, 1), fontsize=8)
