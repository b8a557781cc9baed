"""Bars with the time that remains, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Move", "bar", "watched"]

#: Tells how much is done, and of how much.
Move = Callable[[int, int | None], None]


@contextmanager
def bar(title: str, *, shown: bool) -> Iterator[Move]:
    """A bar that runs to and fro until it is told how much there is to do."""
    if not shown:
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left at most"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    # A bar in a log file helps nobody.
    with Progress(*columns, console=console, transient=True, disable=not _is_terminal()) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _is_terminal() -> bool:
    return sys.stderr.isatty()


@contextmanager
def watched(model: Any, title: str, *, shown: bool) -> Iterator[None]:
    """A bar of the passes of a fit, where scikit-learn is recent enough to tell of them."""
    with bar(title, shown=shown) as move:
        told = hasattr(model, "set_callbacks")
        if told:
            model.set_callbacks(_Passes(move))
        try:
            yield
        finally:
            if told:
                model.set_callbacks()


class _Passes:
    """A callback as scikit-learn 1.9 has them."""

    def __init__(self, move: Move) -> None:
        self._move = move
        self._done = 0

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin."""
        self._move(0, context.max_subtasks)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is left over."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None:
        """A pass begins."""

    def on_fit_task_end(self, estimator: Any, context: Any, **_: Any) -> bool:
        """A pass is done; never stops the fit."""
        if context.parent is not None:
            self._done += 1
            self._move(self._done, context.parent.max_subtasks)
        return False
