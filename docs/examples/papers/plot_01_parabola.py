"""
Contours of a parabola
======================

Kim, Franz and Schölkopf (2003) begin with points along a parabola. With the polynomial kernel
:math:`(x \\cdot y)^2` the first components of kernel PCA are curves, where those of linear PCA
could only be straight lines. The kernel Hebbian algorithm finds the same components as the
eigendecomposition without ever storing the kernel matrix: this is figure 1 of the paper.
"""

import matplotlib.pyplot as plt
import numpy as np

from ikpca import KernelPCA
from ikpca_papers.data import parabola

X = parabola(300)
settings = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 0.0, "random_state": 0}
exact = KernelPCA(3, eigen_solver="dense", **settings).fit(X)
hebbian = KernelPCA(3, eigen_solver="kha", max_iter=100, **settings).fit(X)

# %%
# A component is a function on the plane: where it is constant, all points have the same projection.

x, y = np.linspace(-1.3, 1.3, 80), np.linspace(-1.9, 0.9, 80)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)

figure, panels = plt.subplots(2, 3, figsize=(8, 5), sharex=True, sharey=True, layout="constrained")
for row, (name, model) in zip(
    panels, {"eigendecomposition": exact, "KHA": hebbian}.items(), strict=True
):
    heights = model.transform(grid)
    for number, axes in enumerate(row):
        axes.plot(*X.T, ".", color="0.75", markersize=3)
        axes.contour(x, y, heights[:, number].reshape(80, 80), levels=10, cmap="viridis")
        axes.set_title(f"{name}, component {number + 1}", fontsize=9)

# %%
# The projections of both agree, up to the sign that every component is free to choose:

for number in range(3):
    r = np.corrcoef(exact.transform(X)[:, number], hebbian.transform(X)[:, number])[0, 1]
    print(f"component {number + 1}: correlation {abs(r):.6f}")
