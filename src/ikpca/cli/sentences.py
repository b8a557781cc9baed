"""What becomes of errors: one sentence on standard error, and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

__all__ = ["in_one_sentence"]

_FAILED, _MISTAKE = 1, 2


@contextmanager
def in_one_sentence(verb: str) -> Iterator[None]:
    """Say what this library raises, and stop: 2 for a mistake of the user, 1 for a failure."""
    from ikpca.errors import DataUnavailable, InvalidInput

    try:
        yield
    except (DataUnavailable, InvalidInput) as error:
        typer.echo(f"ikpca {verb}: {error}", err=True)
        raise typer.Exit(_MISTAKE if isinstance(error, InvalidInput) else _FAILED) from error
