"""``HebbianPCA``: comparison with scikit-learn's PCA, in passes and on a stream."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.base import clone
from sklearn.decomposition import PCA

from ikpca import HebbianPCA
from ikpca.errors import InvalidInput
from ikpca.solvers import KHA, InverseTime
from tests.pairwise import pairwise
from tests.solver_options import with_learning_rule

R = 3
RESULTS = ("components_", "mean_", "explained_variance_", "explained_variance_ratio_")


@pytest.fixture
def X():
    """Two thousand rows with well separated variances: 16, 9, 4, 1, …, away from the origin."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    scales = np.array([4.0, 3.0, 2.0, 1.0, 0.5, 0.5, 0.2, 0.1])
    return rng.normal(size=(2000, 8)) * scales @ turn + 5


def model(**parameters):
    given = {"n_components": R, "random_state": 0, "max_iter": 20} | parameters
    return HebbianPCA(**with_learning_rule(given))


def angle(first, second):
    """Return the largest angle between the subspaces of two sets of components."""
    return subspace_angles(first.components_.T, second.components_.T)[0]


def same(first, second):
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in RESULTS)


def in_batches(fitted, X, size):
    for start in range(0, len(X), size):
        fitted.partial_fit(X[start : start + size])
    return fitted


# --- fit ------------------------------------------------------------------------------------------


@pairwise(strength=1, gain=["auto", 1e-4, 0.005 * InverseTime()], dtype=[np.float64, np.float32])
def test_agrees_with_pca(X, gain, dtype):
    X = X.astype(dtype)
    fitted, exact = model(gain=gain).fit(X), PCA(R).fit(X)
    # A stochastic rule after twenty passes: a few thousandths of a right angle.
    assert angle(fitted, exact) < 0.02
    np.testing.assert_allclose(fitted.explained_variance_, exact.explained_variance_, rtol=1e-3)
    np.testing.assert_allclose(
        fitted.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-3
    )
    np.testing.assert_allclose(fitted.mean_, exact.mean_, rtol=1e-5)
    for name in RESULTS:
        assert getattr(fitted, name).dtype == dtype, name
    assert fitted.transform(X).dtype == dtype
    assert fitted.n_samples_seen_ == 2000
    assert fitted.n_components_ == R


def test_components_are_orthonormal_and_ordered(X):
    fitted = model(max_iter=3).fit(X)
    np.testing.assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(R), atol=1e-10)
    assert (np.diff(fitted.explained_variance_) < 0).all()


def test_sangers_rule_without_rayleigh_ritz(X):
    """A constant gain leaves a little noise; components are ordered by the rule itself."""
    fitted, exact = model(gain=1e-4, rayleigh_ritz=False).fit(X), PCA(R).fit(X)
    cosines = np.abs(np.sum(fitted.components_ * exact.components_, axis=1))
    np.testing.assert_allclose(cosines, 1, atol=0.02)


def test_all_components_explain_everything(X):
    fitted = HebbianPCA(None, random_state=0, max_iter=5).fit(X)
    assert fitted.components_.shape == (8, 8)
    assert fitted.explained_variance_ratio_.sum() == pytest.approx(1, abs=1e-9)


def test_rows_are_not_modified(X):
    X.flags.writeable = False
    init = np.eye(R, 8)
    init.flags.writeable = False
    model(init=init, max_iter=2).fit(X).partial_fit(X)


def test_transform_centres_and_projects(X):
    fitted = model().fit(X)
    expected = (X - X.mean(axis=0)) @ fitted.components_.T
    np.testing.assert_allclose(fitted.transform(X), expected, atol=1e-10)
    np.testing.assert_allclose(model().fit_transform(X), expected, atol=1e-10)


def test_inverse_transform_is_that_of_pca(X):
    fitted, exact = model().fit(X), PCA(R).fit(X)
    restored = fitted.inverse_transform(fitted.transform(X))
    expected = exact.inverse_transform(exact.transform(X))
    error, minimum = (np.square(X - rows).mean() for rows in (restored, expected))
    assert minimum <= error < 1.001 * minimum


@pytest.mark.parametrize("gain", ["auto", 1e-4])
def test_a_seed_fixes_every_bit(X, gain):
    assert same(model(gain=gain).fit(X), model(gain=gain).fit(X))
    assert not same(model(gain=gain).fit(X), model(gain=gain, random_state=1).fit(X))


def test_pickle_and_clone(X):
    fitted = model(gain=0.005 * InverseTime()).fit(X)
    loaded = pickle.loads(pickle.dumps(fitted))
    assert same(loaded, fitted)
    assert same(loaded.partial_fit(X), fitted.partial_fit(X)), "the stream is part of the model"
    assert same(clone(fitted).fit(X), model(gain=0.005 * InverseTime()).fit(X))


def test_names(X):
    pytest.importorskip("pandas")
    frame = model(max_iter=2).set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["hebbianpca0", "hebbianpca1", "hebbianpca2"]


# --- partial_fit ---------------------------------------------------------------------------------


