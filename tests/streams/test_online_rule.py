"""Online KHA (Kim 2003, appendix A) in equivalent forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ikpca.gram import cross_gram
from ikpca.kernels import Polynomial
from ikpca.solvers import InverseTime, Product, ReciprocalEigenvalues, hebbian_step
from ikpca.solvers.kha_reference import online_step
from ikpca.streams import OnlineSettings, learn_rows, start_online
from tests.pairwise import pairwise

R, ETA = 3, 0.02
QUADRATIC = Polynomial(degree=2, gamma=1.0, coef0=1.0)
GAINS = {
    "constant": Product((ETA,)),
    "inverse time": ETA * InverseTime(50),
    "reciprocal eigenvalues": 0.5 * InverseTime(50) * ReciprocalEigenvalues(with_norm=False),
}


def features(X):
    """Φ with Φ(x)·Φ(z) = (x·z + 1)², written out."""
    squares = [
        X[:, i] * X[:, j] * (1 if i == j else np.sqrt(2)) for i in range(3) for j in range(i + 1)
    ]
    return np.column_stack([np.ones(len(X)), *(np.sqrt(2) * X.T), *squares])


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(200, 3)) * [0.8, 0.6, 0.4] + 0.2


@pytest.fixture
def points():
    return np.random.default_rng(1).normal(size=(R, 3)) * 0.5


def settings(gain, kernel=QUADRATIC, *, automatic=False, **others):
    return OnlineSettings(kernel, gain, automatic, horizon=50, **others)


def steps(state, rows, chosen):
    """Yield the state after each row."""
    for row in rows:
        state = learn_rows(state, row[None], chosen)[0]
        yield state


def test_the_features_are_those_of_the_kernel(rows):
    assert np.allclose(features(rows) @ features(rows).T, cross_gram(QUADRATIC, rows, rows))


@pytest.mark.parametrize("gain", [GAINS["constant"], GAINS["inverse time"]], ids=["η", "η/t"])
def test_every_step_is_the_explicit_one(rows, points, gain):
    """Sanger's rule on explicit features about the mean of the earlier ones."""
    chosen, W, mean = settings(gain), features(points), 0.0
    states = steps(start_online(chosen, points, np.eye(R)), rows, chosen)
    for t, (phi, state) in enumerate(zip(features(rows), states, strict=True)):
        eta = 0.0 if t == 0 else gain.gains(np.array([float(t)]), 50, np.ones(R)).item()
        y = W @ (phi - mean)
        W = W + eta * (np.outer(y, phi - mean) - np.tril(np.outer(y, y)) @ W)
        mean = mean + (phi - mean) / (t + 1)
        library = features(state.basis)
        assert np.abs(state.coefficients @ library - W).max() < 1e-10
        assert np.abs(state.mean @ library - mean).max() < 1e-10


def uncentered(initial, centered):
    """Coefficients of Σ_k a_k(Φ_k − mean) on the patterns, beside those of the initial points."""
    return np.hstack([initial, centered - centered.mean(axis=1, keepdims=True)])


def test_equations_15_to_17_corrected(rows, points):
    """With y_i and sums to i, and initial points that are left out of the mean: the same steps."""
    chosen = settings(Product((ETA,)))
    states = steps(start_online(chosen, points, np.eye(R)), rows[:60], chosen)
    next(states)
    initial, a = np.eye(R), np.zeros((R, 1))
    for t, state in enumerate(states, start=1):
        seen, new = rows[:t], rows[t : t + 1]
        K, k = cross_gram(QUADRATIC, seen, seen), cross_gram(QUADRATIC, seen, new)[:, 0]
        # Eq. 15, and what the initial points add to it.
        y = a @ k - a @ K.mean(axis=1) - k.mean() * a.sum(axis=1) + K.mean() * a.sum(axis=1)
        from_points = cross_gram(QUADRATIC, points, np.vstack([new, seen]))
        y = y + initial @ (from_points[:, 0] - from_points[:, 1:].mean(axis=1))
        # Eq. 17: b are the shrunk old coefficients.
        L = np.tril(np.outer(y, y))
        b, initial = a - ETA * L @ a, initial - ETA * L @ initial
        a = np.column_stack([b, ETA * y + (b.sum(axis=1) + ETA * y) / t])
        assert np.abs(uncentered(initial, a) - state.coefficients).max() < 1e-10


def test_appendix_as_printed_never_learns(rows):
    """With x(0) in the mean, w(0) = Φ(x(0)) − Φ(x(0)), and y stays zero."""
    a = np.ones((R, 1))
    for t in range(1, 30):
        seen, new = rows[:t], rows[t : t + 1]
        K, k = cross_gram(QUADRATIC, seen, seen), cross_gram(QUADRATIC, seen, new)[:, 0]
        y = a @ k - a @ K.mean(axis=1) - k.mean() * a.sum(axis=1) + K.mean() * a.sum(axis=1)
        assert np.abs(y).max() < 1e-11
        b = a - ETA * np.tril(np.outer(y, y)) @ a
        a = np.column_stack([b, ETA * y + (b.sum(axis=1) + ETA * y) / t])
    assert np.abs(a - a.mean(axis=1, keepdims=True)).max() < 1e-11


