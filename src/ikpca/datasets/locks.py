"""One process at a time at a file of the cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ikpca.datasets.folders import needed
from ikpca.errors import DataUnavailable

__all__ = ["locked", "unwritable"]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Make the folder of ``path`` and wait until nobody else is at that file.

    The system lets go of the lock of a process that dies. Its empty file stays, since taking it
    away could take it from under somebody who waits.
    """
    filelock = needed("filelock")
    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise unwritable(path.parent, error) from error
    try:
        yield
    finally:
        lock.release()


def unwritable(folder: Path, error: OSError) -> DataUnavailable:
    """The sentence for a folder that is read-only, absent or full."""
    reason = (error.strerror or str(error)).lower()
    return DataUnavailable(
        f"{folder}: cannot be written to ({reason}); make room or name another in IKPCA_CACHE."
    )
