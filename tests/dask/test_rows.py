"""Rows from files that workers read, lazy projections, progress, and the command line."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

import dask.array as da

import dask
import ikpca
import ikpca.dask
from ikpca.errors import InvalidInput
from tests.dask.clusters import cluster_of

pytestmark = pytest.mark.slow

GIVEN = {"n_components": 3, "kernel": "rbf", "gamma": 0.1, "eigen_solver": "krylov",
         "max_iter": 2, "random_state": 0}  # fmt: skip


@pytest.fixture(scope="module")
def client():
    with cluster_of(2, processes=True) as client:
        yield client


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(150, 5))


@pytest.fixture(scope="module")
def expected(X):
    return ikpca.KernelPCA(**GIVEN).fit_transform(X)


def same(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10 * float(np.abs(expected).max()))


def written(kind, X, folder):
    """The path of a file of rows of each kind that workers can read."""
    if kind == "npy":
        np.save(folder / "rows.npy", X)
        return folder / "rows.npy"
    if kind == "zarr":
        zarr = pytest.importorskip("zarr")
        # Cut over features, too: it is the reader who puts rows together.
        path = str(folder / "rows")
        array = zarr.open_array(path, mode="w", shape=X.shape, chunks=(40, 2), dtype="f8")
        array[:] = X
        return folder / "rows"
    frames, pd = (pytest.importorskip(name) for name in ("dask.dataframe", "pandas"))
    frame = pd.DataFrame(X, columns=list("abcde"))
    frames.from_pandas(frame, npartitions=3).to_parquet(str(folder / "rows"))
    return folder / "rows"


@pytest.mark.parametrize("kind", ["npy", "zarr", "parquet"])
def test_workers_read_files(client, X, expected, tmp_path, monkeypatch, kind):
    path = written(kind, X, tmp_path)
    monkeypatch.setattr("ikpca.dask.cluster._CHUNK_BYTES", 40 * X[:1].nbytes)
    model = ikpca.dask.KernelPCA(**GIVEN, client=client).fit(path)
    same(model.transform(str(path)).compute(), expected)
    if kind == "parquet":
        assert list(model.feature_names_in_) == list("abcde")


def test_a_file_is_read_a_chunk_at_a_time(X, tmp_path, monkeypatch):
    """Workers receive a path and slices, not rows."""
    monkeypatch.setattr("ikpca.dask.cluster._CHUNK_BYTES", 40 * X[:1].nbytes)
    array = ikpca.dask.open_rows(written("npy", X, tmp_path))
    assert array.chunks == ((40, 40, 40, 30), (5,))
    sent = pickle.dumps(array)
    assert str(tmp_path / "rows.npy").encode() in sent
    assert X[0].tobytes() not in sent
    assert X[0].tobytes() in pickle.dumps(da.from_array(X, chunks=(40, -1)))


def test_files_of_other_kinds(tmp_path):
    (tmp_path / "rows.txt").write_text("1 2")
    with pytest.raises(InvalidInput, match=r"numpy\.save"):
        ikpca.dask.open_rows(tmp_path / "rows.txt")
    with pytest.raises(InvalidInput, match="no such file"):
        ikpca.dask.open_rows(tmp_path / "nothing.npy")


def test_projections_are_lazy_and_by_blocks(client, X, expected):
    model = ikpca.dask.KernelPCA(**GIVEN, client=client).fit(da.from_array(X, chunks=(60, -1)))

    def fail(block):
        raise AssertionError("computed")

    D = da.from_array(X, chunks=(50, -1))
    untouched = model.transform(D.map_blocks(fail, dtype=float, meta=np.empty((0, 0))))
    assert untouched.chunks == ((50, 50, 50), (3,))
    same(model.transform(D).blocks[1].compute(), expected[50:100])


def test_passes_are_reported(client, X, capsys):
    D = da.from_array(X, chunks=(60, -1))
    model = ikpca.dask.KernelPCA(**GIVEN, client=client, verbose=1).fit(D)
    shown = capsys.readouterr()
    assert len(model.history_) > 0
    assert (shown.out + shown.err).count("krylov") == len(model.history_)


def test_command_line_fits_on_a_cluster(X, expected, tmp_path):
    """Fit a file on a cluster of local processes; the model is local."""
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from ikpca.cli.app import app

    np.save(tmp_path / "rows.npy", X)
    command = ["fit", tmp_path / "rows.npy", "-o", tmp_path / "model", "-n", 3, "--gamma", 0.1,
               "-s", "krylov", "--max-iter", 2, "--dask", "local", "--json"]  # fmt: skip
    actual = CliRunner().invoke(app, [str(word) for word in command])
    assert actual.exit_code == 0, actual.output
    assert json.loads(actual.stdout)["passes"] > 0
    model = ikpca.load(tmp_path / "model")
    assert type(model) is ikpca.KernelPCA
    same(model.transform(X), expected)


def test_a_scheduler_that_does_not_answer(monkeypatch):

    monkeypatch.setattr("ikpca.dask.cluster._TIMEOUT", 0.2)
    with (
        pytest.raises(InvalidInput, match="no scheduler answers"),
        ikpca.dask.connect("tcp://127.0.0.1:9"),
    ):
        pass


def test_local_cluster_has_low_overhead():
    name = "distributed.worker.profile.enabled"
    with dask.config.set({name: True}):
        with ikpca.dask.connect("local") as client:
            assert set(client.run(lambda: dask.config.get(name)).values()) == {False}
        assert dask.config.get(name) is True


NO_CLIENT = """
import dask.array as da
from ikpca.dask import KernelPCA

try:
    KernelPCA(2).fit(da.ones((60, 3), chunks=(30, 3)))
except ValueError as refusal:
    print(refusal)
"""


def test_without_a_client():
    result = subprocess.run(
        [sys.executable, "-c", NO_CLIENT], capture_output=True, text=True, check=False
    )
    assert "there is no current Dask client" in result.stdout, result.stderr
