"""
Novelty detection
=================

``reconstruction_error`` is small for rows that are similar to the training rows, and large for
others. It is a novelty score that needs no labels and adapts to nonlinear structure such as two
moons, which linear PCA does not detect.

``NoveltyDetector`` adds calibrated thresholds and p-values to this score; see the
:doc:`guide </guide/novelty>`.

The mean distance to the nearest training rows is a simple baseline, but needs all training rows;
the compressed model has 40. On scikit-learn's digits, the distance was the better score. Compare
both on your data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from ikpca import KernelPCA, compress

normal, _ = make_moons(1200, noise=0.08, random_state=0)
train, validation = normal[:600], normal[600:]
rng = np.random.default_rng(0)
novel = rng.uniform([-1.6, -1.1], [2.6, 1.6], size=(600, 2))

model = KernelPCA(20, kernel="rbf", gamma=3.0).fit(train)
small = compress(model, 40)

# %%
# The area under the ROC curve is 1 for a perfect score and 0.5 for a random one. The novel rows are
# drawn uniformly. Some of them lie within the moons, so that no score is perfect.

new = np.repeat([False, True], 600)
rows = np.concatenate([validation, novel])
distances, _ = NearestNeighbors(n_neighbors=5).fit(train).kneighbors(rows)
scores = {
    "kernel components": model.reconstruction_error(rows),
    "compressed, 40 rows": small.reconstruction_error(rows),
    "neighbor distance": distances.mean(axis=1),
}
for name, score in scores.items():
    print(f"{name:20s} {roc_auc_score(new, score):.3f}")

# %%
# The threshold, a dashed line, is a quantile of the score on rows that were not used in the fit.

x, y = np.linspace(-1.8, 2.8, 120), np.linspace(-1.3, 1.8, 90)
grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
threshold = np.quantile(model.reconstruction_error(validation), 0.95)
height = model.reconstruction_error(grid).reshape(90, 120)

figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
shades = axes.contourf(x, y, height, levels=20, cmap="viridis")
axes.contour(x, y, height, levels=[threshold], colors="white", linestyles="dashed")
axes.plot(*train.T, ".", color="white", markersize=2, alpha=0.7)
axes.set_title("reconstruction error and threshold", loc="left", fontsize=10)
figure.colorbar(shades, label="reconstruction error")
above = {
    name: np.mean(model.reconstruction_error(rows) > threshold)
    for name, rows in {"validation": validation, "novel": novel}.items()
}
print(
    f"above the threshold: {above['validation']:.0%} of validation rows "
    f"and {above['novel']:.0%} of novel rows"
)
