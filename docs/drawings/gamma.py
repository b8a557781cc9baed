"""Effect of gamma: contours of the first component of a Gaussian kernel, narrow to wide."""

import matplotlib.pyplot as plt
import numpy as np

from ikpca import KernelPCA
from ikpca_papers.data import parabola

X = parabola(300, noise=0.1)
x, y = np.linspace(-1.4, 1.4, 70), np.linspace(-1.6, 0.7, 70)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
figure, panels = plt.subplots(1, 4, figsize=(10, 2.7), layout="constrained", sharey=True)
for axes, (title, gamma) in zip(
    panels,
    {
        "γ = 100: too narrow": 100.0,
        "γ = 5": 5.0,
        "γ = 0.5": 0.5,
        "γ = 0.005: nearly linear": 0.005,
    }.items(),
    strict=True,
):
    model = KernelPCA(1, kernel="rbf", gamma=gamma).fit(X)
    axes.plot(*X.T, ".", color="0.75", markersize=2)
    axes.contour(x, y, model.transform(grid)[:, 0].reshape(70, 70), levels=9, cmap="viridis")
    axes.set_title(title, fontsize=9, loc="left")
    axes.set(xticks=[], yticks=[])
