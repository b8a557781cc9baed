"""A few cells of ``make statistics``, with fewer training sets."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca import NoveltyDetector
from tests.statistics.false_alarms import (
    DISTRIBUTIONS,
    RATES,
    Cell,
    measure,
    novelty_detector,
    violations,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("distribution", "n_features"), [("normal", 3), ("t3", 10), ("mixture", 2)]
)
def test_rate_after_fit(distribution, n_features):
    cells = measure(
        novelty_detector(), n_seeds=10, n_features=(n_features,), distributions=(distribution,)
    )
    assert not violations(list(cells))


@pytest.mark.parametrize("rate", RATES)
def test_one_fit_serves_all_rates(rate):
    """``predict`` flags the rows with p-values up to the rate, whatever the rate of the fit."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(150, 3)), 2 * rng.normal(size=(200, 3))
    flags = NoveltyDetector(false_alarm_rate=rate, random_state=0).fit(X).predict(new)
    p_values = NoveltyDetector(false_alarm_rate=0.2, random_state=0).fit(X).p_values(new)
    np.testing.assert_array_equal(flags == -1, p_values <= rate)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_rows_depend_on_the_seed_only(distribution):
    draw = DISTRIBUTIONS[distribution]
    first, again, other = (draw(np.random.default_rng(seed), (50, 4)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_violations():
    """The mean of all cells, and the largest of them."""
    low, right, high = (
        Cell("normal", 2, 0.05, np.full(5, 0.05 * ratio)) for ratio in (0.5, 1.0, 1.7)
    )
    assert not violations([low, right])
    assert len(violations([low])) == 1
    assert len(violations([right, right, right, high])) == 1
    assert len(violations([high])) == 2
