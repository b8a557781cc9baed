"""Online KHA (Kim 2003, appendix A) in equivalent forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ikpca.gram import cross_gram
from ikpca.kernels import Polynomial
from ikpca.solvers import hebbian_step
from ikpca.solvers.kha_reference import online_step
from ikpca.streams import OnlineState
from tests.pairwise import pairwise

R, ETA = 3, 0.02
QUADRATIC = Polynomial(degree=2, gamma=1.0, coef0=1.0)


def constant(times):
    return np.full(len(times), ETA)


def inverse_time(times):
    return ETA * 50 / (times + 50)


#: Gain, and whether it is divided by λ.
GAINS = {
    "constant": (constant, False),
    "inverse time": (inverse_time, False),
    "automatic": (lambda times: 2 / (times + 20), True),
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


def start(points):
    """Components of unit length on the points."""
    return OnlineState.from_points(QUADRATIC, points, np.eye(R))


def learn(state, rows, gain=constant, automatic=False, **options):
    return state.learn(QUADRATIC, rows, gain, automatic=automatic, **options)


def steps(state, rows, gain=constant):
    """Yield the state after each row."""
    for row in rows:
        state = learn(state, row[None], gain)[0]
        yield state


def test_the_features_are_those_of_the_kernel(rows):
    assert np.allclose(features(rows) @ features(rows).T, cross_gram(QUADRATIC, rows, rows))


@pytest.mark.parametrize("gain", [constant, inverse_time])
def test_every_step_is_the_explicit_one(rows, points, gain):
    """Sanger's rule on explicit features about the mean of the earlier ones."""
    W, mean = features(points), 0.0
    W = W / np.linalg.norm(W, axis=1, keepdims=True)
    states = steps(start(points), rows, gain)
    for t, (phi, state) in enumerate(zip(features(rows), states, strict=True)):
        eta = 0.0 if t == 0 else gain(np.array([t])).item()
        y = W @ (phi - mean)
        W = W + eta * (np.outer(y, phi - mean) - np.tril(np.outer(y, y)) @ W)
        mean = mean + (phi - mean) / (t + 1)
        library = features(state.basis)
        assert np.abs(state.vectors[:-1] @ library - W).max() < 1e-10
        assert np.abs(state.vectors[-1] @ library - mean).max() < 1e-10


def uncentered(initial, centered):
    """Coefficients of Σ_k a_k(Φ_k − mean) on the patterns, beside those of the initial points."""
    return np.hstack([initial, centered - centered.mean(axis=1, keepdims=True)])


def test_equations_15_to_17_corrected(rows, points):
    """With y_i and sums to i, and initial points that are left out of the mean: the same steps."""
    states = steps(start(points), rows[:60])
    next(states)
    initial, a = start(points).vectors[:-1], np.zeros((R, 1))
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
        assert np.abs(uncentered(initial, a) - state.vectors[:-1]).max() < 1e-10


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


@pytest.mark.parametrize("gain", [constant, inverse_time])
def test_a_block_is_the_rule_pattern_by_pattern(rows, points, kernel, gain):
    rows, points = np.hstack([rows, rows[:, :2]]), np.hstack([points, points[:, :2]])
    scale = float(np.abs(kernel.diagonal(rows)).max())
    first = OnlineState.from_points(kernel, points, np.eye(R))
    state, _ = first.learn(kernel, rows, lambda times: gain(times) / scale, automatic=False)
    alpha, nu, library = first.vectors[:-1], np.zeros(R), points
    for t, row in enumerate(rows):
        h = 0.0 if t == 0 else gain(np.array([t])).item() / scale
        K, k = cross_gram(kernel, library, library), cross_gram(kernel, library, row[None])[:, 0]
        alpha, nu = online_step(alpha, nu, K, k, h, 1 / (t + 1))
        library = np.vstack([library, row])
    assert np.abs(state.vectors[:-1] - alpha).max() < 1e-12
    assert np.abs(state.vectors[-1] - nu).max() < 1e-12


