"""Short form of ``make faults`` for threads, processes and full disks."""

from __future__ import annotations

import sys

import pytest

from tests.faults.children import set_up, watched
from tests.faults.disk import full_disk_batch
from tests.faults.sharing import thread_batch
from tests.faults.tally import Tally

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes and limits as on Linux"),
]


@pytest.fixture(autouse=True)
def one_blas_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    set_up()


def test_threads_sharing_a_model_get_equal_results(tmp_path):
    tally = Tally()
    for part in thread_batch(tmp_path, 1):
        tally.add(part)
    assert not tally.findings
    assert tally.counts["uses by threads at once"] >= 8


def test_full_disk_keeps_existing_files():
    """Run in a process whose files cannot grow."""
    tally = watched(full_disk_batch, 5, 1)
    assert not tally.findings
    assert tally.counts["writes refused for want of room"] >= 3


def test_crashed_or_hanging_child_is_a_finding():
    died, hung = watched(_dies), watched(_hangs, patience=0.5)
    assert "died with SIGSEGV" in died.findings[0]
    assert "silent for 0.5 s" in hung.findings[0]


def _dies(folder):
    import os
    import signal

    yield Tally()
    os.kill(os.getpid(), signal.SIGSEGV)


def _hangs(folder):
    import time

    yield Tally()
    time.sleep(60)
