"""``ikpca-papers data``: list, fetch and locate data sets."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ikpca.cli.errors import as_usage_errors

if TYPE_CHECKING:
    from rich.table import Table

    from ikpca_papers.data.registry import DataSet, Entry, Progress


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
    from ikpca_papers.data.registry import find
    from ikpca_papers.data.sources import load

    with as_usage_errors():
        # Every name before the first transfer: a slip of the pen should not cost a download.
        entries = [find(name) for name in names]
        found = []
        for entry in entries:
            with _bars(quiet) as progress:
                found.append(load(entry.name, data, progress=progress))
    if as_json:
        typer.echo(json.dumps([_fetched_sentence(one) for one in found]))
        return
    for entry, one in zip(entries, found, strict=True):
        place = "embedded, nothing to fetch" if one.path is None else str(one.path)
        typer.echo(f"{one.name}: {place}")
        typer.echo(f"  terms: {entry.terms}")
        if one.as_recorded is False:
            typer.echo("  its arrays differ from those that this library's figures are from")


def _fetched_sentence(one: DataSet) -> dict[str, object]:
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


#: For pipes and logs, which have no width of their own.
_WIDTH = 120


def list_data(
    data: Annotated[
        Path | None, typer.Option(help="Folder of .npz files; by default $IKPCA_DATA.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything known, as JSON.")] = False,
) -> None:
    """Show every data set: shape, size, terms, and how it can be had here."""
    from ikpca_papers.data.registry import registry
    from ikpca_papers.data.sources import ways

    with as_usage_errors():
        here = {name: ways(name, data) for name in registry()}
    if as_json:
        typer.echo(json.dumps([_availability(entry, here, data) for entry in registry().values()]))
        return
    _show(here)


def _availability(
    entry: Entry, here: dict[str, tuple[str, ...]], data: Path | None
) -> dict[str, object]:
    from ikpca_papers.data.sources import where

    path = where(entry.name, data)
    fields = {**vars(entry), "shapes": dict(entry.shapes)}
    fields["remotes"] = [asdict(remote) for remote in entry.remotes]
    return {**fields, "here": here[entry.name], "path": None if path is None else str(path)}


def _show(here: dict[str, tuple[str, ...]]) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
    console.print(_table(here))
    console.print(
        "local: in the data folder ($IKPCA_DATA or --data); cached: fetched before; "
        "download: ikpca data fetch NAME",
        style="dim",
    )


def _table(here: dict[str, tuple[str, ...]]) -> Table:
    from rich import box
    from rich.table import Table

    from ikpca_papers.data.registry import registry

    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("shape", no_wrap=True)
    table.add_column("MB", justify="right", no_wrap=True)
    table.add_column("here")
    table.add_column("terms")
    for name, entry in registry().items():
        table.add_row(
            name,
            _shape(entry),
            f"{entry.megabytes:.1f}" if entry.megabytes >= 0.1 else "<0.1",
            ", ".join(here[name]) or "–",
            entry.terms,
        )
    return table


def _shape(entry: Entry) -> str:
    """Of the first array, which is the one that matters."""
    return "×".join(map(str, next(iter(entry.shapes.values()))))


def where_data(
    name: Annotated[
        str | None, typer.Argument(help="Leave it out to see the folders themselves.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of .npz files; by default $IKPCA_DATA.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Tell it as JSON.")] = False,
) -> None:
    """Print the path of a data set; without a name, the data folder and the cache."""
    with as_usage_errors():
        told = _folders(data) if name is None else _file(name, data)
    if as_json:
        typer.echo(json.dumps(told))
    elif name is None:
        typer.echo(f"data folder: {told['data'] or 'none; name one in IKPCA_DATA'}")
        typer.echo(f"cache: {told['cache']}")
    else:
        typer.echo(told["path"] or f"{name} is embedded: it has no file.")


def _folders(data: Path | None) -> dict[str, str | None]:
    from ikpca_papers.data.download import cache_folder, data_folder

    folder = data_folder(data)
    return {"data": None if folder is None else str(folder), "cache": str(cache_folder())}


def _file(name: str, data: Path | None) -> dict[str, str | None]:
    from ikpca.errors import DataUnavailable
    from ikpca_papers.data.registry import find
    from ikpca_papers.data.sources import where

    path = where(name, data)
    entry = find(name)
    if path is None and entry.way != "embedded":
        remedy = (
            f"run: ikpca data fetch {name}"
            if entry.way == "download"
            else f"put {entry.file} into a folder and name that in IKPCA_DATA or with --data"
        )
        raise DataUnavailable(f"{name}: is not here; {remedy}.")
    return {"name": name, "path": None if path is None else str(path)}


data = typer.Typer()


@data.callback(invoke_without_command=True)
def _data(context: typer.Context) -> None:
    """Data sets: what there is, getting one, where it lies."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


data.command("list")(list_data)
data.command("fetch")(fetch_data)
data.command("where")(where_data)
