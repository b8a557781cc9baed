"""Memory that is not there, by the name of our own error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ikpca.errors import OutOfMemory

__all__ = ["memory_named"]


@contextmanager
def memory_named(remedy: str) -> Iterator[None]:
    """Within it, NumPy's complaint about an array becomes a sentence with a remedy."""
    try:
        yield
    except OutOfMemory:
        raise
    except MemoryError as error:
        reason = str(error).rstrip(".") or "an array did not fit"
        raise OutOfMemory(f"There is not enough memory ({reason}): {remedy}.") from error
