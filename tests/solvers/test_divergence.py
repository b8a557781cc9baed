"""Results are finite for all gains; a diverged pass is undone with a warning."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ikpca import KernelPCA
from ikpca.errors import DivergenceWarning
from ikpca.solvers import InverseTime, Outcome, ReciprocalEigenvalues
from ikpca.solvers.kha import METHODS
from tests.pairwise import pairwise
from tests.solver_options import with_solver

R, PASSES = 4, 10
RBF = {"kernel": "rbf", "gamma": 0.05}
#: The best of {1, 2, 5}·10^b after ten passes on the rows below, by explained share.
TUNED = {"kha": 0.1, "kha/t": 0.5, "kha/et": 0.5, "kha-smd": 0.2}


@cache
def some_digits():
    X = load_digits().data[:300] / 16
    X.flags.writeable = False
    return X


def fitted(X, method, **parameters):
    """Return the model and the warnings of its fit."""
    defaults = {"max_iter": PASSES, "random_state": 0, "n_jobs": 1}
    model = KernelPCA(R, **with_solver(method, RBF | defaults | parameters))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X)
    return model, said


def assert_finite(model, X):
    arrays = [
        model.coefficients_,
        model.eigenvalues_,
        model.eigenvectors_,
        model.explained_variance_ratio_,
        model.transform(X),
        model.explained_variance_score(X),
    ]
    for record in model.history_:
        arrays += [record.eigenvalues, record.residuals, record.gains, record.change]
    assert all(np.isfinite(array).all() for array in arrays)


def assert_said_once(model, said):
    """Check for one warning if a pass was undone, otherwise none."""
    troubled = [record for record in model.history_ if record.note]
    assert [warning.category for warning in said] == [DivergenceWarning] * bool(troubled)
    for record in troubled:
        assert "gain scaled to" in record.note
    if troubled:
        message = str(said[0].message)
        assert f"gain={model.eigen_solver.gain!r} was too large in {len(troubled)} of " in message
        assert troubled[-1].note in message
        assert "pass gain='auto' or a smaller number" in message
    return troubled


@pairwise(
    method=METHODS,
    factor=[1, 20, 1000],
    rayleigh_ritz=[True, False],
    dtype=[np.float64, np.float32],
)
def test_too_large_gains(method, factor, rayleigh_ritz, dtype):
    X = some_digits().astype(dtype)
    gain = factor * TUNED[method]
    model, said = fitted(X, method, gain=gain, rayleigh_ritz=rayleigh_ritz)
    assert_finite(model, X)
    troubled = assert_said_once(model, said)
    assert model.outcome_ is Outcome.PASS_LIMIT
    assert model.n_iter_ == len(model.history_) == PASSES
    if factor == 1:
        assert not troubled
        assert model.explained_variance_score(X) > 0.44, "of 0.4498, or the gain is not a tuned one"
    if factor == 1000:
        assert troubled, "a thousand times the tuned gain must have been noticed"
        # A step of 2/k'(p,p) and more cannot converge; ‖λ‖/λ_i and e^ρ may add a decade.
        assert model.history_[-1].gains.max() < 50 < gain


@pairwise(method=METHODS, gain=[1e30, 1e300], rayleigh_ritz=[True, False])
def test_absurd_gains(method, gain, rayleigh_ritz):
    model, said = fitted(some_digits(), method, gain=gain, rayleigh_ritz=rayleigh_ritz)
    assert_finite(model, some_digits())
    assert assert_said_once(model, said)
    if model.outcome_ is Outcome.DIVERGED:
        assert model.history_[-1].note.startswith("stopped")
        assert "pass gain='auto'" in model.outcome_.value


def test_stopped_run_returns_the_initialization():
    model, _ = fitted(some_digits(), "kha", gain=1e300, rayleigh_ritz=False)
    assert model.outcome_ is Outcome.DIVERGED
    assert model.n_iter_ == 1
    assert model.history_[0].change == 0


@pytest.mark.parametrize("rayleigh_ritz", [True, False], ids=["ritz", "papers"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"meta_gain": 1e3},
        {"meta_gain": 1e300},
        {"log_gain_init": 50.0},
        {"log_gain_init": 800.0},
        {"log_gain_init": -800.0},
        {"gain": 500 * InverseTime() * ReciprocalEigenvalues(), "meta_gain": 1e3},
        {"gain": 1e6 * ReciprocalEigenvalues()},
    ],
    ids=str,
)
def test_absurd_meta_descent_and_gain_objects(parameters, rayleigh_ritz):
    parameters = {"gain": 0.2, "rayleigh_ritz": rayleigh_ritz} | parameters
    model, said = fitted(some_digits(), "kha-smd", **parameters)
    assert_finite(model, some_digits())
    assert_said_once(model, said)


def test_an_undone_pass_is_repeated_and_still_learns():
    """Gains that are twenty times too large are reduced."""
    gentle, _ = fitted(some_digits(), "kha/et", gain=TUNED["kha/et"])
    wild, _ = fitted(some_digits(), "kha/et", gain=1000 * TUNED["kha/et"])
    first, last = wild.history_[0], wild.history_[-1]
    assert first.note
    assert last.residuals.max() < first.residuals.max()
    share = wild.explained_variance_score(some_digits()) / gentle.explained_variance_score(
        some_digits()
    )
    assert share > 0.95


def with_outlier():
    """One row five hundred times as long as the others."""
    X = some_digits().copy()
    X[7] = 300
    return X


def with_rows_at_the_mean():
    """k'(p, p) = 0 for the last rows, with the linear kernel."""
    X = some_digits() - some_digits().mean(axis=0)
    return np.vstack([X, np.zeros((5, X.shape[1]))])


