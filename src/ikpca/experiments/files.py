"""Files that are there whole, or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ikpca.storage import written_whole

__all__ = ["prepare_folder", "write_whole"]


def prepare_folder(folder: Path) -> None:
    """Make the folder and try to write to it: better refused now than after the work."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def write_whole(path: Path, content: str | bytes) -> None:
    """Write beside ``path`` and rename, so that no reader ever finds half a file."""
    with written_whole(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
