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

from ikpca.cli.output import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from ikpca_papers.data.entries import DataSet, Entry


@contextmanager
def as_usage_errors() -> Iterator[None]:
    """Report InvalidInput as a usage error, for commands that read no files of the user."""
    from ikpca.errors import InvalidInput

    try:
        yield
    except InvalidInput as error:
        raise UsageError(str(error)) from error


def fetch_data(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="See: ikpca-papers data list.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of .npz files; what is there is not fetched. [$IKPCA_DATA]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not report downloads.")] = False,
) -> None:
    """Download data sets into the cache; then read and check them."""
    import pooch

    from ikpca_papers.data import find, load

    if quiet:
        pooch.get_logger().setLevel("WARNING")
    with as_usage_errors():
        # All names are checked before the first transfer.
        entries = [find(name) for name in names]
        data_sets = [load(entry.name, data) for entry in entries]
    if as_json:
        typer.echo(json.dumps([_as_json(data_set) for data_set in data_sets]))
        return
    for entry, data_set in zip(entries, data_sets, strict=True):
        location = data_set.path or "embedded, nothing to fetch"
        typer.echo(f"{data_set.name}: {location}")
        typer.echo(f"  terms: {entry.terms}")
        if data_set.as_recorded is False:
            typer.echo(
                "  its arrays differ from those that the recorded results were computed from"
            )


def _as_json(data_set: DataSet) -> dict[str, object]:
    return {
        "name": data_set.name,
        "origin": data_set.origin,
        "path": None if data_set.path is None else str(data_set.path),
        "checksum": data_set.checksum,
        "as_recorded": data_set.as_recorded,
    }


#: For pipes and logs, which have no width of their own.
_WIDTH = 120


def list_data(
    data: Annotated[
        Path | None, typer.Option(help="Folder of .npz files; by default $IKPCA_DATA.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the registry as JSON.")] = False,
) -> None:
    """Show every data set: shape, size, terms, and where it is available."""
    from ikpca_papers.data import available_sources
    from ikpca_papers.data.entries import registry

    with as_usage_errors():
        here = {name: available_sources(name, data) for name in registry()}
    if as_json:
        typer.echo(json.dumps([_availability(entry, here, data) for entry in registry().values()]))
        return
    _print_table(here)


def _availability(
    entry: Entry, here: dict[str, tuple[str, ...]], data: Path | None
) -> dict[str, object]:
    from ikpca_papers.data import data_path

    path = data_path(entry.name, data)
    fields = {**vars(entry), "shapes": dict(entry.shapes)}
    fields["remotes"] = [asdict(remote) for remote in entry.remotes]
    return {**fields, "here": here[entry.name], "path": None if path is None else str(path)}


def _print_table(here: dict[str, tuple[str, ...]]) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
    console.print(_table(here))
    console.print(
        "local: in the data folder ($IKPCA_DATA or --data); cached: fetched before; "
        "download: ikpca-papers data fetch NAME",
        style="dim",
    )


def _table(here: dict[str, tuple[str, ...]]) -> Table:
    from rich import box
    from rich.table import Table

    from ikpca_papers.data.entries import registry

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
    """Format the shape of the first array, the data themselves."""
    return "×".join(map(str, next(iter(entry.shapes.values()))))


def where_data(
    name: Annotated[str | None, typer.Argument(help="Leave it out to see the folders.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of .npz files; by default $IKPCA_DATA.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Print the path of a data set; without a name, the data folder and the cache."""
    with as_usage_errors():
        paths = _folders(data) if name is None else _file(name, data)
    if as_json:
        typer.echo(json.dumps(paths))
    elif name is None:
        typer.echo(f"data folder: {paths['data'] or 'none; name one in IKPCA_DATA'}")
        typer.echo(f"cache: {paths['cache']}")
    else:
        typer.echo(paths["path"] or f"{name} is embedded: it has no file.")


def _folders(data: Path | None) -> dict[str, str | None]:
    from ikpca_papers.data import cache_folder, data_folder

    folder = data_folder(data)
    return {"data": None if folder is None else str(folder), "cache": str(cache_folder())}


def _file(name: str, data: Path | None) -> dict[str, str | None]:
    from ikpca_papers.data import DataUnavailable, data_path, find

    path = data_path(name, data)
    entry = find(name)
    if path is None and entry.way != "embedded":
        remedy = (
            f"run: ikpca-papers data fetch {name}"
            if entry.way == "download"
            else f"put {entry.file} into a folder and name that in IKPCA_DATA or with --data"
        )
        raise DataUnavailable(f"{name}: is not here; {remedy}.")
    return {"name": name, "path": None if path is None else str(path)}


data_app = typer.Typer()
data_app.command("list")(list_data)
data_app.command("fetch")(fetch_data)
data_app.command("where")(where_data)


@data_app.callback(invoke_without_command=True)
def _data(context: typer.Context) -> None:
    """List, download and locate data sets."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
