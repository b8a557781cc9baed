"""Bad batches of a stream are rejected before any work and do not change the model."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from ikpca import IncrementalKernelPCA, vectorized
from ikpca.errors import InvalidInput
from ikpca.estimators.validation import check_finite
from tests.pairwise import pairwise

RBF = {"kernel": "rbf", "gamma": 0.1}


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(100, 4))


def with_nan(X, *rows):
    bad = X.copy()
    bad[list(rows), 1] = np.nan
    return bad


def bits(model):
    """Return all stored attributes of a model."""
    return pickle.dumps(vars(model))


BAD = {
    "width": (lambda X: X[:, :3], "4 features"),
    "nan": (lambda X: with_nan(X[:10], 3), "NaN or infinity in rows 3 .rows 53 of the stream"),
    "empty": (lambda X: X[:0], "0 sample"),
    "one row, one dimension": (lambda X: X[0], "Reshape your data"),
    "three dimensions": (lambda X: X[None], "dim 3"),
    "text": (lambda X: np.char.add(X.astype(str)[:2], "a"), "could not convert"),
    "complex": (lambda X: X + 1j, "Complex data not supported"),
    "nothing": (lambda X: None, "Expected 2D array"),
}


@pairwise(strength=1, name=BAD, limit=[30, None])
def test_rejected_batch_does_not_change_the_model(X, name, limit):
    spoil, message = BAD[name]
    model = IncrementalKernelPCA(3, **RBF, max_basis_rows=limit)
    model.partial_fit(X[:50])
    before, projections = bits(model), model.transform(X)
    with pytest.raises((ValueError, TypeError), match=message):
        model.partial_fit(spoil(X))
    assert bits(model) == before
    assert np.array_equal(model.transform(X), projections)
    with pytest.raises((ValueError, TypeError), match=message.partition(" .rows")[0]):
        model.fit(spoil(X)) if name != "width" else model.transform(spoil(X))
    assert np.array_equal(model.transform(X), projections)


@pytest.mark.parametrize("name", [name for name in BAD if name != "width"])
def test_rejected_first_batch_leaves_an_unfitted_model(X, name):
    model = IncrementalKernelPCA(3, **RBF)
    before = bits(model)
    with pytest.raises((ValueError, TypeError)):
        model.partial_fit(BAD[name][0](X))
    assert bits(model) == before
    with pytest.raises(NotFittedError):
        model.transform(X)
    assert model.partial_fit(X).n_samples_seen_ == 100


def test_error_names_the_rows(X):
    model = IncrementalKernelPCA(3, **RBF).fit(X)
    many = with_nan(X, 2, 5, 8, 13, 21, 34, 55)
    message = (
        "X contains NaN or infinity in rows 2, 5, 8, 13, 21 and 2 more (rows 102, 105, 108, 113, "
        "121 and 2 more of the stream), counted from 0"
    )
    with pytest.raises(InvalidInput, match=re.escape(message)):
        model.partial_fit(many)
    infinite = X.copy()
    infinite[7, 0] = -np.inf
    with pytest.raises(InvalidInput, match=r"rows 7 \(rows 107 of the stream"):
        model.partial_fit(infinite)


def test_large_finite_numbers_are_accepted():
    """A sum that overflows is not a bad row."""
    check_finite(np.full((3, 2), 1e308), 0)
    with pytest.raises(InvalidInput, match="in rows 1,"):
        check_finite(np.array([[1e308, 1e308], [1e308, np.inf]]), 0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_kernel_values_that_overflow_are_refused(X):
    model = IncrementalKernelPCA(3).fit(X)
    before, large = bits(model), X[:9].copy()
    large[4] = 1e200
    with pytest.raises(InvalidInput, match=r"as large as 1e\+200, in row 4 .*scale X"):
        model.partial_fit(large)
    assert bits(model) == before
    cubed = IncrementalKernelPCA(3, kernel="poly").fit(X)
    large[2:] = 1e60
    with pytest.raises(InvalidInput, match="not finite"):
        cubed.partial_fit(large)


def test_rows_on_disk_are_validated_before_the_first_batch(X, tmp_path):
    np.save(tmp_path / "rows.npy", with_nan(np.tile(X, (30, 1)), 2500))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    model = IncrementalKernelPCA(3, **RBF)
    with pytest.raises(InvalidInput, match="in rows 2500, counted from 0"):
        model.fit(mapped)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(InvalidInput, match=r"shape \(12000,\)"):
        model.fit(mapped.reshape(-1))


def test_indefinite_kernel_is_rejected(X):
    model = IncrementalKernelPCA(3, kernel="sigmoid", gamma=2.0, max_basis_rows=None)
    with pytest.raises(InvalidInput, match="positive semi-definite"):
        model.partial_fit(X)
    assert not hasattr(model, "basis_")

    def one_negative_direction(weight):
        signature = np.array([1, 1, 1, -weight])
        return IncrementalKernelPCA(2, kernel=vectorized(lambda X, Y: X * signature @ Y.T))

    with pytest.raises(InvalidInput, match="positive semi-definite"):
        one_negative_direction(1e-3).partial_fit(X)
    # Rounding is not a reason to refuse a kernel.
    assert (one_negative_direction(1e-7).partial_fit(X).eigenvalues_ > 0).all()


PARAMETERS = [
    ({"kernel": "precomputed"}, "pass rows and a kernel, or use KernelPCA"),
    ({"kernel": "unknown"}, "choose one of linear, poly"),
    ({"n_components": 0}, "must be a positive integer"),
    ({"n_components": 2.5}, "must be a positive integer"),
    ({"gamma": -1.0}, "must not be negative"),
    ({"gamma": "auto"}, "choose one of 'scale', 'median'"),
    ({"preimage": "ridge"}, "choose one of 'auto', 'fixed-point'"),
    ({"basis": "samples"}, "choose one of 'auto', 'means', 'rows', 'preimages'"),
    ({"basis": True}, "choose one of"),
    ({"max_basis_rows": 0}, "'auto', None or a positive integer"),
    ({"forgetting": 0.0}, r"must lie in \(0, 1\]"),
    ({"forgetting": 1.1}, r"must lie in \(0, 1\]"),
    ({"forgetting": np.nan}, r"must lie in \(0, 1\]"),
    ({"whiten": "yes"}, "choose one of True, False"),
    ({"n_jobs": 0}, "n_jobs=0"),
    ({"basis": "preimages", "kernel": lambda x, y: x @ y}, "needs dense rows, a kernel"),
]


def without_address(parameter):
    """The name of a test must be the same in every process."""
    return re.sub(r" at 0x\w+", "", str(parameter))


def test_parameters(X, subtests):
    for parameters, message in PARAMETERS:
        with subtests.test(message):
            settings = {"n_components": 3, "kernel": "rbf"} | parameters
            for method in ("fit", "partial_fit"):
                model = IncrementalKernelPCA(**settings)
                with pytest.raises(InvalidInput, match=message):
                    getattr(model, method)(X)
                assert not hasattr(model, "basis_")


def test_parameters_may_change_between_batches(X):
    model = IncrementalKernelPCA(3, **RBF).partial_fit(X[:50])
    before = model.eigenvalues_.copy()
    with pytest.raises(InvalidInput, match="forgetting=2"):
        model.set_params(forgetting=2.0).partial_fit(X[50:])
    assert np.array_equal(model.eigenvalues_, before)
    model.set_params(forgetting=0.5, n_components=2).partial_fit(X[50:])
    assert model.transform(X).shape == (100, 2)
