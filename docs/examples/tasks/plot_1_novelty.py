"""
Find what is unlike the rest
============================

Components that explain the usual rows leave little of them. What is left of a row,
``reconstruction_error``, is a score of novelty that needs no labels and has a shape of its own: it
follows the data around corners. Linear PCA of two moons would see nothing.

The distance to the nearest training rows needs no kernel PCA: any score worth its cost should be
shown beside it. It needs all training rows for every question; the model below is put on forty.
The moons were chosen after scikit-learn's digits, where the distance was the better score: try both
on rows of your own.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from ikpca import KernelPCA, compress

usual, _ = make_moons(1200, noise=0.08, random_state=0)
train, known = usual[:600], usual[600:]
rng = np.random.default_rng(0)
strange = rng.uniform([-1.6, -1.1], [2.6, 1.6], size=(600, 2))

model = KernelPCA(20, kernel="rbf", gamma=3.0).fit(train)
small = compress(model, 40)

# %%
# The area under the curve: 1 if every strange row scores above every known one, ½ for chance.
# Strange rows are drawn all over the place, so some of them lie where the known ones do, and
# nobody can tell those apart.

new = np.repeat([False, True], 600)
rows = np.concatenate([known, strange])
distances, _ = NearestNeighbors(n_neighbors=5).fit(train).kneighbors(rows)
scores = {
    "kernel components": model.reconstruction_error(rows),
    "the same on 40 rows": small.reconstruction_error(rows),
    "neighbour distance": distances.mean(axis=1),
}
for name, score in scores.items():
    print(f"{name:20s} {roc_auc_score(new, score):.3f}")

# %%
# A limit for new rows: a quantile of the score on rows that the model was not fitted to. The
# dashed line is that limit.

x, y = np.linspace(-1.8, 2.8, 120), np.linspace(-1.3, 1.8, 90)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
limit = np.quantile(model.reconstruction_error(known), 0.95)
height = model.reconstruction_error(grid).reshape(90, 120)

figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
shades = axes.contourf(x, y, height, levels=20, cmap="viridis")
axes.contour(x, y, height, levels=[limit], colors="white", linestyles="dashed")
axes.plot(*train.T, ".", color="white", markersize=2, alpha=0.7)
axes.set_title("what the components leave of each place", loc="left", fontsize=10)
figure.colorbar(shades, label="reconstruction error")
beyond = {
    name: np.mean(model.reconstruction_error(rows) > limit)
    for name, rows in {"known": known, "strange": strange}.items()
}
print(
    f"beyond the limit: {beyond['known']:.0%} of the known, {beyond['strange']:.0%} of the strange"
)