def with_constant_feature():
    return np.hstack([some_digits(), np.full((300, 1), 100.0)])


HARD = {
    "outlier": (with_outlier, {"kernel": "linear"}),
    "outlier, rbf": (with_outlier, {}),
    "outlier, float32": (lambda: with_outlier().astype(np.float32), {"kernel": "linear"}),
    "rows at the mean": (with_rows_at_the_mean, {"kernel": "linear"}),
    "constant feature": (with_constant_feature, {"kernel": "linear"}),
    "repeated rows": (lambda: np.repeat(some_digits()[:60], 5, axis=0), {}),
    "float32": (lambda: some_digits().astype(np.float32), {}),
    "large numbers": (lambda: 1e6 * some_digits(), {"kernel": "poly", "gamma": 1.0, "degree": 2}),
    "small numbers": (lambda: 1e-6 * some_digits(), {"kernel": "linear"}),
    "indefinite": (some_digits, {"kernel": "sigmoid", "coef0": -1.0}),
}


@cache
def exact_share(case):
    make, parameters = HARD[case]
    X = make()
    exact = KernelPCA(R, eigen_solver="dense", **RBF | parameters).fit(X)
    return exact.eigenvalues_.sum(), exact.explained_variance_score(X)


@pairwise(
    slow=True, case=HARD, method=METHODS, rayleigh_ritz=[True, False], init=["random", "landmarks"]
)
def test_automatic_gains_never_warn(case, method, rayleigh_ritz, init):
    make, parameters = HARD[case]
    X = make()
    model, said = fitted(X, method, rayleigh_ritz=rayleigh_ritz, init=init, **parameters)
    # A kernel that is not positive semi-definite has a warning of its own.
    assert bool(said) == (model.outcome_ is Outcome.INDEFINITE) == (case == "indefinite")
    assert_finite(model, X)
    variance, share = exact_share(case)
    # Ten passes of KHA reach 97 % on plain digits; half of it would be a failure to learn.
    assert model.eigenvalues_.sum() > 0.9 * variance
    assert model.explained_variance_score(X) > 0.9 * share


def test_gains_that_are_large_integers():
    """NumPy has no integers of this size."""
    model, _ = fitted(some_digits(), "kha-smd", gain=10**30, meta_gain=10**25)
    assert_finite(model, some_digits())


def test_without_backoff_an_overflow_ends_with_the_previous_pass():
    X = some_digits()
    start = np.random.default_rng(0).normal(size=(4, len(X))) / 40
    printed = {"init": start, "rayleigh_ritz": False, "backoff": False}
    calm, _ = fitted(X, "kha", gain=TUNED["kha"], **printed)
    assert calm.outcome_ is Outcome.PASS_LIMIT
    wild, said = fitted(X, "kha", gain=1e3, **printed)
    assert wild.outcome_ is Outcome.DIVERGED
    assert len(said) == 1
    assert wild.history_[-1].change == 0
    assert np.isfinite(wild.coefficients_).all()
