"""Damaged files are read within limits, or raise a documented error."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from ikpca.errors import InvalidInput
from tests.faults.limits import STATED, bounded, peak_memory
from tests.faults.tally import Tally

#: Files between two reports of a child, so that little is lost when it dies.
_REPORTED = 200


def read_damaged(case, rng, tally, clock):
    """Read a damaged file of a case, and return the outcome."""
    target, check = case.damage(rng)
    tally.count("files")
    tally.count(f"files of {case.name}")
    begun = time.perf_counter()
    clock()
    try:
        result = case.load(target)
        tally.count(check(result))
    except InvalidInput:
        tally.count("refused")
    except BaseException as error:
        tally.find(f"{case.name}: {type(error).__name__}: {error} at {_kept(target)}")
    tally.reach("seconds per file", time.perf_counter() - begun)


def read_batch(folder, make_cases, seed, count):
    """Run in a child: read damaged files of all cases; yield tallies."""
    rng, cases = np.random.default_rng(seed), make_cases(folder)
    base, tally = peak_memory(), Tally(stated=dict(STATED))
    with bounded() as clock:
        for number in range(1, count + 1):
            read_damaged(cases[int(rng.integers(len(cases)))], rng, tally, clock)
            if number % _REPORTED == 0 or number == count:
                tally.reach("MB above the start", (peak_memory() - base) / 2**20)
                yield tally
                tally = Tally()


def _kept(path):
    """Return the bytes of a small file."""
    content = Path(path).read_bytes()
    return repr(content if len(content) < 400 else content[:200] + b"..." + content[-100:])
