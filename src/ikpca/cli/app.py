"""The application: its verbs, and what becomes of its errors."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from ikpca.cli.data import data
from ikpca.cli.demo import demo
from ikpca.cli.reproduce import reproduce

__all__ = ["app", "run"]

_INTERRUPTED = 130

app = typer.Typer(
    name="ikpca",
    help="Iterative kernel PCA.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(reproduce)
app.add_typer(data, name="data")


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ikpca {version('ikpca')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    wanted: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_tell_version, is_eager=True),
    ] = False,
) -> None:
    """Iterative kernel PCA."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: list[str]) -> int:
    """Run the application and return its exit code."""
    try:
        code = app(arguments, prog_name="ikpca", standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except Exception as error:
        # Typer carries its own copy of click in some versions and not in others, so its errors
        # are known by what they can do.
        if not hasattr(error, "format_message"):
            raise
        sys.stderr.write(f"ikpca: {error.format_message()}\n")
        return int(getattr(error, "exit_code", 1))
    # Typer answers an interrupt by an exception or by this code, depending on its version.
    if code == _INTERRUPTED:
        sys.stderr.write("ikpca: interrupted\n")
    return int(code)
