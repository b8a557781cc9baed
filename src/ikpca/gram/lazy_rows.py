"""Rows in files larger than memory: ``.npy``, Parquet, Zarr arrays."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ikpca.errors import InvalidInput
from ikpca.kernels import Floats, Indices, Rows


def open_rows(path: str | Path) -> Rows:
    """Open a file of rows without reading it.

    Parameters
    ----------
    path : str or Path
        A ``.npy`` file, a ``.parquet`` file of numbers, or the folder of a Zarr array.

    Returns
    -------
    memory map, Zarr array, or object that reads the row groups of Parquet
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
    if path.suffix == ".parquet":
        return _open_parquet(path)
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise InvalidInput(
            f"{path}: is not a .npy file ({error}); save it with numpy.save."
        ) from None


class LazyRows:
    """Rows of an array on disk, such as a Zarr array or a dataset of h5py, read when indexed.

    They are converted to ``dtype``; that of the array by default.
    """

    def __init__(self, array: Rows, dtype: DTypeLike | None = None) -> None:
        self._array = array
        self.shape: tuple[int, int] = tuple(array.shape)
        self.dtype = np.dtype(array.dtype if dtype is None else dtype)

    def __getitem__(self, rows: slice | Indices) -> Floats:
        """Read rows into memory."""
        if isinstance(rows, slice):
            return np.asarray(self._array[rows], dtype=self.dtype)
        # Zarr indexes with arrays through oindex; h5py needs ascending indices.
        indexer: Rows = getattr(self._array, "oindex", self._array)
        ascending, positions = np.unique(rows, return_inverse=True)
        return np.asarray(indexer[ascending], dtype=self.dtype)[positions]

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Floats:
        """Read all rows, for methods that need them in memory."""
        return np.asarray(self[:], dtype=dtype)


class ParquetRows(LazyRows):
    """Rows of a Parquet file, read by row groups, of which the last one stays in memory."""

    def __init__(self, file: Any) -> None:
        self._file = file
        fields = [str(field.type) for field in file.schema_arrow]
        self.dtype = np.dtype(np.float32 if set(fields) == {"float"} else np.float64)
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._stops = np.cumsum(sizes, dtype=np.intp)
        self.shape = (int(sum(sizes)), len(fields))
        self._lock = threading.Lock()
        self._last: tuple[int, Floats] = (-1, np.empty((0, len(fields)), dtype=self.dtype))

    def __getitem__(self, rows: slice | Indices) -> Floats:
        """Read rows into memory."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.shape[0]))
        out = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        groups = np.searchsorted(self._stops, rows, side="right")
        for group in np.unique(groups):
            own = groups == group
            first = self._stops[group - 1] if group else 0
            out[own] = self._read(int(group))[np.asarray(rows)[own] - first]
        return out

    def _read(self, group: int) -> Floats:
        with self._lock:
            if self._last[0] != group:
                table = self._file.read_row_group(group)
                columns = [column.to_numpy() for column in table.columns]
                self._last = (group, np.column_stack(columns).astype(self.dtype, copy=False))
            return self._last[1]


def _open_parquet(path: Path) -> ParquetRows:
    try:
        from pyarrow import ArrowException, parquet, types
    except ImportError:
        raise InvalidInput(
            f"{path}: Parquet files need the package pyarrow; run: pip install 'ikpca[parquet]'."
        ) from None
    try:
        file = parquet.ParquetFile(path)
    except (ArrowException, OSError) as error:
        raise InvalidInput(f"{path}: is not a Parquet file ({error}); write it again.") from None
    for field in file.schema_arrow:
        if not (types.is_floating(field.type) or types.is_integer(field.type)):
            raise InvalidInput(
                f"{path}: column {field.name!r} has type {field.type}; only columns of numbers are "
                "read in place; remove it."
            )
    return ParquetRows(file)


def _open_zarr(path: Path) -> Rows:
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
