"""Files of rows as Dask arrays, read by the workers themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed

from ikpca.errors import InvalidInput
from ikpca.gram import tiles
from ikpca.kernels import Floats

__all__ = ["open_rows"]

#: What a worker reads at a time.
_CHUNK_BYTES = 64 * 10**6


def open_rows(path: str | Path) -> Any:
    """Open a file of rows without reading it; workers must see it under the same path.

    Parameters
    ----------
    path : str or Path
        A ``.npy`` file, the folder of a Zarr array, or a ``.parquet`` file or a folder of them.

    Returns
    -------
    dask array, or data frame for Parquet
        For the ``fit`` of the estimators here, which take the path itself as well.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.dask import open_rows
    >>> path = Path(tempfile.mkdtemp(), "rows.npy")
    >>> np.save(path, np.ones((4, 2), dtype=np.float32))
    >>> open_rows(path)
    dask.array<...shape=(4, 2), dtype=float32...>
    """
    path = Path(path)
    if not path.exists():
        raise InvalidInput(f"{path}: there is no such file; check the path.")
    if path.suffix == ".npy":
        return _open_npy(path)
    if path.suffix in (".parquet", ".pq") or (path.is_dir() and any(path.glob("*.parquet"))):
        from dask.dataframe import read_parquet

        return read_parquet(str(path))
    if path.is_dir():
        return _open_zarr(path)
    raise InvalidInput(
        f"{path}: a cluster reads .npy, Zarr and Parquet; save rows as one of these, or pass a "
        "Dask array."
    )


def _open_npy(path: Path) -> da.Array:
    header = np.load(path, mmap_mode="r", allow_pickle=False)
    if header.ndim != 2:
        raise InvalidInput(f"{path}: holds an array of shape {header.shape}; save rows of numbers.")
    parts = [
        da.from_delayed(
            delayed(_read)(str(path), part),
            (part.stop - part.start, header.shape[1]),
            meta=np.empty((0, 0), dtype=header.dtype),
        )
        for part in tiles(len(header), max(1, _CHUNK_BYTES // max(1, header[:1].nbytes)))
    ]
    return da.concatenate(parts)


def _read(path: str, part: slice) -> Floats:
    return np.array(np.load(path, mmap_mode="r", allow_pickle=False)[part])


def _open_zarr(path: Path) -> da.Array:
    try:
        import zarr  # noqa: F401
    except ImportError:
        raise InvalidInput(
            f"{path}: Zarr arrays need the package zarr; run: pip install 'ikpca[zarr]'."
        ) from None
    # How a file is cut is not its reader's doing.
    return da.from_zarr(str(path)).rechunk({1: -1})
