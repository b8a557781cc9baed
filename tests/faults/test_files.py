"""Short form of ``make faults`` for files."""

from __future__ import annotations

import sys

import pytest

from tests.faults.files import checkpoint_cases, model_cases
from tests.faults.reading import read_batch
from tests.faults.tally import Tally
from tests.faults.texts import text_cases

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="limits as on Linux"),
]


def total(folder, cases, seed, count):
    tally = Tally()
    for part in read_batch(folder, cases, seed, count):
        tally.add(part)
    assert not tally.findings, tally.findings[:5]
    assert tally.counts["files"] == count
    return tally.counts


@pytest.mark.parametrize(("cases", "count"), [(model_cases, 600), (checkpoint_cases, 300)])
def test_damaged_models_and_checkpoints(cases, count, tmp_path):
    assert total(tmp_path, cases, 1, count)["refused"] > 0.6 * count


def test_damaged_texts(tmp_path):
    counts = total(tmp_path, text_cases, 2, 800)
    assert counts["refused"] > 300
    # Damage to a comment or a digit leaves a file that says something else, and is sound.
    assert counts["loaded"] > 50
