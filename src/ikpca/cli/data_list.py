"""``ikpca data list``: the registry, and what can be had here."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ikpca.cli.failures import naming_mistakes

if TYPE_CHECKING:
    from rich.table import Table

    from ikpca.datasets import Entry

__all__ = ["list_data"]

#: For pipes and logs, which have no width of their own.
_WIDTH = 120


def list_data(
    data: Annotated[
        Path | None, typer.Option(help="Folder of .npz files; by default $IKPCA_DATA.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything known, as JSON.")] = False,
) -> None:
    """Show every data set: shape, size, terms, and how it can be had here."""
    from ikpca.datasets import registry, ways

    with naming_mistakes():
        here = {name: ways(name, data) for name in registry()}
    if as_json:
        typer.echo(json.dumps([_told(entry, here, data) for entry in registry().values()]))
        return
    _show(here)


def _told(entry: Entry, here: dict[str, tuple[str, ...]], data: Path | None) -> dict[str, object]:
    from ikpca.datasets import where

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

    from ikpca.datasets import registry

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
