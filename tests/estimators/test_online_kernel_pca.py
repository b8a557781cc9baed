"""Public interface of ``OnlineKernelPCA``: streams in batches of any size."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.base import clone
from sklearn.decomposition import PCA

from ikpca import KernelPCA, OnlineKernelPCA
from ikpca.errors import InvalidInput
from ikpca.kernels import Gaussian
from ikpca.solvers import KHA, InverseTime
from tests.pairwise import pairwise
from tests.solver_options import with_learning_rule

R = 3
RESULTS = (
    "eigenvalues_", "explained_variance_ratio_", "basis_", "coefficients_", "mean_coefficients_",
    "mean_", "novelty_",
)  # fmt: skip


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 600)
    return np.column_stack([x, rng.normal(-(x**2), 0.2), rng.normal(scale=0.1, size=600)])


def model(**parameters):
    settings = {
        "n_components": R,
        "kernel": "rbf",
        "gamma": 0.5,
        "random_state": 0,
    }
    return OnlineKernelPCA(**with_learning_rule(settings | parameters))


def in_batches(fitted, X, size):
    for start in range(0, len(X), size):
        fitted.partial_fit(X[start : start + size])
    return fitted


def distance(first, second, X):
    return np.abs(first.transform(X) - second.transform(X)).max()


def correlations(first, second):
    return [abs(np.corrcoef(a, b)[0, 1]) for a, b in zip(first.T, second.T, strict=True)]


# --- the stream -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [{}, {"init": "random"}, {"init": np.eye(7)[:, :R]}, {"forgetting": 0.99},
     {"gain": 0.1}, {"init": np.eye(R)}],
    ids=["rows", "random", "combinations", "forgetting", "gain", "points"],
)  # fmt: skip
def test_result_does_not_depend_on_batches(X, parameters):
    X = X[:150]
    whole = model(**parameters).partial_fit(X)
    for size in (1, 7):
        parts = in_batches(model(**parameters), X, size)
        assert distance(whole, parts, X) < 1e-12
        assert np.allclose(whole.eigenvalues_, parts.eigenvalues_, rtol=1e-12)
        assert np.array_equal(whole.basis_, parts.basis_)
        last = parts.novelty_
        np.testing.assert_allclose(whole.novelty_[-len(last) :], last, atol=1e-12)
        assert whole._signal.seen == parts._signal.seen


@pairwise(
    strength=1,
    kernel=[
        {},
        {"kernel": "poly", "degree": 2, "gamma": 1.0},
        {"kernel": "sigmoid", "gamma": 0.5, "coef0": 0},
        {"kernel": "laplacian"},
        {"kernel": Gaussian(0.5), "gamma": None},
    ],
    dtype=[np.float64, np.float32],
)
def test_default_settings_approximate_batch_kernel_pca(X, kernel, dtype):
    X = X.astype(dtype)
    settings = {"kernel": "rbf", "gamma": 0.5} | kernel
    exact = KernelPCA(2, **settings).fit(X)
    fitted = OnlineKernelPCA(2, random_state=0, **settings).fit(X)
    assert fitted.transform(X).dtype == fitted.eigenvalues_.dtype == dtype
    assert min(correlations(fitted.transform(X), exact.transform(X))) > 0.98
    assert np.allclose(fitted.eigenvalues_, exact.eigenvalues_, rtol=0.1)


def test_linear_kernel_is_pca(X):
    fitted = OnlineKernelPCA(2, random_state=0).fit(np.tile(X, (3, 1)))
    exact = PCA(2).fit(X)
    # Relative to the mean of the first batch.
    origin = fitted._subspace.kernel.origin
    images = fitted.basis_ - origin
    W = fitted.coefficients_ @ images
    assert subspace_angles(W.T, exact.components_.T)[0] < 0.03
    mean = origin + fitted.mean_coefficients_ @ images
    assert np.allclose(mean, X.mean(axis=0), atol=1e-6)
    assert np.allclose(fitted.explained_variance_ratio_, exact.explained_variance_ratio_, atol=0.03)
    assert np.allclose(fitted.mean_, X.mean(axis=0))
    assert fitted.n_samples_seen_ == 3 * len(X)
    assert (
        np.abs(fitted.reconstruct(X) - X).mean()
        < 1.5 * np.abs(exact.inverse_transform(exact.transform(X)) - X).mean()
    )


@pytest.mark.parametrize("rule", [KHA("kha", gain=0.05), KHA("kha/t", gain=0.5)])
def test_gains_of_the_papers(X, rule):
    fitted = model().set_params(rule=rule).fit(np.vstack([X, X]))
    exact = KernelPCA(R, kernel="rbf", gamma=0.5).fit(X)
    assert correlations(fitted.transform(X), exact.transform(X))[0] > 0.97


@pytest.mark.parametrize("gain", [50.0, 1e12])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_too_large_gain_raises_an_error(X, gain, kernel):
    fitted = model(gain=0.05, kernel=kernel, init="random").partial_fit(X)
    before = pickle.dumps(fitted)
    fitted.set_params(rule__gain=gain)
    with pytest.raises(InvalidInput, match="gain is too large and the components diverged"):
        fitted.partial_fit(X)
    assert pickle.dumps(fitted.set_params(rule__gain=0.05)) == before


@pairwise(strength=1, kernel=["linear", "poly", "rbf", "cosine"], scale=[1e-6, 1.0, 1e4])
def test_automatic_gains_never_fail(X, kernel, scale):
    """Outliers, constant rows and any scale: finite, and without a warning."""
    rows = scale * X[:200]
    rows[50] *= 1000
    rows[60:80] = rows[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = in_batches(OnlineKernelPCA(2, kernel=kernel, random_state=0), rows, 50)
    for name in RESULTS:
        assert np.isfinite(getattr(fitted, name)).all()
    assert np.diagonal(fitted._state.gram)[:-1].max() < 4


def test_rayleigh_ritz_makes_components_orthonormal_and_ordered(X):
    fitted, plain = model().fit(X), model(rayleigh_ritz=False).fit(X)
    gram = fitted._subspace.component_gram
    assert np.abs(gram - np.eye(R)).max() < 1e-8
    assert (np.diff(fitted.eigenvalues_) <= 0).all()
    assert np.abs(plain._subspace.component_gram - np.eye(R)).max() > 1e-8
    assert np.array_equal(fitted._state.vectors, plain._state.vectors)


def test_signs_do_not_change_in_a_stream(X):
    fitted = model().partial_fit(X[:100])
    before = fitted.transform(X)
    for start in range(100, 600, 50):
        fitted.partial_fit(X[start : start + 50])
        now = fitted.transform(X)
        assert ((before * now).sum(axis=0) > 0).all()
        before = now


def test_whitened_projections_have_unit_variance(X):
    spread = model(whiten=True).fit(X).transform(X).std(axis=0, ddof=1)
    assert np.allclose(spread, 1, atol=0.15)


def test_pickle_and_clone(X):
    fitted = model().partial_fit(X[:300])
    copy = pickle.loads(pickle.dumps(fitted))
    fitted.partial_fit(X[300:])
    copy.partial_fit(X[300:])
    assert np.array_equal(fitted.transform(X), copy.transform(X))
    assert not hasattr(clone(fitted), "basis_")


def test_fit_resets_the_model(X):
    fitted = model().partial_fit(X[:50]).fit(X)
    assert np.array_equal(fitted.transform(X), model().fit(X).transform(X))


# --- novelty and drift ----------------------------------------------------------------------------


def test_novelty_is_the_error_before_learning(X):
    fitted = model().partial_fit(X[:300])
    expected = fitted.reconstruction_error(X[300:301])
    assert np.allclose(fitted.partial_fit(X[300:301]).novelty_, expected, atol=1e-10)
    strange = fitted.partial_fit(np.array([[3.0, 3.0, 3.0]])).novelty_
    assert strange > 5 * np.nanmedian(model().partial_fit(X).novelty_)


def test_only_changing_streams_signal_a_drift(X):
    rng = np.random.default_rng(1)
    fitted = model().partial_fit(X)
    assert not fitted.drift_detected_
    assert 0 <= fitted.drift_ < 1
    moved = rng.normal(size=(60, 3)) * 0.3 + [2.0, 2.0, 0.0]
    found = [fitted.partial_fit(row[None]).drift_detected_ for row in moved]
    assert any(found[:30])


# --- bad input ------------------------------------------------------------------------------------


def test_nan_in_the_middle_of_a_stream(X):
    fitted = model().partial_fit(X[:300])
    before = pickle.dumps(fitted)
    bad = X[300:400].copy()
    bad[[3, 77]] = np.nan
    with pytest.raises(InvalidInput, match=r"rows 3, 77 \(rows 303, 377 of the stream"):
        fitted.partial_fit(bad)
    with pytest.raises(ValueError, match="features"):
        fitted.partial_fit(X[300:400, :2])
    with pytest.raises(ValueError, match="0 sample"):
        fitted.partial_fit(X[:0])
    assert pickle.dumps(fitted) == before
    assert distance(fitted.partial_fit(X[300:]), in_batches(model(), X, 300), X) < 1e-8


def test_kernel_values_that_overflow():
    fitted = model(kernel="poly", degree=40, n_components=1)
    with pytest.raises(InvalidInput, match="the first of them row 1, are not finite"):
        fitted.partial_fit(np.array([[1.0], [1e10]]))
    # All rows are equal, and random points of the start are far from them.
    with pytest.raises(InvalidInput, match="overflow"):
        OnlineKernelPCA(2, kernel="rbf", gamma=1.0, rule=KHA(init="rows"), random_state=0).fit(
            np.full((40, 4), -(2**63))
        )


def test_a_kernel_that_returns_nan(X):
    """Only for pairs, which no check of single rows can see."""

    def broken(x, z):
        return np.nan if abs(x[0] - z[0]) > 1.5 else float(x @ z) + 1

    fitted = model(kernel=broken).partial_fit(X[np.abs(X[:, 0]) < 0.5][:40])
    before = fitted.transform(X[:3] * 0)
    with pytest.raises(InvalidInput, match="nothing was learned"):
        fitted.partial_fit(np.array([[0.1, 0, 0], [3.0, 0, 0]]))
    assert np.array_equal(fitted.transform(X[:3] * 0), before)


def test_single_rows_and_copies(X):
    fitted = model()
    for _ in range(5):
        fitted.partial_fit(X[:1])
    assert np.isfinite(fitted.transform(X)).all()
    assert in_batches(fitted, X, 1).eigenvalues_[0] > 0


BAD_PARAMETERS = [
    ({"n_components": 0}, "positive integer"),
    ({"n_components": None}, "positive integer"),
    ({"kernel": "precomputed"}, "KernelPCA for a kernel matrix"),
    ({"gain": -1.0}, "gain='auto'"),
    ({"forgetting": 0.0}, r"\(0, 1\]"),
    ({"forgetting": 1.1}, r"\(0, 1\]"),
    ({"init": "landmarks"}, "'random'"),
    ({"init": np.ones((2, 2))}, r"shape \(3, 3\)"),
    ({"init": np.full((3, 3), np.nan)}, "NaN"),
    ({"preimage": "ridge"}, "pre-image method"),
    ({"rule": KHA("kha-smd", gain=0.1)}, "is not a rule of streams"),
    ({"rule": KHA("kha/et", gain=0.1)}, "is not a rule of streams"),
    ({"rule": KHA("kha", gain=0.1 * InverseTime(50))}, "is not a rule of streams"),
    ({"rule": KHA("kha")}, "is not a rule of streams"),
    ({"kernel": "cosine", "preimage": "mds"}, "preimage='mds'"),
    ({"whiten": "yes"}, "whiten"),
]


def test_errors_of_invalid_parameters_name_a_remedy(X, subtests):
    for parameters, words in BAD_PARAMETERS:
        bad = model().set_params(**parameters) if "rule" in parameters else model(**parameters)
        with subtests.test(words), pytest.raises(InvalidInput, match=words):
            bad.partial_fit(X)


def test_n_components_cannot_change_in_a_stream(X):
    fitted = model().partial_fit(X[:50])
    with pytest.raises(InvalidInput, match="has 3 components"):
        fitted.set_params(n_components=2).partial_fit(X[50:])


# --- hand-over ------------------------------------------------------------------------------------


def test_fit_equals_one_batch(X):
    rows = np.vstack([X] * 3)
    fitted, batch = model().fit(rows), model().partial_fit(rows)
    np.testing.assert_array_equal(fitted.coefficients_, batch.coefficients_)
    np.testing.assert_array_equal(fitted.novelty_, batch.novelty_)
    assert fitted.drift_ == batch.drift_
