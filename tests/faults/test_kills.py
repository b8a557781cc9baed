"""Short form of ``make faults`` for killed fits."""

from __future__ import annotations

import sys

import pytest

from tests.faults.children import set_up
from tests.faults.kills import killed_run, reference

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes as on Linux"),
]


@pytest.mark.parametrize("name", ["kha-smd", "krylov"])
def test_killed_fits_resume(name, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    set_up()
    expected = reference(name)
    for seed in range(2):
        tally = killed_run(expected, seed)
        assert not tally.findings
        assert tally.counts["runs with identical bits"] == 1
        assert tally.counts["kills"]