@pairwise(strength=1, gain=["auto", 2e-3, 0.02 * InverseTime()], size=[50, 333])
def test_a_stream_approaches_pca(X, gain, size):
    exact, fitted = PCA(R).fit(X), model(gain=gain)
    in_batches(fitted, X[:200], size)
    early = angle(fitted, exact)
    for _ in range(5):
        in_batches(fitted, X, size)
    assert angle(fitted, exact) < max(0.15, early / 2)
    assert fitted.n_samples_seen_ == 200 + 5 * len(X)
    # The early part of a running mean was taken with components that were still turning.
    np.testing.assert_allclose(fitted.explained_variance_, exact.explained_variance_, rtol=0.2)
    weights = (X[:200].sum(axis=0) + 5 * X.sum(axis=0)) / fitted.n_samples_seen_
    np.testing.assert_allclose(fitted.mean_, weights, rtol=1e-10)


def test_components_of_a_stream_are_nearly_orthonormal(X):
    fitted = in_batches(model(), X, 100)
    np.testing.assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(R), atol=0.1)


def test_rows_one_at_a_time(X):
    exact = PCA(R).fit(X)
    fitted = in_batches(model(), X, 1)
    assert fitted.n_samples_seen_ == 2000
    np.testing.assert_allclose(fitted.mean_, exact.mean_, rtol=1e-10)
    assert angle(fitted, exact) < 0.5
    assert np.isfinite(fitted.components_).all()


def test_partial_fit_continues_after_fit(X):
    fitted, exact = model().fit(X), PCA(R).fit(X)
    before = fitted.components_.copy()
    fitted.partial_fit(X[:500])
    assert fitted.n_samples_seen_ == 2500
    assert not np.array_equal(fitted.components_, before)
    assert angle(fitted, exact) < 0.1, "a stream goes on from where the fit ended"


def test_stream_follows_a_rotation(X):
    turned = (X - 5)[:, ::-1] * 2 + 5
    fitted = model().fit(X)
    start = angle(fitted, PCA(R).fit(turned))
    for _ in range(10):
        in_batches(fitted, turned, 100)
    assert angle(fitted, PCA(R).fit(turned)) < start / 2


def test_fit_resets_the_model(X):
    fitted = in_batches(model(), X, 100)
    assert same(fitted.fit(X), model().fit(X))


def test_partial_fit_starts_from_init(X):
    exact = PCA(R).fit(X)
    fitted = model(init=exact.components_, gain=1e-9).partial_fit(X)
    np.testing.assert_allclose(fitted.components_, exact.components_, atol=1e-5)
    np.testing.assert_allclose(fitted.explained_variance_, exact.explained_variance_, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_streams_keep_the_precision(X, dtype):
    fitted = in_batches(model(), X.astype(dtype), 500)
    for name in RESULTS:
        assert getattr(fitted, name).dtype == dtype, name


@pytest.mark.parametrize("size", [500, 200_000])
def test_means_of_many_rows_far_from_the_origin(size):
    """A sum of so many rows, or of such small steps of the mean, is wrong in single precision."""
    rows = (1000 + np.random.default_rng(0).normal(size=(200_000, 2))).astype(np.float32)
    passes = model(n_components=2, max_iter=2)
    for fitted in (passes.fit(rows), in_batches(model(n_components=2), rows, size)):
        np.testing.assert_allclose(fitted.mean_, rows.mean(axis=0, dtype=np.float64), rtol=1e-7)
        np.testing.assert_allclose(fitted.explained_variance_, 1, rtol=0.01)
        np.testing.assert_allclose(fitted.explained_variance_ratio_.sum(), 1, rtol=1e-3)


# --- divergence ----------------------------------------------------------------------------------


@pairwise(strength=1, gain=[1.0, 1e3, 1e30, 1e300], method=["fit", "partial_fit"])
def test_too_large_gain_raises_an_error(X, gain, method):
    fitted = model().partial_fit(X)
    before = pickle.dumps(fitted)
    rule = fitted.rule
    fitted.set_params(rule=KHA("kha", gain=gain))
    with pytest.raises(InvalidInput, match=r"gain=.* is too large.*pass gain='auto'"):
        getattr(fitted, method)(X)
    assert pickle.dumps(fitted.set_params(rule=rule)) == before


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_automatic_gains_do_not_warn_of_an_outlier(X, method):
    X = X.copy()
    X[70] = 1e4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = getattr(model(), method)(X)
    assert all(np.isfinite(getattr(fitted, name)).all() for name in RESULTS)


@pytest.mark.parametrize("size", [1, 10])
def test_stream_may_start_with_equal_rows(X, size):
    """Without variance, steps are finite and the mean is updated."""
    fitted = model().partial_fit(np.ones((size, 8)))
    np.testing.assert_allclose(fitted.mean_, 1)
    assert not fitted.transform(np.ones((2, 8))).any()
    for _ in range(3):
        in_batches(fitted, X, 100)
    assert angle(fitted, PCA(R).fit(X)) < 0.3


def test_an_interrupted_fit_changes_nothing(X, monkeypatch):
    learn, calls = HebbianPCA._learn, []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return learn(*arguments, **options)

    fitted = model().fit(X)
    before = fitted.components_.copy()
    monkeypatch.setattr(HebbianPCA, "_learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X[:50])
    assert np.array_equal(fitted.components_, before)
    assert fitted.n_samples_seen_ == len(X)
