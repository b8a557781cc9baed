"""Many random calls with time limits; failures are recorded."""

from __future__ import annotations

import signal
import traceback
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.faults.calls import outcome, random_calls
from tests.faults.tally import Tally

#: No call on thirty rows may take longer.
SECONDS = 60
STATED = {"limits": f"{SECONDS} s per call"}


def call_batch(folder, number, count):
    """Run a number of calls drawn from a seed."""
    tally = Tally(stated=dict(STATED))

    @seed(number)
    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(random_calls)
    def run(drawn):
        _judge(tally, drawn, number)

    signal.signal(signal.SIGALRM, _too_long)
    run()
    yield tally


def _judge(tally, drawn, number):
    what, use, given_to_it = drawn
    tally.count("calls")
    signal.alarm(SECONDS)
    try:
        tally.count(outcome(use, given_to_it))
    except Exception as error:
        with np.printoptions(threshold=400, precision=17):
            tally.find(f"{type(error).__name__}: {error} ({_way(error)}), "
                       f"seed {number}, from {what!r}")  # fmt: skip
    finally:
        signal.alarm(0)


def _way(error):
    """Return the last lines of the library in a traceback, and its origin."""
    if error.__cause__ is not None:
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames[:-1] if "ikpca" in frame.filename][-4:]
    return " > ".join(f"{Path(f.filename).stem}:{f.lineno}" for f in [*ours, frames[-1]])


def _too_long(number, frame):
    raise TimeoutError(f"a call took more than {SECONDS} s")
