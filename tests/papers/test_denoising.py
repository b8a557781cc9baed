"""Noisy digits: what each way back to input space is worth, settings chosen in training."""

from __future__ import annotations

import pytest
from benchmarks.preimage_methods import NoisyDigits, compare_denoisers

NAMES = [
    "linear PCA", "scikit-learn's inverse, alpha=1", "fixed point", "MDS", "neighbour mean"
]  # fmt: skip


@pytest.fixture(scope="module")
def errors():
    return {row.method: row.error for row in compare_denoisers(NoisyDigits.draw(), NAMES)}


@pytest.mark.parametrize("method", ["fixed point", "MDS"])
def test_ceiling_and_order(errors, method):
    assert errors[method] < 0.0215
    assert errors[method] < errors["scikit-learn's inverse, alpha=1"] < errors["linear PCA"]
    # Without which kernel PCA would not be worth its while.
    assert errors[method] < errors["neighbour mean"]


def test_settings_are_chosen_on_training_rows_alone():
    digits = NoisyDigits.draw()
    validation = digits.validation()
    rows = {row.tobytes() for row in digits.train}
    assert {row.tobytes() for row in [*validation.train, *validation.clean]} == rows
    assert not rows & {row.tobytes() for row in digits.clean}