@pytest.mark.parametrize("name", ["constant", "inverse time"])
def test_a_block_is_the_rule_pattern_by_pattern(rows, points, kernel, name):
    rows, points = np.hstack([rows, rows[:, :2]]), np.hstack([points, points[:, :2]])
    kernel_scale = float(np.abs(kernel.diagonal(rows)).max())
    gain = (1 / kernel_scale) * GAINS[name]
    chosen = settings(gain, kernel)
    first = start_online(chosen, points, np.eye(R) / np.sqrt(kernel_scale))
    state, _, halvings = learn_rows(first, rows, chosen)
    alpha, nu, library = np.eye(R) / np.sqrt(kernel_scale), np.zeros(R), points
    for t, row in enumerate(rows):
        h = 0.0 if t == 0 else gain.gains(np.array([float(t)]), 50, np.ones(R)).item()
        K, k = cross_gram(kernel, library, library), cross_gram(kernel, library, row[None])[:, 0]
        alpha, nu = online_step(alpha, nu, K, k, h, 1 / (t + 1))
        library = np.vstack([library, row])
    assert halvings == 0
    assert np.abs(state.coefficients - alpha).max() < 1e-12
    assert np.abs(state.mean - nu).max() < 1e-12


@pairwise(slow=True, name=GAINS, size=[1, 7, 100], automatic=[True, False])
def test_result_does_not_depend_on_batches(rows, points, name, size, automatic):
    chosen = settings(GAINS[name], automatic=automatic, memory=80.0)
    first = start_online(chosen, points, 0.5 * np.eye(R))
    state, errors, _ = learn_rows(first, rows, chosen)
    other, others = first, []
    for begin in range(0, len(rows), size):
        other, found, _ = learn_rows(other, rows[begin : begin + size], chosen)
        others.append(found)
    for field in ("coefficients", "mean", "lengths", "moments", "with_mean"):
        assert np.abs(getattr(state, field) - getattr(other, field)).max() < 1e-12
    assert np.abs(errors - np.concatenate(others)).max() < 1e-11


@pytest.mark.parametrize("name", GAINS)
def test_inner_products_are_carried_along(rows, points, name):
    chosen = settings(GAINS[name], memory=60.0)
    state = learn_rows(start_online(chosen, points, 0.5 * np.eye(R)), rows, chosen)[0]
    K = cross_gram(QUADRATIC, state.basis, state.basis)
    W = state.coefficients[:R]
    assert np.abs(W @ K @ W.T - state.lengths).max() < 1e-11
    assert np.abs(state.coefficients @ K @ state.mean - state.with_mean).max() < 1e-11
    assert abs(state.mean @ K @ state.mean - state.mean_length) < 1e-11


def test_errors_are_those_of_the_model_before_each_row(rows, points):
    chosen = settings(Product((ETA,)))
    first = learn_rows(start_online(chosen, points, 0.5 * np.eye(R)), rows[:50], chosen)[0]
    errors = learn_rows(first, rows[50:60], chosen)[1]
    for row, error, state in zip(
        rows[50:60], errors, [first, *steps(first, rows[50:59], chosen)], strict=True
    ):
        assert abs(state.subspace(QUADRATIC, ritz=False)[0].residuals(row[None])[0] - error) < 1e-10


def test_with_a_fixed_mean_the_rule_is_kha(rows, points):
    """Compare with the batch rule: K' of the rows, and y from its columns."""
    chosen = settings(Product((ETA,)), memory=1e300)
    seen = learn_rows(start_online(chosen, points, 0.5 * np.eye(R)), rows, chosen)[0]
    fixed = replace(seen, seen=10**15)
    after = learn_rows(fixed, rows[:20], chosen)[0]
    Phi = features(rows) - features(rows).mean(axis=0)
    library = features(seen.basis)
    W = seen.coefficients @ library
    # The first rows again, as unit vectors beside the components: A = [I, 0] on [W; Φ'].
    basis = np.vstack([W, Phi[:20]])
    K, A = basis @ basis.T, np.hstack([np.eye(R), np.zeros((R, 20))])
    for p in range(20):
        A = hebbian_step(A, K[:, R + p], R + p, ETA)
    assert np.abs(after.coefficients @ features(after.basis) - A @ basis).max() < 1e-10


def test_rayleigh_ritz_keeps_the_span(rows, points):
    chosen = settings(GAINS["reciprocal eigenvalues"], automatic=True)
    state = learn_rows(start_online(chosen, points, 0.5 * np.eye(R)), rows, chosen)[0]
    plain, _ = state.subspace(QUADRATIC, ritz=False)
    turned, variances = state.subspace(QUADRATIC, ritz=True)
    assert np.abs(turned.component_gram - np.eye(R)).max() < 1e-10
    assert (np.diff(variances) <= 0).all()
    assert np.allclose(plain.residuals(rows), turned.residuals(rows), atol=1e-9)
