"""
How fast the Hebbian family converges
=====================================

Günter, Schraudolph and Vishwanathan (2006) gave the kernel Hebbian algorithm a gain for every
component: KHA/et divides it by the eigenvalue as it is known so far, KHA-SMD lets it learn. Here
are all four on handwritten digits, from the papers' random start with gains tuned over {1, 2,
5}·10ᵇ as the papers did; and KHA/et as it comes, with nothing set, which starts from landmarks.

The gains were tuned on the very rows and for the very number of passes that the picture shows, so
that the first four curves are the best that these rows allow; nothing says that the same gains are
good for other rows. Here KHA-SMD adds nothing to a KHA/et that is tuned.

The measure is the excess error :math:`E/E_{min} - 1`: how much worse the kernel matrix is
reconstructed than by the best components of that number.
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
    "KHA/et, nothing set": "kha/et",
}
models = {
    name: KernelPCA(eigen_solver=solver, **settings).fit(X) for name, solver in solvers.items()
}

axes = convergence(models, "excess_error")
axes.set_title("Digits, Gaussian kernel, 8 components", loc="left")

# %%
# Every fit remembers its passes in ``history_``, and how it ended in ``outcome_``.

for name, model in models.items():
    last = model.history_[-1]
    print(
        f"{name:20s} residual {last.residuals.max():.1e}, "
        f"excess error about {last.excess_error:.1e}"
    )

# %%
# Convergence can also be shown component by component: the residual says how far each is from
# being an eigenvector. It is measured against the first eigenvalue: components of little variance,
# drawn light, have little to be wrong by.

fitted = models["KHA/et, nothing set"]
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
passes = [record.number for record in fitted.history_]
residuals = np.array([record.residuals for record in fitted.history_])
for number, curve in enumerate(residuals.T, start=1):
    axes.semilogy(passes, curve, color=plt.cm.viridis((number - 1) / 8), label=str(number))
axes.set(xlabel="Passes over the data", ylabel=r"$\|K\mathrm{′}v - \lambda v\| / \lambda_1$")
axes.legend(title="Component", frameon=False, loc="upper left", bbox_to_anchor=(1, 1), fontsize=8)
