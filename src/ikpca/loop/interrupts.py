"""Signals that wait: a run is left only where nothing is half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any

__all__ = ["Signals", "held", "interruptible"]

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """SIGINT and SIGTERM, kept waiting but for stretches in which they may be answered.

    Handlers are those that were there before; a signal without one, which ends the process, is
    left alone.
    """

    def __init__(self) -> None:
        self._open = False
        self._waiting: list[int] = []
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def hold(self) -> None:
        """Let them wait from now on."""
        for number in _NUMBERS:
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._answer)

    def release(self) -> None:
        """As it was before."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @contextmanager
    def answered(self) -> Iterator[None]:
        """Within it signals are answered, first of all one that has been waiting."""
        self._open = True
        try:
            while self._waiting:
                number = self._waiting.pop()
                self._handlers[number](number, None)
            yield
        finally:
            self._open = False

    def _answer(self, number: int, frame: FrameType | None) -> None:
        if self._open:
            self._handlers[number](number, frame)
        else:
            self._waiting.append(number)


_held: list[Signals] = []


@contextmanager
def held() -> Iterator[Signals]:
    """Signals wait, outside of :func:`interruptible`; only the main thread ever hears of any."""
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    signals.hold()
    _held.append(signals)
    try:
        yield signals
    finally:
        _held.remove(signals)
        signals.release()


@contextmanager
def interruptible() -> Iterator[None]:
    """A stretch of work that leaves no trace when broken off; signals that wait are answered."""
    waiting = bool(_held) and threading.current_thread() is threading.main_thread()
    with _held[-1].answered() if waiting else nullcontext():
        try:
            yield
        except SystemError as error:
            cause = _beneath(error)
            if cause is None or isinstance(cause, Exception):
                raise
            raise cause from None


def _beneath(error: SystemError) -> BaseException | None:
    """What a handler raised: compiled code that was just being called wraps it in SystemErrors."""
    cause = error.__cause__
    return _beneath(cause) if isinstance(cause, SystemError) else cause
