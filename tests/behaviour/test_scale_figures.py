"""The benchmark's own arithmetic, and that its pictures can be drawn."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.contestants import Contestant, Judge, ScaleRow, hold
from benchmarks.growth_measures import GrowthRow

from ikpca_papers.measures import exponent

figures = pytest.importorskip("benchmarks.scale_figures", reason="needs matplotlib")


@pytest.mark.parametrize("power", [0.7, 2.0])
def test_the_exponent_of_a_power_is_found(power):
    sizes = [5000, 10000, 20000, 40000]
    assert exponent(sizes, [3 * size**power for size in sizes]) == pytest.approx(power)


def test_pictures_name_every_contestant_and_every_size():
    rows = [
        ScaleRow("ikpca krylov", 1.0, 0.5, 10, 1e-3, 1e-6),
        ScaleRow("other", 1.1, 1.0, 10, None, 1.1e-6),
        ScaleRow("exact", 3.0, 1.0, 10, None, -1e-13),
    ]
    names = [text.get_text() for text in figures.error_against_time(rows, "rows").axes[0].texts]
    assert {"ikpca krylov", "other"} <= set(names)
    assert "exact" not in names
    growing = [GrowthRow(size, 1e-9 * size**2, 1000 * size) for size in (1000, 2000, 4000)]
    left, right = figures.growth_plot(growing, "rows").axes
    assert "exponent 2.00" in [text.get_text() for text in left.texts]
    assert "exponent 1.00" in [text.get_text() for text in right.texts]


def test_a_contestant_is_judged_in_double_precision(digits):
    """Ours and scikit-learn's find the same components, in processes of their own."""
    X = digits[:300]
    judge = Judge(X, 0.1, 4, 1)
    for way, settings in (("_ours", {"tol": 1e-6}), ("_scikit", {"eigen_solver": "dense"})):
        contestant = Contestant(way, way, settings, dtype="float64", repeats=1)
        row = hold(contestant, _Rows(X), 0.1, 4, 1, judge)
        assert abs(row.excess_error) < 1e-8
        assert row.seconds > 0


class _Rows:
    """A function that travels to another process."""

    def __init__(self, X: np.ndarray) -> None:
        self._X = X

    def __call__(self) -> np.ndarray:
        return self._X
