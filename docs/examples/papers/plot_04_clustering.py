"""
Spectral clustering without the affinity matrix
===============================================

Günter et al. (2006) cluster handwritten digits in the space of their kernel components, and
measure the variation of information between clusters and true digits in nats: 0 is a perfect
agreement, and random labels have more than 4 nats. The kernel width was chosen with the labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from ikpca import KernelSpectralClustering
from ikpca.metrics import variation_of_information
from ikpca.plotting import projections

X, y = load_digits(return_X_y=True)
X = X / 16

model = KernelSpectralClustering(
    10, n_components=12, gamma=0.3, eigen_solver="krylov", tol=1e-3, random_state=0
).fit(X)
by_pixels = KMeans(10, n_init=10, random_state=0).fit_predict(X)
by_chance = np.random.default_rng(0).integers(10, size=len(X))

for name, labels in {
    "kernel components": model.labels_,
    "k-means on pixels": by_pixels,
    "random labels": by_chance,
}.items():
    print(f"{name:18s} {variation_of_information(labels, y):.2f} nats from the digits")

# %%
# Two of the twelve components, with the true digits and with the clusters. The numbers and colors
# of clusters are arbitrary.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
projections(model.embedding_, y, pair=(1, 2), ax=left).set_title("true digits", fontsize=10)
projections(model.embedding_, model.labels_, pair=(1, 2), ax=right).set_title(
    "clusters", fontsize=10
)
