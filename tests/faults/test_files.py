"""The short form of ``make faults``, for files."""

from __future__ import annotations

import sys

import pytest

import ikpca
from tests.faults.files import checkpoint_files, fuzz, load_checkpoint, model_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits as on Linux")


def test_damaged_models(tmp_path):
    tally = fuzz(model_files(tmp_path), ikpca.load, 1000, seed=1)
    assert not tally.failures, tally.failures[:5]
    assert tally.refused > 700


def test_damaged_checkpoints(tmp_path):
    tally = fuzz(checkpoint_files(tmp_path), load_checkpoint, 400, seed=2)
    assert not tally.failures, tally.failures[:5]
    assert tally.refused > 250
