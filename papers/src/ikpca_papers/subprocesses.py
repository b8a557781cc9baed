"""Tasks in new processes."""

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

from ikpca_papers.errors import SubprocessFailed

Result = TypeVar("Result")
#: Sends one message to the parent.
Send: TypeAlias = Callable[[Any], None]


@dataclass(frozen=True)
class _Message:
    content: Any


@dataclass(frozen=True)
class _Returned:
    result: Any


@dataclass(frozen=True)
class _Raised:
    reason: str


def run_in_subprocess(
    name: str, task: Callable[[Send], Result], on_message: Callable[[Any], None]
) -> Result:
    """Run ``task`` in a new process and return its result; the process never outlives the call.

    Parameters
    ----------
    name : str
        For the error message.
    task : callable
        Takes a function that sends messages to this process; must be picklable.
    on_message : callable
        Called with each message.

    Raises
    ------
    SubprocessFailed
        The task raised, or its process died.
    """
    # A forked process would inherit the memory of this one, and measure it.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    # The task is sent through the pipe: as an argument it would block this process for ever if the
    # child died while starting, because this process holds the other end of that pipe, too.
    process = context.Process(target=_child, args=(theirs,), name=name, daemon=True)
    try:
        with theirs, _interrupts_ignored():
            process.start()
        # Only the child holds the other end now, so its death ends the wait.
        return _communicate(name, process, ours, task, on_message)
    finally:
        ours.close()
        _terminate(process)


def _child(pipe: Connection[Any, Any]) -> None:
    """Run the task in the child; a parent that is gone ends it silently."""
    with suppress(BrokenPipeError):
        try:
            task = pipe.recv()
            result = task(lambda content: pipe.send(_Message(content)))
        except BrokenPipeError:
            return
        except Exception as error:
            pipe.send(_Raised(f"{type(error).__name__}: {error}"))
        else:
            pipe.send(_Returned(result))


def _communicate(
    name: str,
    process: BaseProcess,
    pipe: Connection[Any, Any],
    task: Callable[[Send], Any],
    on_message: Callable[[Any], None],
) -> Any:
    # If the child is gone already, its exit code is reported below.
    with suppress(ConnectionError):
        pipe.send(task)
    while True:
        try:
            answer = pipe.recv()
        except (EOFError, OSError):
            process.join()
            raise SubprocessFailed(f"{name}: {_exit_reason(process.exitcode)}.") from None
        if isinstance(answer, _Raised):
            raise SubprocessFailed(f"{name}: {answer.reason}")
        if isinstance(answer, _Returned):
            return answer.result
        on_message(answer.content)


def _exit_reason(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            name = signal.Signals(-code).name
            return f"its process was ended by {name}; free some memory, or ask for fewer rows"
    return f"its process ended without a result (exit code {code}); see above, and run it again"


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C in processes that start here; the parent alone handles it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _terminate(process: BaseProcess) -> None:
    if process.pid is not None:
        process.kill()
        process.join()
