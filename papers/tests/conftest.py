"""Fixtures of the tests of ikpca-papers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.conftest import data_folder, digits, kernel, rows  # noqa: F401


@pytest.fixture(scope="session")
def usps_1000(data_folder):  # noqa: F811
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
    """Return a function that adds or replaces entries of the registry."""
    from ikpca_papers.data import entries

    def add(*new):
        changed = {**entries.registry(), **{entry.name: entry for entry in new}}
        monkeypatch.setattr(entries, "registry", lambda: changed)

    return add
