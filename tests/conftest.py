"""Shared fixtures."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from ikpca.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial, Sigmoid

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a job in the background is started; tests of Ctrl-C would wait for what never comes.
    signal.signal(signal.SIGINT, signal.default_int_handler)

KERNELS = {
    "linear": Linear(),
    "poly": Polynomial(degree=3, gamma=0.3, coef0=1.0),
    "rbf": Gaussian(gamma=0.2),
    "sigmoid": Sigmoid(gamma=0.05, coef0=0.1),
    "cosine": Cosine(),
    "laplacian": Laplacian(gamma=0.2),
}


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


@pytest.fixture
def rows():
    """Sixty rows in five dimensions of unequal spread, away from the origin."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 5)) * [3.0, 2.0, 1.0, 1.0, 0.5] + 1.0


@pytest.fixture(scope="session")
def digits():
    from sklearn.datasets import load_digits

    return load_digits().data / 16


@pytest.fixture(scope="session")
def data_folder():
    """Folder of real data sets; tests that need it are skipped without it."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("IKPCA_DATA", default))
    if not folder.is_dir():
        pytest.skip("real data sets absent: set IKPCA_DATA to their folder")
    return folder


def explicitly_centered(K: np.ndarray) -> np.ndarray:
    """Return K' by multiplication with the centering matrix."""
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H
