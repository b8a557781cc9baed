"""Kim 2003: KHA from a random start with a constant gain, and the search for that gain."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ikpca.errors import InvalidInput
from ikpca.kernels import Gaussian, Polynomial
from ikpca_papers.claims import specs
from ikpca_papers.data import parabola
from ikpca_papers.kim2003 import natural_components
from ikpca_papers.kim2003.gains import kha_model, tune_gain, tune_online
from ikpca_papers.kim2003.toy_contours import compare_contours

PASSES = 200


def holds(gain: float) -> bool | None:
    (claim,) = specs()["toy-contours"].claims
    rows, _ = compare_contours(parabola(150), PASSES, gain, seed=0)
    return claim.check({"correlations": rows})[0]


def test_figure_1_holds_with_the_gain_of_the_search():
    gain, rows = tune_gain(Polynomial(2, 1.0, 0.0), parabola(150), 3, PASSES, seed=0)
    assert gain == min((row["error"], row["gain"]) for row in rows if row["error"])[1]
    assert holds(gain)


@pytest.mark.parametrize("gain", [1e-12, 1e-4])
def test_figure_1_fails_where_nothing_was_learned(gain):
    assert not holds(gain)


def test_a_diverging_gain_is_not_a_candidate():
    X = 4 * parabola(100)
    gain, rows = tune_gain(Polynomial(2, 1.0, 0.0), X, 3, 20, seed=0)
    errors = {row["gain"]: row["error"] for row in rows}
    assert None in errors.values()
    assert errors[gain] is not None


def test_a_gain_that_is_too_large_for_a_stream_is_not_a_candidate():
    def run(gain):
        if gain > 0.1:
            raise InvalidInput("gain: is too large")
        return (math.log10(gain) + 2) ** 2 + 1

    gain, rows = tune_online(run, 0.1)
    assert gain == 0.01
    assert [row["error"] for row in rows if row["gain"] > 0.1] == [None, None]


def test_the_model_is_that_of_the_paper():
    solver = kha_model(3, 50, 40, 0.1, seed=0).eigen_solver
    assert (solver.method, solver.gain, solver.init.shape) == ("kha", 0.1, (3, 50))
    assert not solver.rayleigh_ritz
    assert not solver.backoff


def test_angles_between_spans():
    first, second = np.eye(4)[:, :2], np.eye(4)[:, [0, 2]]
    assert natural_components.mean_angle(first, second) == pytest.approx(45)
    assert natural_components.mean_angle(first, first @ [[1.0, 2.0], [0.0, 1.0]]) < 1e-6


SETTINGS = {"patch": 2, "components": 4, "compared": 2, "patches": 400, "tuning": 100,
            "max_memory": None, "memory": [200, 400]}  # fmt: skip


def test_wide_kernels_approach_linear_components():
    X = np.random.default_rng(0).normal(size=(400, 4)) * [3.0, 2.0, 1.0, 0.5]
    tables = [natural_components._compare(X, sigma, SETTINGS, 0).tables for sigma in (1.0, 30.0)]
    narrow, wide = (
        {row["method"]: row["angle_to_linear"] for row in result["angles"]} for result in tables
    )
    assert wide["KPCA"] < 1 < narrow["KPCA"]
    assert wide["KHA"] < narrow["KHA"]


def test_memory_is_measured_in_a_process_of_its_own():
    X = np.random.default_rng(0).normal(size=(400, 4))
    rows = natural_components._measure_memory(X, SETTINGS, 0).tables["memory"]
    assert [row["patches"] for row in rows] == [200, 400]
    assert rows[1]["formula_megabytes"] == 2 * rows[0]["formula_megabytes"]


def test_gains_of_equal_problems_are_equal():
    X = np.random.default_rng(0).normal(size=(80, 3))
    first, again = (tune_gain(Gaussian(0.1), X, 2, 10, seed=1) for _ in range(2))
    assert first == again
