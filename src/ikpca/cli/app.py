"""Application: commands and their help."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from ikpca.cli.apply import info, inverse, plot, transform
from ikpca.cli.detect import detect
from ikpca.cli.fit import cluster, fit
from ikpca.cli.options import with_groups
from ikpca.cli.output import run_app

app = typer.Typer(
    name="ikpca",
    help="Iterative kernel PCA.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success, 1 invalid file, 2 invalid arguments, 130 Ctrl-C. Tables are "
    "read from .csv, .tsv, .txt (also .gz), .xlsx, .parquet, .npy and .npz:member.",
)
for command in (fit, transform, inverse, plot, detect, cluster, info):
    app.command()(with_groups(command))


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"ikpca {version('ikpca')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    requested: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Kernel PCA of tables in files."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: list[str]) -> int:
    """Run the application and return its exit code."""
    return run_app(app, arguments, "ikpca")
