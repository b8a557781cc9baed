"""Fits that are killed at random moments resume to the same bits."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ikpca.errors import UnreadableFile
from ikpca.model_files import read_file
from tests.faults.children import Child
from tests.faults.jobs import JOBS, digest
from tests.faults.tally import Tally

#: Seconds that a job may take which nobody kills.
_PATIENCE = 300
#: Share of kills that come while a checkpoint is written: between two operations on its files.
_AIMED = 0.35
#: A run is killed up to so many times before it may end.
_MOST_KILLS = 3
_OPERATIONS = ("open", "os.rename", "os.link")


@dataclass(frozen=True)
class Reference:
    """Result, duration and writes of an undisturbed job."""

    name: str
    result: str
    seconds: float
    operations: int


def work(name, path, aim):
    """Run in a child: report the start and the result; with ``aim``, end at that file operation."""
    yield "begun"
    counted = _count_operations(path, aim)
    begun = time.perf_counter()
    result = digest(JOBS[name](path))
    yield result, time.perf_counter() - begun, counted[0]


def _count_operations(path, aim):
    """Count file operations in the checkpoint's folder; exit at number ``aim``."""
    counted, folder = [0], f"{path.parent}{os.sep}"

    def see(event, arguments):
        if event in _OPERATIONS and str(arguments[0]).startswith(folder):
            counted[0] += 1
            if counted[0] == aim:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(see)
    return counted


def reference(name):
    """Run a job without a disturbance."""
    with tempfile.TemporaryDirectory(prefix="ikpca-kills-") as folder:
        return Reference(name, *_run(name, Path(folder, "fit"), None, 0))


def killed_run(known, seed):
    """Kill a job up to three times, then let it end; return the tally."""
    tally, rng = Tally(), np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="ikpca-kills-") as folder:
        path = Path(folder, "fit")
        for _ in range(int(rng.integers(1, _MOST_KILLS + 1))):
            aimed = rng.random() < _AIMED
            aim = int(rng.integers(1, known.operations + 1)) if aimed else 0
            moment = _PATIENCE if aimed else float(rng.uniform(0, known.seconds))
            if _run(known.name, path, moment, aim) is None:
                tally.count("kills")
                tally.count(f"kills of {known.name}")
                tally.count("kills aimed at writing", int(aimed))
                _look_at(path, known.name, tally)
        found = _run(known.name, path, None, 0)
    tally.count("runs")
    tally.count("runs with identical bits", int(found is not None and found[0] == known.result))
    if found is None or found[0] != known.result:
        tally.find(f"{known.name}, seed {seed}: {found} in place of {known.result}")
    return tally


def _look_at(path, name, tally):
    """Check that a checkpoint can be read after a kill."""
    tally.count("kills before the first checkpoint", int(not path.exists()))
    tally.count("kills in the middle of writing", int(any(path.parent.glob(".*"))))
    if path.exists():
        tally.count("checkpoints read after a kill")
        try:
            read_file(path)
        except UnreadableFile as error:
            tally.count("unreadable")
            tally.find(f"{name}: {error}")


def _run(name, path, killed_after, aim):
    """Return the result of the job; None if it was killed."""
    with Child(work, name, path, aim) as child:
        try:
            child.hear(_PATIENCE)
            return child.hear(_PATIENCE if killed_after is None else killed_after)
        except (TimeoutError, EOFError):
            return None
