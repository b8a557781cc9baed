"""``ikpca data``: its verbs."""

from __future__ import annotations

import typer

from ikpca.cli.data_fetch import fetch_data
from ikpca.cli.data_list import list_data
from ikpca.cli.data_where import where_data

__all__ = ["data"]

data = typer.Typer()


@data.callback(invoke_without_command=True)
def _data(context: typer.Context) -> None:
    """Data sets: what there is, getting one, where it lies."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


data.command("list")(list_data)
data.command("fetch")(fetch_data)
data.command("where")(where_data)
