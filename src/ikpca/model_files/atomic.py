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
    """Refuse, before any work, a path that cannot be written to.

    Examples
    --------
    >>> check_place(Path("no such folder", "rows.npy"))
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: no such folder/rows.npy: there is no folder 'no such folder'; ...
    """
    folder = path.parent
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "there is no folder"
        raise InvalidInput(
            f"{path}: {what} {str(folder)!r}; make it first, or choose another place."
        )
    with writing_error(path), tempfile.TemporaryFile(dir=folder):
        pass


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path``; in the end it is forced to disk and renamed.

    Whatever happens, ``path`` holds the old file or the new one.
    """
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder: pass the path of a file.")
    beside = _beside(path)
    with writing_error(path):
        try:
            with beside.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside ``path``, renamed in the end; ``path`` must be new or empty."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InvalidInput(f"{path} is there already, and not empty: name a new folder.")
    beside = _beside(path)
    with writing_error(path):
        try:
            beside.mkdir()
            yield beside
            os.replace(beside, path)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        _sync_folder(path.parent)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")


@contextmanager
def writing_error(path: Path) -> Iterator[None]:
    """Within it, what the system has against writing becomes an error of ours."""
    try:
        yield
    except OSError as error:
        # Of a file inside a folder that is not there yet, only the reason is worth telling.
        cause = error.__cause__ if isinstance(error, UnwritableFile) else error
        reason = getattr(cause, "strerror", None) or cause
        raise UnwritableFile(
            error.errno,
            f"{path} could not be written ({reason}); what was there before is "
            "untouched: free some space or choose another folder",
        ) from cause


def _sync_folder(folder: Path) -> None:
    """Make the rename last too, where the system lets folders be opened."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
