"""Tasks in new processes: results, failures, interrupts."""

from __future__ import annotations

import functools
import multiprocessing.spawn
import operator
import os
import shutil
import signal

import pytest

from ikpca_papers.errors import SubprocessFailed
from ikpca_papers.subprocesses import run_in_subprocess


class Dies:
    """Ends the process that unpickles it."""

    def __init__(self, code):
        self.code = code

    def __reduce__(self):
        return os._exit, (self.code,)


def tells(message):
    """Task that sends one message and returns None."""
    return operator.methodcaller("__call__", message)


def test_child_that_dies_raises_an_error():
    with pytest.raises(SubprocessFailed, match=r"KHA.*exit code 3"):
        run_in_subprocess("KHA", Dies(3), print)


@pytest.fixture
def alarm():
    """Fail instead of waiting forever."""

    def rung(*_):
        raise AssertionError("still waiting")

    before = signal.signal(signal.SIGALRM, rung)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(os.name == "nt", reason="alarms as on Unix")
def test_child_that_dies_before_its_task_raises_an_error(alarm, monkeypatch):
    large = functools.partial(len, bytes(20_000_000))
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", os.fsencode(shutil.which("false")))
    with pytest.raises(SubprocessFailed, match=r"KHA.*exit code 1"):
        run_in_subprocess("KHA", large, print)


@pytest.mark.skipif(os.name == "nt", reason="alarms as on Unix")
def test_a_child_that_dies_over_a_large_task(alarm):
    with pytest.raises(SubprocessFailed, match=r"KHA.*exit code 3"):
        run_in_subprocess("KHA", functools.partial(print, Dies(3), bytes(20_000_000)), print)


def test_error_of_a_child_is_reported():
    with pytest.raises(SubprocessFailed, match=r"KHA: AttributeError.*no_such_thing"):
        run_in_subprocess("KHA", operator.attrgetter("no_such_thing"), print)


def test_interrupt_ends_the_child():
    def interrupted(message):
        assert message == "first pass"
        raise KeyboardInterrupt

    ours = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_in_subprocess("KHA", tells("first pass"), interrupted)
    assert multiprocessing.active_children() == []
    # And it is ours again afterwards.
    assert signal.getsignal(signal.SIGINT) is ours
