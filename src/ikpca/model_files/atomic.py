"""Atomic writing of files and folders."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ikpca.errors import InvalidInput, UnwritableFile


def check_writable(path: Path) -> None:
    """Raise an error if a path cannot be written to.

    Examples
    --------
    >>> check_writable(Path("no such folder", "rows.npy"))
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: no such folder...rows.npy: there is no folder 'no such folder'; ...
    """
    folder = path.parent
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "there is no folder"
        raise InvalidInput(
            f"{path}: {problem} {str(folder)!r}; create it first, or choose another folder."
        )
    with unwritable_file_errors(path), tempfile.TemporaryFile(dir=folder):
        pass


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file in the folder of ``path``; at the end, sync it to disk and rename it.

    ``path`` is at all times either the old file or the new one.
    """
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder: pass the path of a file.")
    with _renamed_at_end(path) as temporary, temporary.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Create a temporary folder and rename it to ``path``, which must be new or empty."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InvalidInput(f"{path} already exists and is not empty: pass a new folder.")
    with _renamed_at_end(path) as temporary:
        temporary.mkdir()
        yield temporary
        if os.name == "nt" and path.exists():
            # Windows does not rename a folder onto another one, not even onto an empty one.
            path.rmdir()


@contextmanager
def _renamed_at_end(path: Path) -> Iterator[Path]:
    """Yield a temporary path that is renamed to ``path``, or removed after an error."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    with unwritable_file_errors(path):
        try:
            yield temporary
            os.replace(temporary, path)
        except BaseException:
            if temporary.is_dir():
                shutil.rmtree(temporary, ignore_errors=True)
            else:
                temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


@contextmanager
def unwritable_file_errors(path: Path) -> Iterator[None]:
    """Convert OSError to UnwritableFile."""
    try:
        yield
    except OSError as error:
        # For a file in a temporary folder, only the reason is of interest.
        cause = error.__cause__ if isinstance(error, UnwritableFile) else error
        reason = getattr(cause, "strerror", None) or cause
        raise UnwritableFile(
            error.errno,
            f"{path} could not be written ({reason}); an existing file is untouched: free some "
            "space or choose another folder",
        ) from cause


def _sync_folder(folder: Path) -> None:
    """Sync the rename to disk, on systems that allow folders to be opened."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
