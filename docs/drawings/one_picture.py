"""Three rings: the points, their linear components and their kernel components."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from ikpca import KernelPCA

rng = np.random.default_rng(0)
ring = np.repeat([0, 1, 2], 150)
angle = rng.uniform(0, 2 * np.pi, 450)
radius = ring + 0.12 * rng.normal(size=450)
X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

views = {
    "450 points in three rings": X,
    "linear PCA: rotated": PCA(2).fit_transform(X),
    "kernel PCA: three groups": KernelPCA(2, kernel="rbf", gamma=0.6).fit_transform(X),
}
figure, panels = plt.subplots(1, 3, figsize=(9.5, 3.15), layout="constrained")
for axes, (title, points) in zip(panels, views.items(), strict=True):
    for number, color in enumerate(["#0072B2", "#D55E00", "#009E73"]):
        axes.scatter(*points[ring == number].T, s=7, color=color, linewidths=0)
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axes.set(xticks=[], yticks=[])
    axes.set_box_aspect(0.9)
