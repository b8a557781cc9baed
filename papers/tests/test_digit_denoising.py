"""Denoising of digits by pre-images; settings are chosen on training rows."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.neighbors import NearestNeighbors

from ikpca import KernelPCA
from ikpca.preimages import MDS, FixedPoint

NOISE = 0.3
GAMMAS = (0.02, 0.05, 0.1, 0.2, 0.4)
RANKS = (16, 32, 64, 128, 256)


def draw():
    """Training rows, and clean and noisy test rows."""
    rng = np.random.default_rng(0)
    X = rng.permutation(load_digits().data / 16)
    clean = X[1000:1200]
    return X[:1000], clean, clean + NOISE * rng.normal(size=clean.shape)


def linear_pca(train, noisy, n_components):
    model = PCA(n_components).fit(train)
    return model.inverse_transform(model.transform(noisy))


def scikit_learn(train, noisy, gamma, n_components):
    model = ScikitKernelPCA(
        n_components, kernel="rbf", gamma=gamma, fit_inverse_transform=True
    ).fit(train)
    return model.inverse_transform(model.transform(noisy))


def neighbor_mean(train, noisy, n_neighbors):
    nearest = NearestNeighbors(n_neighbors=n_neighbors).fit(train)
    return train[nearest.kneighbors(noisy, return_distance=False)].mean(axis=1)


@lru_cache(maxsize=64)
def fitted(train, gamma, n_components):
    rows = np.frombuffer(train).reshape(-1, 64)
    return KernelPCA(n_components, kernel="rbf", gamma=gamma).fit(rows)


def fixed_point(train, noisy, gamma, n_components):
    model = fitted(train.tobytes(), gamma, n_components)
    return model.set_params(preimage=FixedPoint()).reconstruct(noisy)


def mds(train, noisy, gamma, n_components, n_neighbors):
    model = fitted(train.tobytes(), gamma, n_components)
    return model.set_params(preimage=MDS(n_neighbors)).reconstruct(noisy)


#: Methods with the settings to choose from.
METHODS = {
    "linear PCA": (linear_pca, [(4, 8, 12, 16, 24, 32, 48)]),
    "ridge regression of scikit-learn": (scikit_learn, [GAMMAS, RANKS[:-1]]),
    "fixed point": (fixed_point, [GAMMAS, RANKS]),
    "MDS": (mds, [GAMMAS, RANKS, (5, 7, 10, 15)]),
    "neighbor mean": (neighbor_mean, [(3, 5, 7, 10, 15)]),
}


def mean_squared_error(result, clean):
    return np.mean(np.square(result - clean))


@pytest.fixture(scope="module")
def errors():
    train, clean, noisy = draw()
    # A fifth of the training rows, with noise of their own.
    fit, valid = train[:800], train[800:]
    noisy_valid = valid + NOISE * np.random.default_rng(1).normal(size=valid.shape)
    result = {}
    for name, (denoise, grid) in METHODS.items():
        scores = {
            settings: mean_squared_error(denoise(fit, noisy_valid, *settings), valid)
            for settings in product(*grid)
        }
        best = min(scores, key=scores.get)
        result[name] = mean_squared_error(denoise(train, noisy, *best), clean)
    return result


@pytest.mark.parametrize("method", ["fixed point", "MDS"])
def test_ceiling_and_order(errors, method):
    assert errors[method] < 0.0215
    assert errors[method] < errors["ridge regression of scikit-learn"] < errors["linear PCA"]
    # Otherwise kernel PCA would not be worth its cost.
    assert errors[method] < errors["neighbor mean"]
