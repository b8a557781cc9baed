"""What a user is told who ends a fit before it is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["told_of_checkpoint"]


@contextmanager
def told_of_checkpoint(path: Path | None, *, resume: bool) -> Iterator[None]:
    """Say how to go on, if an interrupt left something to go on from."""
    before = _age(path)
    try:
        yield
    except KeyboardInterrupt:
        now = _age(path)
        if now is not None and (resume or now != before):
            again = "the same command" if resume else "the same command and --resume"
            sys.stderr.write(f"ikpca fit: {path} says how far it came; go on with {again}.\n")
        raise


def _age(path: Path | None) -> int | None:
    return path.stat().st_mtime_ns if path is not None and path.exists() else None
