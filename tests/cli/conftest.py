"""Small files of every kind."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 6)) * [3.0, 2.0, 1.5, 1.0, 0.5, 0.2]


@pytest.fixture
def files(tmp_path, monkeypatch, rows):
    """Working folder with rows.npy and rows.csv."""
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", rows)
    lines = [",".join("abcdef"), *(",".join(map(repr, row)) for row in rows.tolist())]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    return tmp_path
