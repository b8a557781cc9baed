"""``ikpca data where``: the file of a data set, or the folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ikpca.cli.failures import naming_mistakes

__all__ = ["where_data"]


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
    with naming_mistakes():
        told = _folders(data) if name is None else _file(name, data)
    if as_json:
        typer.echo(json.dumps(told))
    elif name is None:
        typer.echo(f"data folder: {told['data'] or 'none; name one in IKPCA_DATA'}")
        typer.echo(f"cache: {told['cache']}")
    else:
        typer.echo(told["path"] or f"{name} is embedded: it has no file.")


def _folders(data: Path | None) -> dict[str, str | None]:
    from ikpca.datasets import cache_folder, data_folder

    folder = data_folder(data)
    return {"data": None if folder is None else str(folder), "cache": str(cache_folder())}


def _file(name: str, data: Path | None) -> dict[str, str | None]:
    from ikpca.datasets import find, where
    from ikpca.errors import DataUnavailable

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
