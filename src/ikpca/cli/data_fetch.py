"""``ikpca data fetch``: into the cache, with a bar."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ikpca.cli.failures import naming_mistakes

if TYPE_CHECKING:
    from ikpca.datasets import DataSet
    from ikpca.datasets.entry import Progress

__all__ = ["fetch_data"]


def fetch_data(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="See: ikpca data list.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of .npz files; what is there is not fetched. [$IKPCA_DATA]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Tell the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Download data sets into the cache, or go on with a download; then read and check them."""
    from ikpca.datasets import find, load

    with naming_mistakes():
        # Every name before the first transfer: a slip of the pen should not cost a download.
        entries = [find(name) for name in names]
        found = []
        for entry in entries:
            with _bars(quiet) as progress:
                found.append(load(entry.name, data, progress=progress))
    if as_json:
        typer.echo(json.dumps([_told(one) for one in found]))
        return
    for entry, one in zip(entries, found, strict=True):
        place = "embedded, nothing to fetch" if one.path is None else str(one.path)
        typer.echo(f"{one.name}: {place}")
        typer.echo(f"  terms: {entry.terms}")
        if one.as_recorded is False:
            typer.echo("  its arrays differ from those that this library's figures are from")


def _told(one: DataSet) -> dict[str, object]:
    return {
        "name": one.name,
        "origin": one.origin,
        "path": None if one.path is None else str(one.path),
        "checksum": one.checksum,
        "as_recorded": one.as_recorded,
    }


@contextmanager
def _bars(quiet: bool) -> Iterator[Progress | None]:
    """A bar per file on standard error, with bytes, speed and remaining time."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description:<16}", markup=False),
        BarColumn(bar_width=30),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    bars = Progress(*columns, console=Console(stderr=True))

    def announce(name: str, done: int, total: int | None) -> None:
        # Not before: what is there already needs no bar.
        bars.start()
        if name not in tasks:
            tasks[name] = bars.add_task(name, total=None)
        bars.update(tasks[name], completed=done, total=total)

    try:
        yield announce
    finally:
        # Stopping bars that never started would print an empty line.
        if tasks:
            bars.stop()
