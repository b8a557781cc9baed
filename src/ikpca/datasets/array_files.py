"""NumPy's files as tables: ``.npy``, and members of ``.npz``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.datasets.array_headers import check_npy, check_npz_member
from ikpca.datasets.row_table import PictureForm, Table
from ikpca.errors import InvalidInput
from ikpca.storage import written_whole

__all__ = ["array_table", "floats", "read_npy", "read_npz", "white_of", "write_npy", "write_npz"]

#: Larger files are mapped, and read in tiles.
_MAPPED = 256 * 2**20
#: The member that is written where none is named.
_MEMBER = "rows"


def read_npy(path: Path) -> Table:
    """All rows of an array; a large file of floating-point numbers is mapped."""
    mode: Any = "r" if path.stat().st_size >= _MAPPED else None
    try:
        check_npy(path)
        array = np.load(path, mmap_mode=mode, allow_pickle=False)
    except Exception as trouble:
        # Parsers of headers and of compressed data complain of damage in a dozen ways.
        raise InvalidInput(
            f"{path}: is no array of numbers ({_first(trouble)}); save it with numpy.save."
        ) from None
    if not isinstance(array, np.ndarray):
        raise InvalidInput(f"{path}: is an .npz file by its content; rename it.")
    return array_table(array, str(path))


def read_npz(path: Path, member: str | None = None) -> Table:
    """One member of an archive, which must be named where there are several."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = archive.files
            chosen = names[0] if member is None and len(names) == 1 else member
            if chosen not in names:
                told = "which one is meant is not said" if member is None else f"has no {member!r}"
                raise InvalidInput(
                    f"{path}: {told}; write {path.name}:{names[0] if names else 'member'}, or "
                    f"another of {', '.join(names)}."
                )
            check_npz_member(path, str(chosen))
            array = archive[chosen]
    except InvalidInput:
        raise
    except Exception as trouble:
        raise InvalidInput(
            f"{path}: is no archive of arrays of numbers ({_first(trouble)}); save it with "
            "numpy.savez."
        ) from None
    return array_table(array, f"{path}:{chosen}")


def array_table(array: NDArray[Any], told: str) -> Table:
    """An array of two axes as it is; one of three or four as pictures, one per row."""
    if array.dtype.kind not in "fiub":
        raise InvalidInput(f"{told}: holds {array.dtype}, not numbers; save real numbers.")
    if array.ndim not in (2, 3, 4) or not array.size:
        raise InvalidInput(
            f"{told}: has shape {array.shape}; pass rows and columns, or a stack of pictures."
        )
    if array.ndim == 2:
        return Table(floats(array))
    form = PictureForm(array.shape[1:], white_of(array.dtype))
    return Table(floats(array).reshape(len(array), -1), form=form)


def white_of(dtype: np.dtype[Any]) -> float:
    """The value of white, by the type of the pixels."""
    return {"u1": 255.0, "u2": 65535.0}.get(dtype.str[1:], 1.0)


def floats(array: NDArray[Any]) -> NDArray[Any]:
    """Single precision where that holds every value, otherwise double."""
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative:
        return array
    small = array.dtype.itemsize <= 2 or array.dtype == np.dtype(">f4")
    return array.astype(np.float32 if small else np.float64)


def write_npy(path: Path, rows: NDArray[Any]) -> None:
    """The array, whole or not at all."""
    with written_whole(path) as file:
        np.save(file, rows, allow_pickle=False)


def write_npz(path: Path, rows: NDArray[Any], member: str | None = None) -> None:
    """An archive with one member."""
    content: dict[str, Any] = {member or _MEMBER: rows}
    with written_whole(path) as file:
        np.savez(file, **content)


def _first(trouble: Exception) -> str:
    return str(trouble).split("\n", maxsplit=1)[0].rstrip(".") or type(trouble).__name__
