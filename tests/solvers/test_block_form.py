"""The block form equals the papers' rule, pattern by pattern."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca.solvers import hebbian_step, hebbian_step_with_products, meta_step
from ikpca.solvers.kha_pass import OK, meta_sweep, plain_sweep
from tests.pairwise import pairwise

N_SAMPLES, R, M = 40, 5, 200
NO_LIMIT = np.inf
TOLERANCE = {np.float64: 1e-12, np.float32: 2e-4}


@pytest.fixture(scope="module")
def gram():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N_SAMPLES, 4))
    K = np.exp(-0.3 * np.square(X[:, None] - X[None]).sum(axis=2))
    H = np.eye(N_SAMPLES) - 1 / N_SAMPLES
    return K, H @ K @ H


@pytest.fixture(scope="module")
def start():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(R, N_SAMPLES)) / np.sqrt(R * N_SAMPLES)
    B = 0.05 * rng.normal(size=(R, N_SAMPLES))
    patterns = rng.integers(0, N_SAMPLES, size=M)
    assert len(np.unique(patterns[:M])) < M, "repeated patterns must be part of the test"
    return A, B, patterns


def gains(method: str) -> np.ndarray:
    """Return gains of the shape (steps, components) of each method."""
    rng = np.random.default_rng(3)
    decay = N_SAMPLES / (np.arange(M) + N_SAMPLES)
    per_component = rng.uniform(0.5, 2.0, size=R)
    return {
        "kha": np.full((M, R), 0.2),
        "kha/t": 0.2 * np.repeat(decay[:, None], R, axis=1),
        "kha/et": 0.2 * np.outer(decay, per_component),
        "kha-smd": 0.2 * np.outer(decay, per_component),
    }[method]


def by_blocks(K, rows, patterns, size, sweep_block, dtype):
    """Apply sweeps block by block; return R and RK' in a precision."""
    R, K = rows.astype(dtype), K.astype(dtype)
    products = R @ K
    for begin in range(0, len(patterns), size):
        block = patterns[begin : begin + size]
        Y = products[:, block].astype(np.float64, order="C")
        G, steps = K[np.ix_(block, block)].astype(np.float64), slice(begin, begin + len(block))
        T, C = (part.astype(dtype) for part in sweep_block(Y, G, steps, R, products))
        products = T @ products + C @ K[block]
        R = T @ R
        np.add.at(R.T, block, C.T)
    return R, products


@pairwise(
    method=["kha", "kha/t", "kha/et"],
    size=[1, 7, 64, N_SAMPLES, M],
    dtype=[np.float64, np.float32],
)
def test_plain_methods(gram, start, method, size, dtype):
    _, centered_K = gram
    A, _, patterns = start
    eta = gains(method)

    def sweep_block(Y, G, steps, *_):
        T, C, failed = plain_sweep(Y, G, eta[steps], False, np.full(len(G), NO_LIMIT))
        assert failed == OK
        return T, C

    found, products = by_blocks(centered_K, A, patterns, size, sweep_block, dtype)
    expected = A
    for step, p in enumerate(patterns):
        expected = hebbian_step(expected, centered_K[:, p], p, eta[step])
    np.testing.assert_allclose(found, expected, atol=TOLERANCE[dtype])
    np.testing.assert_allclose(products, expected @ centered_K, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 7, N_SAMPLES, M])
