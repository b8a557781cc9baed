"""``cluster`` assigns the labels of the estimator to the rows of a file."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from ikpca import KernelSpectralClustering, load
from ikpca.cli.files import read_table
from tests.cli.saying import fails, succeeds


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("out", ["labels.csv", "labels.npy"])
def test_clusters(out):
    rng = np.random.default_rng(2)
    rows = np.vstack([rng.normal(center, 0.2, size=(20, 3)) for center in (0, 3, 6)])
    np.save("rows.npy", rows)
    said = succeeds(
        "cluster", "rows.npy", "--n-clusters", 3, "--out", out, "--gamma", 0.5,
        "--random-state", 1, "--normalize", "none", "--save-model", "c.ikpca", "--json",
    )  # fmt: skip
    model = KernelSpectralClustering(3, gamma=0.5, normalize=None, random_state=1).fit(rows)
    table = read_table(out)
    np.testing.assert_array_equal(table.rows[:, 0], model.labels_)
    assert table.names == (("cluster",) if out.endswith("csv") else ("1",))
    assert said["sizes"] == [20, 20, 20]
    np.testing.assert_array_equal(load("c.ikpca").labels_, model.labels_)


def test_more_clusters_than_rows():
    np.save("rows.npy", np.random.default_rng(0).normal(size=(5, 2)))
    assert "--n-clusters=9" in fails("cluster", "rows.npy", "-c", 9, "-o", "l.csv", code=2)
