"""
Denoising with a baseline
=========================

A row is denoised by its projection on the components and the pre-image of the projection. ``score``
finds the kernel width without clean rows. The mean of the nearest training rows is a baseline that
needs no kernel PCA, and is only slightly worse.

The search uses 200 rows to save time; the model is then fitted to all rows. The parameters of the
baselines, twelve components and 25 neighbors, are the best for these test rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestNeighbors

from ikpca import KernelPCA

clean = load_digits().data / 16
noisy = clean + np.random.default_rng(0).normal(scale=0.3, size=clean.shape)
train, test, truth = noisy[:900], noisy[1200:1500], clean[1200:1500]

search = GridSearchCV(
    KernelPCA(kernel="rbf", random_state=0),
    {"gamma": [0.02, 0.1, 0.5], "n_components": [32]},
    cv=2,
).fit(train[:200])
model = search.best_estimator_.fit(train)
print("parameters found in noisy rows:", search.best_params_)

# %%

neighbors = NearestNeighbors(n_neighbors=25).fit(train).kneighbors(test, return_distance=False)
linear = PCA(12).fit(train)
restored = {
    "noisy": test,
    "linear PCA": linear.inverse_transform(linear.transform(test)),
    "neighbor mean": train[neighbors].mean(axis=1),
    "kernel PCA": model.reconstruct(test),
    "clean": truth,
}
figure, panels = plt.subplots(5, 8, figsize=(6.5, 4.4), layout="constrained")
for line, (name, rows) in zip(panels, restored.items(), strict=True):
    for axes, row in zip(line, rows[::36], strict=False):
        axes.imshow(row.reshape(8, 8), cmap="gray", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
    line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)

# %%

for name, rows in restored.items():
    print(f"{name:15s} mean squared error {np.mean(np.square(rows - truth)):.4f}")
