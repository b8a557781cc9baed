"""
Recognition with streamed components
====================================

Memory limits the training set of a batch method, but not that of a stream. Following Chin and Suter
(2006), this example compares nearest-neighbor classification on components learned from a subset in
one batch and from all rows in a stream, with handwritten digits instead of faces. The error rates
are means over three splits. Neighbors are searched among the training rows of each model, so that
the improvement is not only due to the components.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from ikpca import IncrementalKernelPCA, KernelPCA
from ikpca.plotting import components

X, y = load_digits(return_X_y=True)
X = X / 16
settings = {"n_components": 36, "kernel": "poly", "degree": 2, "gamma": 1 / 64}


def error(model, rows):
    classifier = KNeighborsClassifier(10).fit(model.transform(X[rows]), y[rows])
    return 1 - classifier.score(model.transform(X[test]), y[test])


rates = []
for seed in range(3):
    train, test = train_test_split(np.arange(len(X)), test_size=0.5, stratify=y, random_state=seed)
    few = train[:150]
    small = KernelPCA(**settings).fit(X[few])
    streamed = IncrementalKernelPCA(**settings).fit(X[train])
    rates.append((error(small, few), error(streamed, train)))
rates = 100 * np.array(rates)

# %%

figure, axes = plt.subplots(figsize=(5.5, 2.4), layout="constrained")
axes.barh(
    ["150 rows, batch", f"{len(train)} rows streamed"],
    rates.mean(axis=0),
    color=["0.7", "#0072B2"],
)
axes.set(xlabel="Error rate on new digits, %")
for place, value in enumerate(rates.mean(axis=0)):
    axes.annotate(f" {value:.1f}", (value, place), va="center")
axes.margins(x=0.15)

# %%
# The first components, plotted as images.

figure = components(streamed, (8, 8), number=6)
