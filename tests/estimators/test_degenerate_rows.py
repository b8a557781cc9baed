"""Regression tests: rows too far apart, models without components."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca import (
    IncrementalKernelPCA,
    KernelPCA,
    KernelSpectralClustering,
    OnlineKernelPCA,
    compress,
)
from ikpca.errors import InvalidInput, RankWarning
from ikpca.estimators import DriftSignal
from ikpca.kernels import vectorized

FAR = np.random.default_rng(0).normal(size=(30, 6)) * 1e40
MODELS = {
    "dense": KernelPCA(2, kernel="rbf"),
    "krylov": KernelPCA(2, kernel="rbf", eigen_solver="krylov"),
    "krylov, loose": KernelPCA(2, kernel="rbf", eigen_solver="krylov", tol=1e-3),
    "kha": KernelPCA(2, kernel="rbf", eigen_solver="kha"),
    "incremental": IncrementalKernelPCA(2, kernel="rbf"),
    "online": OnlineKernelPCA(2, kernel="rbf", random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_rows_that_a_gaussian_cannot_resolve(name):
    with pytest.raises(InvalidInput, match="so far apart that gamma times"):
        MODELS[name].fit(FAR)


@pytest.mark.parametrize("model", [IncrementalKernelPCA, OnlineKernelPCA])
def test_stream_rejects_batch_far_from_the_last(model):
    stream = model(2, kernel="rbf", random_state=0).partial_fit(FAR / 1e40)
    before = stream.transform(FAR / 1e40)
    with pytest.raises(InvalidInput, match="so far apart"):
        stream.partial_fit(FAR)
    assert (stream.transform(FAR / 1e40) == before).all()


def test_one_far_row_keeps_double_precision():
    """Single precision is used only if it can represent every row."""
    X = np.random.default_rng(0).normal(size=(400, 5))
    X[-1] *= 1e5
    loose, dense = (KernelPCA(3, kernel="rbf", gamma=0.1, eigen_solver=solver, tol=1e-3,
                              random_state=0).fit(X) for solver in ("krylov", "dense"))  # fmt: skip
    np.testing.assert_allclose(loose.eigenvalues_, dense.eigenvalues_, rtol=1e-3)


@pytest.mark.filterwarnings("ignore::ikpca.errors.RankWarning")
def test_a_model_without_components_has_nothing_to_refine():
    model = KernelPCA(2, remove_zero_eig=True).fit(np.ones((5, 3)))
    assert len(model.refine().eigenvalues_) == 0


def test_kernel_with_negative_values_has_no_variance():
    rows = np.random.default_rng(0).normal(size=(20, 4))
    batch = KernelPCA(3, kernel="sigmoid", gamma=0.001, coef0=-1, eigen_solver="dense").fit(rows)
    stream = compress(batch, 20, random_state=0).partial_fit(rows[:3])
    assert (stream.eigenvalues_ > 0).all()


def test_stream_equals_batch_for_kernel_with_negative_values():
    rows = np.random.default_rng(0).normal(size=(60, 4))
    batch = KernelPCA(3, kernel="sigmoid", gamma=0.001, coef0=-1, eigen_solver="dense").fit(rows)
    stream = IncrementalKernelPCA(3, kernel="sigmoid", gamma=0.001, coef0=-1, max_basis_rows=None)
    stream.partial_fit(rows[:25]).partial_fit(rows[25:])
    np.testing.assert_allclose(stream.eigenvalues_, batch.eigenvalues_, rtol=1e-6)
    projections = stream.transform(rows), batch.transform(rows)
    np.testing.assert_allclose(*map(np.abs, projections), atol=1e-6)
    np.testing.assert_allclose(
        stream.reconstruction_error(rows), batch.reconstruction_error(rows), atol=1e-8
    )


@pytest.mark.parametrize("model", [KernelPCA, IncrementalKernelPCA])
@pytest.mark.filterwarnings("ignore::ikpca.errors.RankWarning")
def test_nothing_to_compress(model):
    alike = model(2, kernel="rbf", gamma=0.5).fit(np.ones((8, 3)))
    with pytest.raises(InvalidInput, match="nothing to compress"):
        compress(alike, 4)


def test_errors_that_overflow_when_squared_are_a_drift():
    errors = np.random.default_rng(0).exponential(size=200)
    signal, _ = DriftSignal().update(errors)
    signal, level = signal.update([1e200, 1e300])
    assert level > 0
    assert np.isfinite(signal.variance)


@pytest.mark.filterwarnings("ignore::ikpca.errors.RankWarning")
def test_inverse_transform_without_components():
    @vectorized
    def first_columns(X, Y):
        return X[:, 0][:, None] * Y[:, 0] + 1

    model = KernelPCA(kernel=first_columns, fit_inverse_transform=True, remove_zero_eig=True)
    model.fit(np.ones((6, 2)))
    assert model.eigenvalues_.size == 0
    assert model.inverse_transform(np.zeros((3, 0))).shape == (3, 2)


@pytest.mark.parametrize("n_rows", [200, 2000])
def test_krylov_on_equal_rows(n_rows):
    with pytest.warns(RankWarning, match="no variance"):
        model = KernelPCA(2, kernel="rbf", eigen_solver="krylov").fit(np.ones((n_rows, 3)))
    assert model.eigenvalues_.tolist() == [0, 0]
    assert not model.transform(np.ones((4, 3))).any()


def test_new_rows_whose_kernel_values_overflow():
    model = KernelPCA(2, kernel="poly").fit((FAR[:, :4] / 1e40).astype(np.float32))
    far = np.full((2, 4), -9e18, dtype=np.float32)
    for method in (model.transform, model.reconstruction_error, model.explained_variance_score):
        with pytest.raises(InvalidInput, match="kernel values of 2 rows"):
            method(far)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_that_differ_by_less_than_their_kernel_values_resolve():
    X = np.array([[999997.75], [1e6], [999999.44], [999998.88], [999997.56]], dtype=np.float32)
    model = KernelSpectralClustering(
        3, n_components=1, kernel=lambda x, z: float(x @ z), eigen_solver="kha/et", max_iter=2,
        normalize=None, random_state=0,
    )  # fmt: skip
    with pytest.warns(RankWarning, match="no variance"):
        model.fit(X)
