"""Rows in files: memory maps, members of archives, Zarr arrays; budgets and their errors."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from ikpca import (
    HebbianPCA,
    IncrementalKernelPCA,
    KernelPCA,
    NoveltyDetector,
    OnlineKernelPCA,
    open_rows,
)
from ikpca.errors import InvalidInput
from ikpca.estimators.validation import resolve_gamma
from ikpca.gram.lazy_rows import LazyRows
from tests.pairwise import pairwise


@pytest.fixture
def X(digits):
    return digits[:700].astype(np.float32)


def fitted(X, **settings):
    return KernelPCA(
        5, kernel="rbf", gamma=0.1, eigen_solver="krylov", random_state=0, **settings
    ).fit(X)


def files(X, folder):
    np.save(folder / "rows.npy", X)
    zarr = pytest.importorskip("zarr")
    array = zarr.open_array(
        str(folder / "rows.zarr"), mode="w", shape=X.shape, dtype=X.dtype, chunks=(100, X.shape[1])
    )
    array[:] = X
    return {
        "npy": open_rows(folder / "rows.npy"),
        "zarr": open_rows(folder / "rows.zarr"),
    }


@pytest.mark.parametrize("kind", ["npy", "zarr"])
@pytest.mark.parametrize("solver", ["krylov", "kha/et"])
def test_rows_on_disk_are_rows_in_memory(X, tmp_path, kind, solver):
    disk = files(X, tmp_path)[kind]
    settings = {"kernel": "rbf", "gamma": 0.1, "eigen_solver": solver, "random_state": 0}
    memory = KernelPCA(5, **settings).fit(X)
    result = KernelPCA(5, **settings, max_memory="20MB").fit(disk)
    assert subspace_angles(result.eigenvectors_, memory.eigenvectors_)[0] < 2e-3
    np.testing.assert_allclose(result.transform(X[:20]), memory.transform(X[:20]), atol=1e-3)


def test_a_memory_map_is_not_copied(X, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    mapped = open_rows(tmp_path / "rows.npy")
    assert np.shares_memory(fitted(mapped).X_fit_, mapped)


def test_errors_of_files(X, tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        open_rows(tmp_path / "absent.npy")
    (tmp_path / "text.npy").write_text("not numbers")
    with pytest.raises(ValueError, match=r"not a \.npy file"):
        open_rows(tmp_path / "text.npy")
    np.savez(tmp_path / "archive.npz", a=X)
    with pytest.raises(ValueError, match=r"not a \.npy file.*numpy\.save"):
        open_rows(tmp_path / "archive.npz")


def test_a_memory_map_of_the_wrong_type_is_refused(tmp_path):
    np.save(tmp_path / "bytes.npy", np.zeros((10, 3), dtype=np.uint8))
    with pytest.raises(ValueError, match=r"type uint8.*convert"):
        fitted(open_rows(tmp_path / "bytes.npy"))


def test_rows_on_disk_without_features_are_refused():
    with pytest.raises(InvalidInput, match=r"shape \(10, 0\)"):
        fitted(LazyRows(np.zeros((10, 0))))


def test_nan_in_a_chunk_is_found_before_any_work(X, tmp_path):
    zarr = pytest.importorskip("zarr")
    array = zarr.open_array(
        str(tmp_path / "rows.zarr"), mode="w", shape=X.shape, dtype=X.dtype, chunks=(50, 64)
    )
    array[:] = X
    array[333, 3] = np.nan
    with pytest.raises(ValueError, match="contains NaN or infinity in rows 333, counted from 0"):
        fitted(array)


@pytest.mark.parametrize("inside", [{}, {"zarr.json": "{"}, {"zarr.json": "{}"}, {"x.npy": ""}])
def test_folder_without_zarr_array_is_rejected(tmp_path, inside):
    pytest.importorskip("zarr")
    for name, text in inside.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match="Zarr"):
        open_rows(tmp_path)


class Dataset:
    """Dataset of h5py: sliced, or indexed in ascending order."""

    def __init__(self, rows):
        self._rows = rows
        self.shape, self.dtype, self.chunks = rows.shape, rows.dtype, None

    def __getitem__(self, part):
        assert isinstance(part, slice) or (np.diff(part) > 0).all()
        return self._rows[part]

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._rows, dtype=dtype)


Dataset.__module__ = "h5py._hl.dataset"


def on_disk(kind, X, folder):
    """The rows, read when they are needed."""
    if kind == "hdf5":
        return Dataset(X)
    if kind == "zarr":
        return files(X, folder)["zarr"]
    pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    table = pa.table({f"c{number}": column for number, column in enumerate(X.T)})
    parquet.write_table(table, folder / "rows.parquet", row_group_size=40)
    return open_rows(folder / "rows.parquet")


LAZY = ["parquet", "zarr", "hdf5"]
SETTINGS = {"kernel": "rbf", "gamma": "scale", "eigen_solver": "krylov", "random_state": 0}


@pytest.mark.parametrize("kind", LAZY)
def test_every_method_accepts_rows_on_disk(X, tmp_path, kind):
    X = X[:90]
    disk = on_disk(kind, X, tmp_path)
    memory = KernelPCA(3, **SETTINGS).fit(X)
    for method in ("transform", "reconstruction_error", "explained_variance_score", "reconstruct"):
        call = getattr(memory, method)
        np.testing.assert_allclose(call(disk), call(X), rtol=1e-5, atol=1e-6)
    assert memory.score(LazyRows(X[:9])) == memory.score(X[:9])
    result = KernelPCA(3, **SETTINGS, warm_start=True)
    np.testing.assert_allclose(result.fit_transform(disk), memory.transform(X), atol=1e-4)
    assert result.gamma_ == memory.gamma_
    np.testing.assert_allclose(result.fit(disk).transform(disk), memory.transform(X), atol=1e-4)
    np.testing.assert_allclose(result.refine(disk).eigenvalues_, memory.eigenvalues_, rtol=1e-5)


@pairwise(strength=1, kind=LAZY, solver=["nystrom", "dense"])
def test_detector_accepts_rows_on_disk(X, tmp_path, kind, solver):
    X = X[:160]
    settings = {"n_components": 5, "eigen_solver": solver, "random_state": 0}
    memory = NoveltyDetector(**settings).fit(X)
    disk = on_disk(kind, X, tmp_path)
    result = NoveltyDetector(**settings).fit(disk)
    np.testing.assert_allclose(result.score_samples(disk), memory.score_samples(X), atol=1e-5)
    np.testing.assert_array_equal(memory.predict(disk), memory.predict(X))
    np.testing.assert_allclose(memory.explain(disk), memory.explain(X))
    memory.partial_fit(disk)
    np.testing.assert_allclose(memory.score_samples(disk), memory.score_samples(X))


@pairwise(strength=1, kind=LAZY, estimator=[IncrementalKernelPCA, OnlineKernelPCA, HebbianPCA])
def test_other_estimators_accept_rows_on_disk(X, tmp_path, kind, estimator):
    X = X[:160]
    disk, model = on_disk(kind, X, tmp_path), estimator(2, random_state=0)
    expected = estimator(2, random_state=0).fit(X).transform(X)
    np.testing.assert_allclose(model.fit(disk).transform(disk), expected, rtol=1e-5, atol=1e-5)


def test_projections_read_a_strip_at_a_time(digits, monkeypatch):
    model = KernelPCA(3, **SETTINGS).fit(digits[:100])
    monkeypatch.setattr("ikpca.subspace._STRIP_ENTRIES", 64_000)
    rows = LazyRows(OnDisk(digits))
    for method in ("transform", "reconstruction_error", "explained_variance_score"):
        call = getattr(model, method)
        np.testing.assert_allclose(call(rows), call(digits), rtol=1e-9)


@pytest.mark.parametrize("kind", LAZY)
def test_rows_on_disk_are_validated(X, tmp_path, kind):
    model, detector = fitted(X[:100]), NoveltyDetector(random_state=0).fit(X[:100])
    narrow = on_disk(kind, X[:, 1:], tmp_path)
    for call in (model.transform, model.reconstruction_error, detector.predict):
        with pytest.raises(ValueError, match=r"has 63 features, but .* is expecting 64 features"):
            call(narrow)
    X[7, 3] = np.nan
    broken = on_disk(kind, X, tmp_path)
    for call in (model.transform, detector.score_samples):
        with pytest.raises(ValueError, match="contains NaN"):
            call(broken)
    with pytest.raises(ValueError, match="at least 1"):
        model.transform(LazyRows(X[:0]))
    with pytest.raises(ValueError, match="float64 with features are read in place"):
        model.transform(LazyRows(np.ones((3, 64), dtype=np.int32)))


BAD_BUDGETS = ["-1", "abc", "", "1.2.3GB", -5, 0, 1.5, True, "GB"]


def test_wrong_budgets_are_refused(X, subtests):
    for budget in BAD_BUDGETS:
        with subtests.test(repr(budget)), pytest.raises(ValueError, match=r"^max_memory="):
            fitted(X, max_memory=budget)


@pytest.mark.parametrize("solver", ["krylov", "kha/et", "dense"])
def test_a_budget_smaller_than_one_tile_is_refused(X, solver):
    model = KernelPCA(5, kernel="rbf", eigen_solver=solver, max_memory="10kB")
    with pytest.raises(ValueError, match=r"^max_memory="):
        model.fit(X)
    assert not hasattr(model, "eigenvalues_")


@pytest.mark.parametrize("tol", [1e-9, 1e-2])
def test_too_small_budget_error_names_a_sufficient_one(tol):
    """Also with a loose tolerance, which allows a copy in single precision."""
    X = np.random.default_rng(0).normal(size=(3000, 20))
    model = KernelPCA(4, kernel="rbf", gamma=0.05, eigen_solver="krylov", tol=tol,
                            random_state=0, max_memory="100kB")  # fmt: skip
    with pytest.raises(ValueError, match="max_memory=100000: ") as refusal:
        model.fit(X)
    enough = int(re.search(r"at least (\d+) bytes", str(refusal.value))[1])
    assert model.set_params(max_memory=enough).fit(X).outcome_.name == "CONVERGED"
    with pytest.raises(ValueError, match="at least"):
        model.set_params(max_memory=enough - 1).fit(X)


def test_automatic_solver_depends_on_the_number_of_rows(digits):
    small = KernelPCA(5).fit(digits[:500])
    large = KernelPCA(5).fit(np.vstack([digits, digits[:1000] + 0.5]))
    every = KernelPCA().fit(digits[:1200])
    assert small.outcome_.name == every.outcome_.name == "EXACT"
    assert large.outcome_.name in ("CONVERGED", "STALLED")


class OnDisk:
    """Rows that can be read in tiles only."""

    def __init__(self, rows):
        self._rows = rows
        self.shape = rows.shape
        self.dtype = rows.dtype

    def __len__(self):
        return len(self._rows)

    def __getitem__(self, part):
        assert part.stop - part.start < len(self._rows)
        return self._rows[part]


def test_gamma_from_the_spread_of_rows_takes_a_tile_at_a_time():
    rows = np.random.default_rng(0).normal(2.0, 3.0, size=(2500, 4))
    result = resolve_gamma("scale", OnDisk(rows), "rbf", seed=0)
    assert result == pytest.approx(1 / (4 * rows.var()), rel=1e-12)
