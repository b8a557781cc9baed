"""A bar per experiment, counting its parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ikpca.experiments.runner import Announce

__all__ = ["bars"]


@contextmanager
def bars(names: Sequence[str], *, silent: bool) -> Iterator[Announce]:
    """Show the bars on standard error; yields the function that moves them."""
    columns = (
        TextColumn("{task.description:<24}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=silent) as shown:
        everything = shown.add_task("all parts", total=None)
        tasks = {name: shown.add_task(name, total=None) for name in names}
        counts: dict[str, tuple[int, int]] = {}

        def announce(name: str, done: int, total: int) -> None:
            counts[name] = (done, total)
            shown.update(tasks[name], completed=done, total=total)
            if done == total:
                shown.stop_task(tasks[name])
            whole = [sum(column) for column in zip(*counts.values(), strict=True)]
            shown.update(everything, completed=whole[0], total=whole[1])

        yield announce
