"""The short form of ``make faults``, for killed fits."""

from __future__ import annotations

import sys

import pytest

from tests.faults.kills import kill_jobs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes as on Linux")


def test_killed_fits_go_on(tmp_path):
    kills = kill_jobs(tmp_path, 4, seed=0, names=("kha-smd", "krylov"))
    assert not kills.failures
    assert kills.identical == kills.finished >= kills.kills >= 4
    assert kills.unreadable == 0
