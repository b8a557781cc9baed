"""
Tracking a drifting distribution
================================

A parabola rotates while its points arrive one by one (Kim et al. 2003, appendix A). A model without
forgetting averages over all directions. A model with forgetting follows the rotation.

With ``forgetting=0.99``, the weight of a row decreases by the factor 0.99² with every further row,
which gives an effective window of 50 rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from ikpca import OnlineKernelPCA
from ikpca_papers.data import drifting_parabola

X, angles = drifting_parabola(2000, noise=0.1)
settings = {"kernel": "rbf", "gamma": 0.5, "random_state": 0}
models = {
    "without forgetting": OnlineKernelPCA(2, **settings),
    "with forgetting": OnlineKernelPCA(2, forgetting=0.99, **settings),
}
novelties = {name: [] for name in models}
for start in range(0, len(X), 50):
    for name, model in models.items():
        model.partial_fit(X[start : start + 50])
        novelties[name].append(model.novelty_.mean())

# %%
# ``novelty_`` is the reconstruction error of each row before the model learned from it.

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, values in novelties.items():
    axes.plot(np.arange(1, len(values)) * 50, values[1:], label=name)
axes.set(xlabel="Rows seen", ylabel="Mean novelty of 50 rows", ylim=(0, None))
axes.legend(frameon=False)

# %%
# The last 300 points, and the first component of each model as contour lines.

x = np.linspace(-1.8, 1.8, 80)
grid = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
figure, panels = plt.subplots(1, 2, figsize=(7.5, 3.6), layout="constrained")
for axes, (name, model) in zip(panels, models.items(), strict=True):
    axes.plot(*X[-300:].T, ".", color="0.7", markersize=4)
    axes.contour(x, x, model.transform(grid)[:, 0].reshape(80, 80), levels=10, cmap="viridis")
    axes.set_title(name, fontsize=10)
