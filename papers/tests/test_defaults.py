"""KHA/et and KHA-SMD with default settings on the data of the papers, twenty passes."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca.kernels import Gaussian, Linear, Polynomial
from ikpca.solvers import KHA
from ikpca_papers.tuning import Problem


def parabola() -> np.ndarray:
    """Kim 2003, figure 1."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 500)
    return np.column_stack([x, -(x**2) + 0.2 * rng.normal(size=500)])


def frey_faces(folder) -> np.ndarray:
    with np.load(folder / "frey_faces.npz") as data:
        return data["images"].reshape(len(data["images"]), -1) / 255


def walk(folder) -> np.ndarray:
    """Joint positions in meters, about the root."""
    with np.load(folder / "cmu_walk_35_01.npz") as data:
        positions, meters = data["positions"].astype(np.float64), float(data["metres_per_unit"])
    return ((positions - positions[:, :1]) * meters).reshape(len(positions), -1)


def check(problem: Problem) -> None:
    for method in ("kha/et", "kha-smd"):
        for init, ceiling in (("landmarks", 1e-3), ("random", 1e-2)):
            error = problem.error(KHA(method, init=init), 0, passes=20)
            assert error <= ceiling, (method, init)


@pytest.mark.parametrize("sigma", [1.0, 2.0, 4.0])
def test_defaults_are_close_to_tuned_gains_on_digits(digits, sigma):
    check(Problem.of("digits", Gaussian(1 / (2 * sigma**2)), digits, 16))


def test_defaults_are_close_to_tuned_gains_on_the_parabola():
    check(Problem.of("parabola", Polynomial(2, 1.0, 1.0), parabola(), 3))


@pytest.mark.parametrize("kernel", [Gaussian(1 / 128), Linear()])
def test_defaults_are_close_to_tuned_gains_on_usps(usps_1000, kernel):
    check(Problem.of("USPS-1000", kernel, usps_1000, 16))


def test_defaults_are_close_to_tuned_gains_on_frey_faces(data_folder):
    check(Problem.of("Frey faces", Polynomial(2, 1.0, 1.0), frey_faces(data_folder), 16))


def test_defaults_are_close_to_tuned_gains_on_the_walk(data_folder):
    check(Problem.of("walk", Gaussian(1 / (2 * 0.1)), walk(data_folder), 25))


def test_meta_descent_from_a_random_start(digits):
    """At most half of the excess error of KHA/et, as a geometric mean."""
    problem = Problem.of("digits", Gaussian(1 / 32), digits[::2], 16)
    logs = [
        [np.log(problem.error(KHA(method, init="random"), seed, passes=20)) for seed in range(3)]
        for method in ("kha/et", "kha-smd")
    ]
    assert np.mean(logs[1]) <= np.mean(logs[0]) - np.log(2)
