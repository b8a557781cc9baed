"""Fixtures of the tests of ikpca-papers."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ikpca.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial, Sigmoid

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Background jobs ignore SIGINT; tests of Ctrl-C need it.
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
    """Sixty rows in five dimensions, of unequal variance and away from the origin."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 5)) * [3.0, 2.0, 1.0, 1.0, 0.5] + 1.0


@pytest.fixture(scope="session")
def digits():
    from sklearn.datasets import load_digits

    return load_digits().data / 16


@pytest.fixture(scope="session")
def data_folder():
    """Folder of real data sets; tests that need it are skipped if it is absent."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("IKPCA_DATA", default))
    if not folder.is_dir():
        pytest.skip("real data sets absent: set IKPCA_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def usps_1000(data_folder):
    """The first hundred of each USPS digit (Günter 2006, section 5.1)."""
    with np.load(data_folder / "usps.npz") as data:
        X, y = data["X_train"].astype(np.float64), data["y_train"]
    return np.vstack([X[y == digit][:100] for digit in range(10)])


@pytest.fixture
def own_folders(tmp_path, monkeypatch):
    """An empty cache, no data folder, and no network."""
    monkeypatch.setenv("IKPCA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("IKPCA_OFFLINE", "1")
    monkeypatch.delenv("IKPCA_DATA", raising=False)
    return SimpleNamespace(cache=tmp_path / "cache", data=tmp_path / "data")


@pytest.fixture
def register(monkeypatch):
    """Function that adds entries to the registry, or replaces them."""
    from ikpca_papers.data import entries

    def add(*new):
        changed = {**entries.registry(), **{entry.name: entry for entry in new}}
        monkeypatch.setattr(entries, "registry", lambda: changed)

    return add
