"""
Contours of kernel components
=============================

This example reproduces figure 1 of Kim, Franz and Schölkopf (2003): points along a parabola, with
the polynomial kernel :math:`(x \\cdot y)^2`. Contours of linear components are straight lines;
those of kernel components are curves. The kernel Hebbian algorithm finds the same components as the
eigendecomposition without storing the kernel matrix.
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
# The projection on a component is a function on the plane, shown by its contour lines.

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
# The projections of both agree up to the signs of the components:

for number in range(3):
    r = np.corrcoef(exact.transform(X)[:, number], hebbian.transform(X)[:, number])[0, 1]
    print(f"component {number + 1}: correlation {abs(r):.6f}")
