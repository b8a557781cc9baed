"""Rows in files larger than memory: ``.npy``, members of ``.npz``, Zarr arrays."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from ikpca.errors import InvalidInput
from ikpca.kernels import Floats, Indices

_LOCAL_HEADER = 30


def open_rows(path: str | Path, member: str | None = None) -> Any:
    """Open a file of rows without reading it.

    Parameters
    ----------
    path : str or Path
        A ``.npy`` file, an ``.npz`` file written by ``numpy.savez``, or the folder of a Zarr array.
    member : str, optional
        The array inside an ``.npz`` file; needed where it has more than one.

    Returns
    -------
    memory map, or Zarr array
        For ``KernelPCA.fit``, which reads it in tiles.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca import open_rows
    >>> path = Path(tempfile.mkdtemp(), "rows.npy")
    >>> np.save(path, np.ones((4, 2), dtype=np.float32))
    >>> open_rows(path).shape
    (4, 2)
    """
    path = Path(path)
    if not path.exists():
        raise InvalidInput(f"{path}: there is no such file; check the path.")
    if path.is_dir():
        return _open_zarr(path)
    if zipfile.is_zipfile(path):
        return _open_member(path, member)
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as trouble:
        raise InvalidInput(
            f"{path}: is no .npy file ({trouble}); save it with numpy.save."
        ) from None


def _open_zarr(path: Path) -> Any:
    try:
        import zarr
    except ImportError:
        raise InvalidInput(
            f"{path}: Zarr arrays need the package zarr; run: pip install 'ikpca[zarr]'."
        ) from None
    try:
        return zarr.open_array(str(path), mode="r")
    except (ValueError, TypeError, KeyError, OSError) as trouble:
        raise InvalidInput(
            f"{path}: is no folder of a Zarr array ({str(trouble).strip()}); name one, or a file "
            "that numpy.save wrote."
        ) from None


def _open_member(path: Path, member: str | None) -> Any:
    """Map the bytes of a stored (not compressed) member where they lie in the archive."""
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        wanted = names[0] if member is None and len(names) == 1 else member
        if wanted not in names:
            raise InvalidInput(
                f"member={member!r}: {path} has {', '.join(names)}; name one of them."
            )
        info = archive.infolist()[names.index(wanted)]
    if info.compress_type != zipfile.ZIP_STORED:
        raise InvalidInput(
            f"{path}: {wanted} is compressed and cannot be read in pieces; save it with "
            "numpy.savez instead of numpy.savez_compressed, or load it into memory."
        )
    with path.open("rb") as file:
        _skip_local_header(file, info.header_offset)
        shape, fortran, dtype = _read_npy_header(file)
        if dtype.hasobject:
            raise InvalidInput(f"{path}: {wanted} holds Python objects; save numbers.")
        order: Any = "F" if fortran else "C"
        return np.memmap(path, dtype=dtype, mode="r", offset=file.tell(), shape=shape, order=order)


def _skip_local_header(file: Any, offset: int) -> None:
    """Past the zip format's fixed header, the name and the extra field, to the data."""
    file.seek(offset)
    header = file.read(_LOCAL_HEADER)
    lengths = int.from_bytes(header[26:28], "little"), int.from_bytes(header[28:30], "little")
    file.seek(sum(lengths), 1)


def _read_npy_header(file: Any) -> Any:
    if npy_format.read_magic(file) == (1, 0):
        return npy_format.read_array_header_1_0(file)
    return npy_format.read_array_header_2_0(file)


class LazyRows:
    """Rows of an array that is not in memory, read when they are asked for.

    Parameters
    ----------
    array : array with ``shape``, ``dtype`` and slices, such as a Zarr array
    """

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape: tuple[int, int] = tuple(array.shape)
        self.dtype = np.dtype(array.dtype)

    def __getitem__(self, rows: slice | Indices) -> Floats:
        """Rows as an array in memory."""
        if isinstance(rows, slice):
            return np.asarray(self._array[rows])
        pick = getattr(self._array, "oindex", self._array)
        return np.asarray(pick[np.asarray(rows)])
