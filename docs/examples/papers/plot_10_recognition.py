"""
Recognition from components
===========================

Chin and Suter (2006) ask what a stream is good for: with a batch method memory limits the training
set, with a stream it does not. Nearest neighbours on kernel components, learned from a subset at
once or from everything in batches; here with handwritten digits in place of faces. The rates are
means over three splits; neighbours are looked for among the rows that each model has seen, so that
what the larger set gains is not all due to its components.
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
    neighbours = KNeighborsClassifier(10).fit(model.transform(X[rows]), y[rows])
    return 1 - neighbours.score(model.transform(X[test]), y[test])


rates = []
for seed in range(3):
    train, test = train_test_split(np.arange(len(X)), test_size=0.5, stratify=y, random_state=seed)
    few = train[:150]
    small = KernelPCA(**settings).fit(X[few])
    streamed = IncrementalKernelPCA(batch_size=150, **settings).fit(X[train])
    rates.append((error(small, few), error(streamed, train)))
rates = 100 * np.array(rates)

# %%

figure, axes = plt.subplots(figsize=(5.5, 2.4), layout="constrained")
axes.barh(
    ["150 rows at once", f"{len(train)} rows streamed"],
    rates.mean(axis=0),
    color=["0.7", "#0072B2"],
)
axes.set(xlabel="Errors on new digits, %")
for place, value in enumerate(rates.mean(axis=0)):
    axes.annotate(f" {value:.1f}", (value, place), va="center")
axes.margins(x=0.15)

# %%
# The first components as pictures: up minus down.

figure = components(streamed, (8, 8), number=6)
