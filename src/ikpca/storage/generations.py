"""A file and the one before it: whatever happens while writing, one of them can be read."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path

from ikpca.errors import UnreadableFile
from ikpca.storage.encoding import Array
from ikpca.storage.files import looks_whole, read, write
from ikpca.storage.manifest import Manifest
from ikpca.storage.whole import told_of

__all__ = ["previous", "read_newest", "write_generation"]


def previous(path: Path) -> Path:
    """Where the generation before the newest one is."""
    return path.with_name(f"{path.name}.previous")


def write_generation(path: Path, manifest: Manifest, arrays: Mapping[str, Array]) -> None:
    """Write the newest generation; the one that was newest becomes the previous one.

    One that is damaged does not: the previous one may be all that there is.
    """
    if path.exists() and looks_whole(path):
        with told_of(path):
            _also_as(path, previous(path))
    write(path, manifest, arrays)


def _also_as(path: Path, name: Path) -> None:
    """A second name for the same file, put in place at once; ``path`` is never missing."""
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.link")
    try:
        os.link(path, beside)
    except OSError:
        # A file system without links: the newest one is then missing for a moment.
        os.replace(path, name)
        return
    try:
        os.replace(beside, name)
    finally:
        # Where a write failed, both names are of one file already, and renaming does nothing.
        beside.unlink(missing_ok=True)


def read_newest(path: Path) -> tuple[Manifest, dict[str, Array], Path] | None:
    """The newest generation that can be read and where it was; None where there is no file."""
    existing = [each for each in (path, previous(path)) if each.exists()]
    for each in existing:
        try:
            return *read(each), each
        except UnreadableFile:
            if each == existing[-1]:
                raise
    return None
