"""A bar per method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from ikpca.experiments import CONTESTANTS, DENSE, DemoSpec

__all__ = ["progress"]


@contextmanager
def progress(spec: DemoSpec) -> Iterator[Callable[[str, int, float], None]]:
    """Show the bars on standard error; yields the function that moves them."""
    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        TextColumn("{task.fields[seconds]:6.2f} s", style="progress.elapsed"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        # The reference runs first, so it stands first.
        tasks = {
            method: bars.add_task(
                CONTESTANTS[method], total=1 if method == DENSE else spec.passes, seconds=0.0
            )
            for method in sorted(CONTESTANTS, key=lambda method: method != DENSE)
        }

        def announce(method: str, done: int, seconds: float) -> None:
            bars.update(tasks[method], completed=done, seconds=seconds)

        yield announce
