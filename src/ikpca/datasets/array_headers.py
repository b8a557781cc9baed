"""What NumPy's files claim to hold, before memory is asked for."""

from __future__ import annotations

import math
import os
import zipfile
from pathlib import Path
from typing import IO

from numpy.lib import format as npy

__all__ = ["check_npy", "check_npz_member"]


def check_npy(path: Path) -> None:
    """Raise ValueError where a header claims more bytes than its file has."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            file.seek(0)
            _check(file, os.fstat(file.fileno()).st_size)


def check_npz_member(path: Path, member: str) -> None:
    """Raise ValueError where the header of a member claims more bytes than the member has."""
    with zipfile.ZipFile(path) as archive:
        name = member if member in archive.namelist() else f"{member}.npy"
        with archive.open(name) as file:
            _check(file, archive.getinfo(name).file_size)


def _check(file: IO[bytes], size: int) -> None:
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"its format {version} is unknown")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of shape {shape} has more bytes than the file")
