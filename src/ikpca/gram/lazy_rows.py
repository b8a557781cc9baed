"""Rows in files larger than memory: ``.npy``, members of ``.npz``, Zarr arrays."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from ikpca.errors import InvalidInput
from ikpca.kernels import Floats, Indices

#: Bytes of the fixed part of a local file header in the zip format.
_ZIP_HEADER_BYTES = 30


def open_rows(path: str | Path, member: str | None = None) -> Any:
    """Open a file of rows without reading it.

    Parameters
    ----------
    path : str or Path
        A ``.npy`` file, an ``.npz`` file written by ``numpy.savez``, or the folder of a Zarr array.
    member : str, optional
        Name of the array in an ``.npz`` file; required if it has more than one.

    Returns
    -------
    memory map, or Zarr array
        Input for ``KernelPCA.fit``, which reads it in tiles.

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
    except ValueError as error:
        raise InvalidInput(
            f"{path}: is not a .npy file ({error}); save it with numpy.save."
        ) from None


class LazyRows:
    """Rows of an array on disk, read when indexed.

    Parameters
    ----------
    array : object with ``shape``, ``dtype`` and slicing, such as a Zarr array
    """

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape: tuple[int, int] = tuple(array.shape)
        self.dtype = np.dtype(array.dtype)

    def __getitem__(self, rows: slice | Indices) -> Floats:
        """Read rows into memory."""
        if isinstance(rows, slice):
            return np.asarray(self._array[rows])
        # Zarr indexes with arrays through oindex.
        indexer = getattr(self._array, "oindex", self._array)
        return np.asarray(indexer[np.asarray(rows)])


def _open_zarr(path: Path) -> Any:
    try:
        import zarr
    except ImportError:
        raise InvalidInput(
            f"{path}: Zarr arrays need the package zarr; run: pip install 'ikpca[zarr]'."
        ) from None
    try:
        return zarr.open_array(str(path), mode="r")
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise InvalidInput(
            f"{path}: is not the folder of a Zarr array ({str(error).strip()}); pass one, or a "
            "file written by numpy.save."
        ) from None


def _open_member(path: Path, member: str | None) -> Any:
    """Memory-map a member that is stored without compression."""
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        name = names[0] if member is None and len(names) == 1 else member
        if name not in names:
            raise InvalidInput(
                f"member={member!r}: {path} contains {', '.join(names)}; choose one of them."
            )
        info = archive.infolist()[names.index(name)]
    if info.compress_type != zipfile.ZIP_STORED:
        raise InvalidInput(
            f"{path}: {name} is compressed and cannot be memory-mapped; save it with "
            "numpy.savez instead of numpy.savez_compressed, or load it into memory."
        )
    with path.open("rb") as file:
        _skip_local_header(file, info.header_offset)
        shape, fortran, dtype = _read_npy_header(file)
        if dtype.hasobject:
            raise InvalidInput(f"{path}: {name} contains Python objects; save an array of numbers.")
        order: Any = "F" if fortran else "C"
        return np.memmap(path, dtype=dtype, mode="r", offset=file.tell(), shape=shape, order=order)


def _skip_local_header(file: Any, offset: int) -> None:
    """Move past the fixed header, the name and the extra field of a zip member to its data."""
    file.seek(offset)
    header = file.read(_ZIP_HEADER_BYTES)
    lengths = int.from_bytes(header[26:28], "little"), int.from_bytes(header[28:30], "little")
    file.seek(sum(lengths), 1)


def _read_npy_header(file: Any) -> Any:
    if npy_format.read_magic(file) == (1, 0):
        return npy_format.read_array_header_1_0(file)
    return npy_format.read_array_header_2_0(file)
