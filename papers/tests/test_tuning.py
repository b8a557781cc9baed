"""Searches for gains in which runs may diverge, and algorithm 1 pattern by pattern."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from ikpca.kernels import Gaussian
from ikpca.solvers import Outcome
from ikpca_papers.as_printed import SMD_FROM_ZERO, paper_solver
from ikpca_papers.claims import DIVERGED, Claim, Status, evaluate_claim
from ikpca_papers.guenter2006.algorithm_1 import run_algorithm_1
from ikpca_papers.guenter2006.usps_clustering import njw_rows, normalized_affinity, summary
from ikpca_papers.tuning import (
    Problem,
    TunedRun,
    grid_gain,
    learning_curve,
    search_gain,
    start_of_meta_descent,
    tune,
    tuned_curves,
)


@pytest.fixture(scope="module")
def problem(digits):
    return Problem.of("digits", Gaussian(1 / 8), digits[:150], 4)


def bowl(best, limit):
    """Error that is smallest at a gain and infinite from a limit on."""
    return lambda gain: math.inf if gain >= limit else abs(math.log(gain / best)) + 1


@pytest.mark.parametrize("start", [-9, 0, 6])
def test_the_search_finds_the_best_gain_that_does_not_diverge(start):
    assert search_gain(bowl(0.2, 1.0), start) == (0.2, 1.0)
    # The best gain is beyond the limit: the largest below it is left.
    gain, error = search_gain(bowl(5.0, 1.0), start)
    assert gain == 0.5
    assert math.isfinite(error)


def test_the_search_also_looks_above_a_start_that_diverges():
    result, _ = search_gain(lambda gain: math.inf if gain < 20 else gain, start=0)
    assert result == 20


def test_a_search_in_which_every_run_diverges_ends():
    tried = []

    def error(gain):
        tried.append(gain)
        return math.inf

    assert search_gain(error, start=3) == (grid_gain(3), math.inf)
    assert len(tried) == len(set(tried)) < 40


def test_a_diverging_gain_is_not_a_candidate(problem):
    wild = paper_solver("kha", 4, 150, 0, gain=1e3)
    assert problem.error(wild, 0, passes=5) == math.inf
    run = tune([problem], "kha", [0], passes=5)
    calm = paper_solver("kha", 4, 150, 0, **run.gains)
    assert problem.solve(calm, 0, 5).outcome is Outcome.PASS_LIMIT
    assert run.error == pytest.approx(problem.error(calm, 0, passes=5))


def test_one_gain_for_all_seeds_has_the_least_mean_of_log_errors(problem):
    run = tune([problem], "kha/et", [0, 1], passes=5)
    solver = [paper_solver("kha/et", 4, 150, seed, **run.gains) for seed in (0, 1)]
    errors = [problem.error(one, seed, passes=5) for seed, one in enumerate(solver)]
    assert run.error == pytest.approx(math.sqrt(errors[0] * errors[1]))
    assert replace(run, gain=1e3).mean_error([problem], [0, 1], 5) == math.inf


def test_the_first_gain_of_meta_descent_is_compared_with_the_limit(problem):
    start = start_of_meta_descent(problem, [0], 5, eta0=0.1)
    assert start["start_over_limit"] == pytest.approx(math.e * 0.1 / start["limit"])
    for factor, diverges in ((1.0, False), (1.2, True)):
        run = TunedRun("kha/et", factor * start["limit"], 0.0)
        assert math.isinf(run.mean_error([problem], [0], 5)) is diverges


def test_the_curve_of_a_diverging_run_ends_before_the_pass_that_was_undone(problem):
    rows, solution = learning_curve(problem, paper_solver("kha", 4, 150, 0, gain=1e3), 0, 5)
    assert solution.outcome is Outcome.DIVERGED
    assert len(rows) == len(solution.records) - 1


def test_gains_of_the_meta_descents(problem):
    """Both use the η0 of KHA/et, and differ in ρ0 only."""
    _, gains, _ = tuned_curves(problem, ("kha/et", "kha-smd", SMD_FROM_ZERO), [0], 5)
    assert [row["method"] for row in gains] == ["KHA/et", "KHA-SMD", "KHA-SMD, ρ0 = 0"]
    assert len({row["gain"] for row in gains}) == 1
    printed, ours = (
        paper_solver(method, 4, 150, 0, gain=0.1, meta_gain=0.1).get_params()
        for method in ("kha-smd", SMD_FROM_ZERO)
    )
    np.testing.assert_array_equal(printed.pop("init"), ours.pop("init"))
    assert {name: (printed[name], ours[name]) for name in ours if printed[name] != ours[name]} == {
        "log_gain_init": (1.0, 0.0)
    }


ERRORS = [{"m": "a", "e": 2.0}, {"m": "b", "e": None, "outcome": DIVERGED}]
CONDITIONS = [
    {"decreasing": [{"m": "a"}, {"m": "b"}]},
    {"decreasing": [{"m": "b"}, {"m": "a"}]},
    {"is": ">=", "than": 0.0},
    {"is": "<=", "than": 1e300},
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_claim_about_a_method_that_diverged_fails(condition):
    selection = {"table": "t", "column": "e", "take": "min"}
    texts = {"id": "c", "sentence": "S", "paper": "1", "fails_if": "F"}
    claim = Claim(**{**texts, "from": selection, **condition})
    verdict = evaluate_claim(claim, "quick", {"t": ERRORS})
    assert verdict.status is Status.FAILS
    assert DIVERGED in verdict.ours


@pytest.mark.parametrize(
    "run", [TunedRun("kha/et", 0.2, 0.0), TunedRun("kha-smd", 0.1, 0.0, eta0=0.1)]
)
def test_algorithm_1_with_eigenvalues_once_per_pass_is_the_solver(problem, run):
    solver = paper_solver(run.method, 4, 150, 3, **run.gains)
    expected = problem.error(solver, 3, passes=4)
    assert run_algorithm_1(problem, run, 3, 4, every=150) == pytest.approx(expected, rel=1e-9)
    # At every pattern the gains differ, and so does the result.
    assert run_algorithm_1(problem, run, 3, 4) != pytest.approx(expected, rel=1e-3)


def test_algorithm_1_reports_divergence(problem):
    assert run_algorithm_1(problem, TunedRun("kha/et", 1e3, 0.0), 0, 2) == math.inf


def test_rows_of_spectral_clustering(digits):
    """As Ng, Jordan and Weiss, on the centered matrix."""
    X = digits[:80]
    K = np.exp(-np.square(X[:, None] - X[None]).sum(axis=2) / 8)
    roots = np.sqrt(K.sum(axis=1))
    L = K / np.outer(roots, roots)
    np.testing.assert_allclose(normalized_affinity(X, 2.0), L, rtol=1e-10)
    values, vectors = np.linalg.eigh(L - L.mean(axis=0) - L.mean(axis=1)[:, None] + L.mean())
    leading = vectors[:, :-4:-1]
    expected = leading / np.linalg.norm(leading, axis=1, keepdims=True)
    np.testing.assert_allclose(njw_rows((leading * np.sqrt(values[:-4:-1])).T), expected)


def test_the_first_pass_as_good_as_exact_components():
    def curve(method, distances):
        return [{"method": method, "pass": n, "vi": vi} for n, vi in enumerate(distances, 1)]

    tables = {
        "levels": [{"method": "kernel PCA", "vi": 1.0, "vi_max": 1.1}],
        "gains": [
            {"method": "a", "outcome": "finished"},
            {"method": "b", "outcome": "finished"},
            {"method": "c", "outcome": DIVERGED},
        ],
        "curves": [*curve("a", [2.0, 1.1, 1.2, 0.9]), *curve("b", [2.0, 2.0])],
        "other_gains": [],
        "other_curves": [],
    }
    *rows, diverged = summary(tables)["as_good"]
    assert [(row["method"], row["criterion"], row["pass"]) for row in rows] == [
        ("a", "reached", 2), ("a", "settled", 4), ("b", "reached", 3), ("b", "settled", 3),
    ]  # fmt: skip
    assert diverged == {"method": "c", "outcome": DIVERGED}
