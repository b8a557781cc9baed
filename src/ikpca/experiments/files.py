"""Files that are there whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["prepare_folder", "write_whole"]


def prepare_folder(folder: Path) -> None:
    """Make the folder and try to write to it: better refused now than after the work."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def write_whole(path: Path, content: str | bytes) -> None:
    """Write beside ``path`` and rename, so that no reader ever finds half a file."""
    data = content.encode() if isinstance(content, str) else content
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
