"""Passes of the Hebbian solvers: blocks, states, and sampled residuals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ikpca.gram import PrecomputedGram, center_gram, read_budget
from ikpca.solvers import KHA, Plan, Problem, RunSettings, hebbian_step, meta_step
from ikpca.solvers.kha import METHODS
from ikpca.solvers.kha_pass import HebbianPasses, sampled_residuals
from tests.conftest import explicitly_centered
from tests.pairwise import pairwise

N_SAMPLES, R, PASSES, SEED = 60, 4, 2, 3
ETA, MU, XI, RHO = 0.2, 0.1, 0.9, 0.5
#: The rule that the solver follows: without a Rayleigh–Ritz step, and without automatic gains.
OPTIONS = {"gain": ETA, "rayleigh_ritz": False}
META_OPTIONS = {"meta_gain": MU, "meta_decay": XI, "log_gain_init": RHO}


@pytest.fixture
def K():
    X = np.random.default_rng(0).normal(size=(N_SAMPLES, 4))
    return np.exp(-0.3 * np.square(X[:, None] - X[None]).sum(axis=2))


@pytest.fixture
def start():
    return np.random.default_rng(1).normal(size=(R, N_SAMPLES)) / np.sqrt(R * N_SAMPLES)


def solver_of(method, start, clock="pattern"):
    meta = META_OPTIONS if method == "kha-smd" else {}
    return KHA(method, init=start, clock=clock, **OPTIONS, **meta)


def by_pattern(K, A, method, clock):
    """Return A after all passes, in the order of the solver, with λ estimated once per pass."""
    centered, gain = explicitly_centered(K), KHA(method, gain=ETA).gain_for(1.0)
    state = (A, np.zeros_like(A), A @ centered, np.full(R, RHO))
    for number in range(PASSES):
        A, _, AK, _ = state
        eigenvalues = np.linalg.norm(AK, axis=1) / np.linalg.norm(A, axis=1)
        times = number * N_SAMPLES + np.arange(N_SAMPLES) * (clock == "pattern")
        eta = np.broadcast_to(gain.gains(times, N_SAMPLES, eigenvalues), (N_SAMPLES, R))
        order = np.random.default_rng([SEED, 1, number]).permutation(N_SAMPLES)
        for step, p in enumerate(order):
            if method == "kha-smd":
                state = meta_step(*state, centered[p], p, eta[step], MU, XI)
            else:
                A = hebbian_step(state[0], centered[p], p, eta[step])
                state = (A, state[1], A @ centered, state[3])
    return state[0]


@pairwise(
    method=METHODS,
    size=[1, 7, N_SAMPLES],
    dtype=[np.float64, np.float32],
    n_threads=[1, 2],
    clock=["pattern", "pass"],
)
def test_passes_are_the_rule_pattern_by_pattern(
    K, start, method, size, dtype, n_threads, clock, monkeypatch
):
    """1/t decays at every pattern, or once per pass."""
    monkeypatch.setattr("ikpca.solvers.kha_pass.BLOCK_SIZE", size)
    problem = Problem(None, K.astype(dtype), read_budget(None), n_threads, seed=SEED)
    found = solver_of(method, start, clock).solve(problem, R, RunSettings(PASSES)).coefficients
    expected = by_pattern(K, start, method, clock)
    assert np.abs(expected - start).max() > 0.01, "the components must have moved"
    signs = np.sign(np.sum(found * expected, axis=1))[:, None]
    np.testing.assert_allclose(signs * found, expected, atol=1e-12 if dtype == np.float64 else 2e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_pass_does_not_modify_its_state(K, start, method):
    """So that it can be repeated after a divergence or an interrupt."""
    gram, product = center_gram(PrecomputedGram(K), start.T)
    passes = HebbianPasses(solver_of(method, start), gram, R, SEED, 0.0)
    state = passes.start(start, product.T, Plan(0))
    copies = state.rows.copy(), state.products.copy()
    state.rows.flags.writeable = state.products.flags.writeable = False
    first, second = (passes.step(state)[0] for _ in range(2))
    assert all(map(np.array_equal, (state.rows, state.products), copies))
    assert np.array_equal(first.rows, second.rows)
    assert np.array_equal(first.products, second.products)


def test_residuals_are_sampled_along_the_projections(K, start):
    gram, product = center_gram(PrecomputedGram(K), start.T)
    centered, sample = explicitly_centered(K), np.array([3, 8, 29, 11])
    values = np.array([5.0, 3.0, 2.0, 1.0])
    units = product.T / np.linalg.norm(product.T, axis=1)[:, None]
    defects = (units @ centered - values[:, None] * units)[:, sample]
    expected = np.linalg.norm(defects, axis=1) * np.sqrt(N_SAMPLES / len(sample)) / 5
    found = sampled_residuals(gram, product.T, values, sample)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_residuals_of_eigenvectors_and_of_no_components_are_zero(K):
    gram, _ = center_gram(PrecomputedGram(K))
    values, vectors = np.linalg.eigh(explicitly_centered(K))
    projections = np.vstack([vectors[:, -1] * np.sqrt(values[-1]), np.zeros(N_SAMPLES)])
    everything = np.arange(N_SAMPLES)
    residuals = sampled_residuals(gram, projections, np.array([values[-1], 0.0]), everything)
    assert residuals[0] < 1e-13
    assert residuals[1] == 0
    assert not sampled_residuals(gram, 0 * projections, np.zeros(2), everything).any()


def test_resume_equals_uninterrupted_run(K, start):
    """Four passes equal two passes and two resumed ones, bit for bit."""
    gram, product = center_gram(PrecomputedGram(K), start.T)

    def make():
        return HebbianPasses(KHA("kha-smd", init=start), gram, R, SEED, 0.0)

    whole = state = make().start(start, product.T, Plan(0))
    for _ in range(4):
        whole, expected, _ = make().step(whole)
    for _ in range(4):
        passes = make()
        state, record, _ = passes.step(replace(passes.progress(state), means=None))
    assert np.array_equal(record.residuals, expected.residuals)
    assert np.array_equal(state.rows, whole.rows)
