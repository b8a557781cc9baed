"""SIGKILL at random moments: what is gone on with ends at the same bits."""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ikpca.errors import UnreadableFile
from ikpca.storage import read_newest
from tests.faults.jobs import JOBS, work

_PATIENCE = 300


@dataclass
class Kills:
    """What became of the runs."""

    kills: int = 0
    finished: int = 0
    identical: int = 0
    unreadable: int = 0
    failures: list[str] = field(default_factory=list)


class Killer:
    """Runs jobs in processes that are cheap to start, and kills them.

    Processes come from a server that has imported everything and computed nothing.
    """

    def __init__(self, folder):
        self._folder = Path(folder)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.faults.jobs", "ikpca.hebbian.sweep"])

    def reference(self, name):
        """The result of a job that nobody disturbs, and how long it takes."""
        begun = time.perf_counter()
        result = self._run(name, self._path(name, "undisturbed"), None)
        return result, time.perf_counter() - begun

    def disturbed(self, name, seconds, rng, kills):
        """Kill a job once, at a random moment, then let it go on to its end."""
        path = self._path(name, kills.finished)
        if self._run(name, path, float(rng.uniform(0, seconds))) is None:
            kills.kills += 1
        try:
            read_newest(path)
        except UnreadableFile:
            kills.unreadable += 1
        return self._run(name, path, None)

    def _path(self, name, which):
        return self._folder / f"{name.replace('/', '-')}.{which}"

    def _run(self, name, path, killed_after):
        answers = self._context.Queue()
        process = self._context.Process(target=work, args=(name, path, answers))
        process.start()
        deadline = time.monotonic() + (_PATIENCE if killed_after is None else killed_after)
        try:
            while process.is_alive() and time.monotonic() < deadline:
                with contextlib.suppress(queue.Empty):
                    return answers.get(timeout=min(0.05, max(0, deadline - time.monotonic())))
            with contextlib.suppress(queue.Empty):
                return None if process.is_alive() else answers.get(timeout=1)
            return None
        finally:
            process.kill()
            process.join()


def kill_jobs(folder, count, seed, names=tuple(JOBS)):
    """Disturb jobs in turn until so many were killed."""
    rng = np.random.default_rng(seed)
    killer, kills = Killer(folder), Kills()
    for name in names:
        expected, seconds = killer.reference(name)
        wanted = kills.kills + max(1, count // len(names))
        while kills.kills < wanted:
            found = killer.disturbed(name, seconds, rng, kills)
            kills.finished += found is not None
            kills.identical += found == expected
            if found != expected:
                kills.failures.append(f"{name}: {found} in place of {expected}")
    return kills