def test_meta_descent(gram, start, size, dtype):
    _, centered_K = gram
    A, B, patterns = start
    eta, log_gains = gains("kha-smd"), np.zeros(R)

    def sweep_block(YZ, G, steps, rows, products):
        nonlocal log_gains
        inner = products.astype(np.float64) @ rows.T.astype(np.float64)
        T, C, failed, log_gains = meta_sweep(
            YZ, G, eta[steps], False, np.full(len(G), NO_LIMIT), inner[:R, :R].copy(),
            inner[:R, R:].copy(), log_gains, 0.4, 0.99, np.inf, np.inf,
        )  # fmt: skip
        assert failed == OK
        return T, C

    found, _ = by_blocks(centered_K, np.vstack([A, B]), patterns, size, sweep_block, dtype)
    state = (A, B, A @ centered_K, np.zeros(R))
    for step, p in enumerate(patterns):
        state = meta_step(*state, centered_K[:, p], p, eta[step], 0.4, 0.99)
    assert np.abs(state[3]).max() > 0.05, "the log-gains must have moved"
    np.testing.assert_allclose(found, np.vstack(state[:2]), atol=TOLERANCE[dtype])
    np.testing.assert_allclose(log_gains, state[3], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("n_components", [1, 2])
def test_meta_descent_with_few_components(gram, start, n_components):
    _, centered_K = gram
    A, B, patterns = start[0][:n_components], start[1][:n_components], start[2]
    eta = gains("kha-smd")[:, :n_components].copy()
    zero = np.zeros(n_components)
    T, C, _, log_gains = meta_sweep(
        np.vstack([A, B]) @ centered_K[:, patterns], centered_K[np.ix_(patterns, patterns)], eta,
        False, np.full(M, NO_LIMIT), A @ centered_K @ A.T, A @ centered_K @ B.T, zero, 0.4, 0.99,
        np.inf, np.inf,
    )  # fmt: skip
    found = T @ np.vstack([A, B])
    np.add.at(found.T, patterns, C.T)
    state = (A, B, A @ centered_K, zero)
    for step, p in enumerate(patterns):
        state = meta_step(*state, centered_K[:, p], p, eta[step], 0.4, 0.99)
    np.testing.assert_allclose(found, np.vstack(state[:2]), atol=1e-12)
    np.testing.assert_allclose(log_gains, state[3], atol=1e-12)


def test_meta_descent_without_rate_is_reciprocal_eigenvalues(gram, start):
    _, centered_K = gram
    A, B, patterns = start
    eta = gains("kha/et")
    state = (A, B, A @ centered_K, np.zeros(R))
    plain = A
    for step, p in enumerate(patterns):
        state = meta_step(*state, centered_K[:, p], p, eta[step], 0.0, 0.99)
        plain = hebbian_step(plain, centered_K[:, p], p, eta[step])
    np.testing.assert_allclose(state[0], plain, atol=1e-14)


def test_products_follow_the_coefficients(gram, start):
    _, centered_K = gram
    A, _, patterns = start
    state = (A, A @ centered_K)
    for p in patterns:
        state = hebbian_step_with_products(*state, centered_K[:, p], p, 0.2)
    np.testing.assert_allclose(state[1], state[0] @ centered_K, atol=1e-13)


def test_cap_is_the_rule_with_capped_gains(gram, start):
    _, centered_K = gram
    A, _, patterns = start
    eta = 30 * gains("kha/et")
    expected = A
    n_capped = 0
    for step, p in enumerate(patterns):
        y = expected @ centered_K[:, p]
        cap = 1 / np.maximum(centered_K[p, p], np.cumsum(y * y))
        n_capped += (eta[step] > cap).sum()
        expected = hebbian_step(expected, centered_K[:, p], p, np.minimum(eta[step], cap))
    assert 0 < n_capped < eta.size
    Y, G = A @ centered_K[:, patterns], centered_K[np.ix_(patterns, patterns)]
    T, C, _ = plain_sweep(Y, G, eta, True, np.full(M, NO_LIMIT))
    found = T @ A
    np.add.at(found.T, patterns, C.T)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_log_gains_stay_within_their_bounds(gram, start):
    _, centered_K = gram
    A, B, patterns = start
    Y, G = np.vstack([A, B]) @ centered_K[:, patterns], centered_K[np.ix_(patterns, patterns)]
    inner = (A @ centered_K @ A.T, A @ centered_K @ B.T)
    log_gains = meta_sweep(
        Y, G, gains("kha-smd"), True, np.full(M, NO_LIMIT), *inner, np.zeros(R), 50.0, 0.99, 0.1,
        0.7,
    )[3]  # fmt: skip
    assert np.abs(log_gains).max() == pytest.approx(0.7)


def test_divergence_names_the_step(gram, start):
    _, centered_K = gram
    A, B, patterns = start
    Y, G = A @ centered_K[:, patterns], centered_K[np.ix_(patterns, patterns)]
    limits = np.full(M, 2 * np.diag(G).max())
    T, C, failed = plain_sweep(Y, G, np.full((M, R), 50.0), False, limits)
    expected = A
    for step, p in enumerate(patterns):
        y = expected @ centered_K[:, p]
        if not y @ y <= limits[step]:
            break
        expected = hebbian_step(expected, centered_K[:, p], p, 50.0)
    assert failed == step > 0
    # What the steps before it have done is returned.
    found = T @ A
    np.add.at(found.T, patterns, C.T)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    YZ, inner = (
        np.vstack([Y, B @ centered_K[:, patterns]]),
        (A @ centered_K @ A.T, np.zeros((R, R))),
    )

    def failed_step(YZ):
        return meta_sweep(YZ, G, np.full((M, R), 50.0), False, limits, *inner, np.zeros(R), 0.0,
                          0.5, 1.0, 1.0)[2]  # fmt: skip

    assert failed_step(YZ) == step
    YZ[-1, step - 1] = np.inf
    assert failed_step(YZ) == step - 1
