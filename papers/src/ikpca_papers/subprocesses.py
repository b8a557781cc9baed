"""Tasks in fresh processes."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeAlias, TypeVar

Result = TypeVar("Result")
#: Sends one message to the parent.
Tell: TypeAlias = Callable[[Any], None]


class ContestantFailed(RuntimeError):
    """A contestant's process gave no result."""


@dataclass(frozen=True)
class _Told:
    message: Any


@dataclass(frozen=True)
class _Returned:
    result: Any


@dataclass(frozen=True)
class _Raised:
    reason: str


def run_alone(name: str, task: Callable[[Tell], Result], hear: Tell) -> Result:
    """Run ``task`` in a new process and return its result; the process never outlives the call.

    Parameters
    ----------
    name : str
        For the error message.
    task : callable
        Takes a function that sends messages here; must be picklable.
    hear : callable
        Gets each message.

    Raises
    ------
    ContestantFailed
        The task raised, or its process died.
    """
    # A fork would inherit the memory of this process, and measure it; spawning starts from nothing.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    # A child that dies while it starts would leave us writing for ever, were the task among what
    # it is started with: that pipe's other end is ours, too.
    process = context.Process(target=_work, args=(theirs,), name=name, daemon=True)
    try:
        with theirs, _interrupts_ignored():
            process.start()
        # Only the child holds the other end now, so its death ends the wait.
        return _listen(name, process, ours, task, hear)
    finally:
        ours.close()
        _end(process)


def _work(pipe: Connection[Any, Any]) -> None:
    """What the child does: a parent that is gone wants nothing more."""
    with suppress(BrokenPipeError):
        try:
            task = pipe.recv()
            result = task(lambda message: pipe.send(_Told(message)))
        except BrokenPipeError:
            return
        except Exception as error:
            pipe.send(_Raised(f"{type(error).__name__}: {error}"))
        else:
            pipe.send(_Returned(result))


def _listen(
    name: str,
    process: BaseProcess,
    pipe: Connection[Any, Any],
    task: Callable[[Tell], Any],
    hear: Tell,
) -> Any:
    # One that is gone already has its cause of death told below.
    with suppress(ConnectionError):
        pipe.send(task)
    while True:
        try:
            answer = pipe.recv()
        except (EOFError, OSError):
            process.join()
            raise ContestantFailed(f"{name}: {_cause_of_death(process.exitcode)}.") from None
        if isinstance(answer, _Raised):
            raise ContestantFailed(f"{name}: {answer.reason}")
        if isinstance(answer, _Returned):
            return answer.result
        hear(answer.message)


def _cause_of_death(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            how = signal.Signals(-code).name
            return f"its process was ended by {how}; free some memory, or ask for fewer rows"
    return f"its process ended without a result (exit code {code}); see above, and run it again"


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """A child that starts here ignores Ctrl-C, which is for the parent alone to answer."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(process: BaseProcess) -> None:
    """Nothing is wanted of it any more, whether it is done or we were interrupted."""
    if process.pid is not None:
        process.kill()
        process.join()
