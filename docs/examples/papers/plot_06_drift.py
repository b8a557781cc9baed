"""
Tracking what drifts
====================

A parabola turns while its points arrive, one by one, and never come back (Kim et al. 2003,
appendix A). A model that remembers all of the past ends up with a mean of all directions. One that
forgets follows.

With ``forgetting=0.99`` a row weighs f² of what it weighed one row earlier: some fifty rows are
remembered.
"""

import matplotlib.pyplot as plt
import numpy as np

from ikpca import OnlineKernelPCA
from ikpca_papers.data import drifting_parabola

X, angles = drifting_parabola(2000, noise=0.1)
settings = {"kernel": "rbf", "gamma": 0.5, "random_state": 0}
models = {
    "remembers all": OnlineKernelPCA(2, **settings),
    "forgets": OnlineKernelPCA(2, forgetting=0.99, **settings),
}
left_over = {name: [] for name in models}
for start in range(0, len(X), 50):
    for name, model in models.items():
        model.partial_fit(X[start : start + 50])
        left_over[name].append(model.novelty_.mean())

# %%
# ``novelty_`` is what the components left of each row before they learned from it.

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, values in left_over.items():
    axes.plot(np.arange(1, len(values)) * 50, values[1:], label=name)
axes.set(xlabel="Rows seen", ylabel="Mean novelty of 50 rows", ylim=(0, None))
axes.legend(frameon=False)

# %%
# The last 300 points, and the first component of each model as contour lines: one follows the
# present, one the past.

x = np.linspace(-1.8, 1.8, 80)
grid = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
figure, panels = plt.subplots(1, 2, figsize=(7.5, 3.6), layout="constrained")
for axes, (name, model) in zip(panels, models.items(), strict=True):
    axes.plot(*X[-300:].T, ".", color="0.7", markersize=4)
    axes.contour(x, x, model.transform(grid)[:, 0].reshape(80, 80), levels=10, cmap="viridis")
    axes.set_title(name, fontsize=10)