@pairwise(slow=True, name=GAINS, size=[1, 7, 100], memory=[np.inf, 80.0])
def test_result_does_not_depend_on_batches(rows, points, name, size, memory):
    state, errors = learn(start(points), rows, *GAINS[name], memory=memory)
    other, others = start(points), []
    for begin in range(0, len(rows), size):
        batch = rows[begin : begin + size]
        other, found = learn(other, batch, *GAINS[name], memory=memory)
        others.append(found)
    for field in ("vectors", "gram", "moments"):
        assert np.abs(getattr(state, field) - getattr(other, field)).max() < 1e-12
    assert np.abs(errors - np.concatenate(others)).max() < 1e-11


@pytest.mark.parametrize("name", GAINS)
def test_inner_products_are_carried_along(rows, points, name):
    state = learn(start(points), rows, *GAINS[name], memory=60.0)[0]
    K = cross_gram(QUADRATIC, state.basis, state.basis)
    assert np.abs(state.vectors @ K @ state.vectors.T - state.gram).max() < 1e-11


def test_errors_are_those_of_the_model_before_each_row(rows, points):
    first = learn(start(points), rows[:50])[0]
    errors = learn(first, rows[50:60])[1]
    for row, error, state in zip(
        rows[50:60], errors, [first, *steps(first, rows[50:59])], strict=True
    ):
        assert abs(state.subspace(QUADRATIC, ritz=False)[0].residuals(row[None])[0] - error) < 1e-10


def test_with_a_fixed_mean_the_rule_is_kha(rows, points):
    """Compare with the batch rule: K' of the rows, and y from its columns."""
    seen = learn(start(points), rows, memory=1e300)[0]
    fixed = replace(seen, seen=10**15)
    after = learn(fixed, rows[:20], memory=1e300)[0]
    Phi = features(rows) - features(rows).mean(axis=0)
    library = features(seen.basis)
    W = seen.vectors[:-1] @ library
    # The first rows again, as unit vectors beside the components: A = [I, 0] on [W; Φ'].
    basis = np.vstack([W, Phi[:20]])
    K, A = basis @ basis.T, np.hstack([np.eye(R), np.zeros((R, 20))])
    for p in range(20):
        A = hebbian_step(A, K[:, R + p], R + p, ETA)
    assert np.abs(after.vectors[:-1] @ features(after.basis) - A @ basis).max() < 1e-10


def test_rayleigh_ritz_keeps_the_span(rows, points):
    state = learn(start(points), rows, *GAINS["automatic"])[0]
    plain, _ = state.subspace(QUADRATIC, ritz=False)
    turned, variances = state.subspace(QUADRATIC, ritz=True)
    assert np.abs(turned.component_gram - np.eye(R)).max() < 1e-10
    assert (np.diff(variances) <= 0).all()
    assert np.allclose(plain.residuals(rows), turned.residuals(rows), atol=1e-9)


def test_start_from_rows_is_kernel_pca(rows, points):
    """Points replace components without variance."""
    state = OnlineState.from_rows(QUADRATIC, rows, points)
    Phi = features(rows)
    W, values = state.vectors[:-1] @ features(state.basis), np.linalg.eigvalsh(np.cov(Phi.T))
    assert np.abs(W @ W.T - np.eye(R)).max() < 1e-10
    assert np.abs(state.vectors[-1] @ features(state.basis) - Phi.mean(axis=0)).max() < 1e-12
    variances = state.subspace(QUADRATIC, ritz=True)[1]
    assert np.allclose(variances, values[::-1][:R] * (199 / 200), rtol=1e-10)
    state = OnlineState.from_rows(QUADRATIC, rows[:2], points)
    assert np.array_equal(state.basis, np.vstack([rows[:2], points[1:]]))
    assert np.allclose(np.diagonal(state.gram)[:-1], 1)
