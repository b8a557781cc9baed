"""The application: its verbs, one line each."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from ikpca.cli.bench import bench
from ikpca.cli.cluster import cluster
from ikpca.cli.data import data
from ikpca.cli.demo import demo
from ikpca.cli.denoise import denoise
from ikpca.cli.failures import Failure, told
from ikpca.cli.fit import fit
from ikpca.cli.info import info
from ikpca.cli.inverse import inverse
from ikpca.cli.reproduce import reproduce
from ikpca.cli.transform import transform
from ikpca.cli.upscale import upscale

__all__ = ["app", "run"]

_INTERRUPTED = 130

app = typer.Typer(
    name="ikpca",
    help="Iterative kernel PCA.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success, 1 a file or its content is at fault, 2 a mistake in the "
    "command line, 130 Ctrl-C. In place of a file any of .npy, .npz:member, .csv, .parquet, .png, "
    ".jpg, .tif, a folder of pictures, .amc (beside its .asf) or .bvh.",
)
app.command()(fit)
app.command()(transform)
app.command()(inverse)
app.command()(denoise)
app.command()(upscale)
app.command()(cluster)
app.command()(bench)
app.command()(demo)
app.command()(reproduce)
app.add_typer(data, name="data")
app.command()(info)


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
    """Iterative kernel PCA of files of numbers, pictures and motion."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: list[str]) -> int:
    """Run the application and return its exit code."""
    try:
        code = app(arguments, prog_name="ikpca", standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; nothing may be written on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        failure = told(error, _flags(arguments))
        if failure is None:
            raise
        return _stop(failure, arguments)
    # Typer answers an interrupt by an exception or by this code, depending on its version.
    if code == _INTERRUPTED:
        sys.stderr.write("ikpca: interrupted\n")
    return int(code)


def _stop(failure: Failure, arguments: list[str]) -> int:
    verb = _verb(arguments)
    name = f"ikpca {verb}" if verb in _commands() else "ikpca"
    sys.stderr.write(f"{name}: {failure.sentence}\n")
    return failure.code


def _flags(arguments: list[str]) -> dict[str, str]:
    """From the name of a parameter to what a user writes for it."""
    command = _commands().get(_verb(arguments))
    parameters = [] if command is None else command.params
    return {option.name: option.opts[0] for option in parameters if option.opts[0][:2] == "--"}


def _commands() -> dict[str, typer.core.TyperCommand]:
    commands: dict[str, typer.core.TyperCommand] = getattr(
        typer.main.get_command(app), "commands", {}
    )
    return commands


def _verb(arguments: list[str]) -> str:
    return next((word for word in arguments if not word.startswith("-")), "")
