"""Rows in Dask collections and in files read by the workers."""

from __future__ import annotations

from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.estimators.base import KernelTransformer
from ikpca.gram import tile_slices
from ikpca.kernels import Floats, Indices

#: Bytes that a worker reads at a time.
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
        raise InvalidInput(f"{path}: has an array of shape {header.shape}; save a matrix.")
    parts = [
        da.from_delayed(
            delayed(_read)(str(path), part),
            (part.stop - part.start, header.shape[1]),
            meta=np.empty((0, 0), dtype=header.dtype),
        )
        for part in tile_slices(len(header), max(1, _CHUNK_BYTES // max(1, header[:1].nbytes)))
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
    # A file may have chunks over features; kernels need whole rows.
    return da.from_zarr(str(path)).rechunk({1: -1})


class DaskRows:
    """Rows of a Dask array, computed when indexed."""

    def __init__(self, array: da.Array, client: Any) -> None:
        self.array = array
        self._client = client
        self.shape: tuple[int, int] = tuple(array.shape)
        self.dtype = np.dtype(array.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | Indices) -> Floats:
        """Compute rows as an array in memory."""
        found: Floats = self._client.compute(self.array[rows], sync=True)
        return found


def check_rows(model: KernelTransformer | None, X: Any, *, reset: bool = True) -> da.Array:
    """Return float rows; loading a block with NaN, infinite or overflowing values raises.

    With ``reset``, number and names of the features are set in the model; otherwise the number is
    compared. Without a model there is no check of the features.
    """
    if isinstance(X, str | PathLike):
        X = open_rows(Path(X))
    columns = getattr(X, "columns", None)
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array(lengths=True)
    _check_array(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if model is not None and reset:
        model.n_features_in_ = int(X.shape[1])
        model.__dict__.pop("feature_names_in_", None)
        if columns is not None and all(isinstance(name, str) for name in columns):
            setattr(model, "feature_names_in_", np.asarray(columns, dtype=object))  # noqa: B010
    elif model is not None and X.shape[1] != model.n_features_in_:
        raise InvalidInput(
            f"X has {X.shape[1]} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input; pass rows like those of the fit."
        )
    starts = [0, *np.cumsum(X.chunks[0]).tolist()]
    check = partial(_check_block, starts=starts)
    return X.map_blocks(check, dtype=X.dtype, meta=np.empty((0, 0), dtype=X.dtype))


def _check_array(X: Any) -> None:
    if not isinstance(X, da.Array) or X.ndim != 2:
        raise invalid_parameter(
            "X",
            f"{type(X).__name__} of shape {getattr(X, 'shape', None)}",
            "must be a Dask array with one row per sample, a data frame or a path",
            "pass dask.array.from_array(X, chunks=(10_000, -1))",
        )
    if any(np.isnan(size) for sizes in X.chunks for size in sizes):
        raise InvalidInput("X has chunks of unknown size; call X.compute_chunk_sizes() first.")
    if len(X.chunks[1]) > 1:
        raise InvalidInput(
            f"X has {len(X.chunks[1])} chunks over its features, but kernels need whole rows; pass "
            "X.rechunk({1: -1})."
        )


def _check_block(block: Floats, *, starts: list[int], block_id: tuple[int, int] = (0, 0)) -> Floats:
    if len(block) == 0:
        return block
    number, start = block_id[0], starts[block_id[0]]
    where = f"block {number} (rows {start} to {start + len(block) - 1})"
    bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
    if len(bad):
        raise InvalidInput(
            f"X contains NaN or infinite values in {where}, first in row {start + int(bad[0])}; "
            "replace them."
        )
    largest = float(np.abs(block).max(initial=0.0))
    limit = float(np.sqrt(np.finfo(block.dtype).max))
    if largest > 0 and largest > limit / (starts[-1] * block.shape[1] * largest):
        raise InvalidInput(
            f"X contains numbers as large as {largest:.3g} in {where}: sums of their products "
            f"overflow {block.dtype}; scale X."
        )
    return np.ascontiguousarray(block)
