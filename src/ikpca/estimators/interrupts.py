"""SIGTERM like Ctrl-C, for fits that have something to lose."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["terminated_like_interrupted"]


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Within it, SIGTERM raises KeyboardInterrupt, as Ctrl-C does; where signals can be had."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
