"""Rows that live in a Dask collection, checked before and while they are loaded."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from ikpca.dask.files import open_rows
from ikpca.errors import InvalidInput, refuse
from ikpca.gram import Indices
from ikpca.kernels import Floats

__all__ = ["DaskRows", "as_dask_array", "checked_array"]


class DaskRows:
    """Rows of a Dask array, computed when they are asked for; a solver's X.

    Parameters
    ----------
    array : dask.array.Array
    client : distributed.Client
    """

    def __init__(self, array: da.Array, client: Any) -> None:
        self.array = array
        self._client = client
        self.shape: tuple[int, int] = tuple(array.shape)
        self.dtype = np.dtype(array.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | Indices) -> Floats:
        """Rows as an array in memory."""
        found: Floats = self._client.compute(self.array[rows], sync=True)
        return found


def as_dask_array(X: Any) -> da.Array:
    """A Dask array of a Dask array or data frame; no chunks over features."""
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array(lengths=True)
    if not isinstance(X, da.Array):
        raise refuse("X", type(X).__name__, "must be a Dask array, a data frame or a path",
                     "pass dask.array.from_array(X, chunks=(10_000, -1))")  # fmt: skip
    if X.ndim != 2:
        raise refuse("X", f"array of shape {X.shape}", "must have two dimensions",
                     "one row per sample")  # fmt: skip
    if any(np.isnan(size) for sizes in X.chunks for size in sizes):
        raise InvalidInput(
            "X has chunks of unknown size, and rows must be numbered; call X.compute_chunk_sizes() "
            "first."
        )
    if len(X.chunks[1]) > 1:
        raise InvalidInput(
            f"X is cut into {len(X.chunks[1])} chunks over its features, and kernels need whole "
            "rows; pass X.rechunk({1: -1})."
        )
    return X


def checked_array(model: Any, X: Any, *, reset: bool = True) -> da.Array:
    """Float rows; a block with NaN, infinite or overflowing numbers fails where it is loaded.

    The model, where there is one, learns the features, or has to know them.
    """
    if isinstance(X, str | PathLike):
        X = open_rows(Path(X))
    names = _column_names(X)
    X = as_dask_array(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if model is not None:
        _check_features(model, int(X.shape[1]), names, reset=reset)
    starts = tuple(np.concatenate([[0], np.cumsum(X.chunks[0])]).tolist())
    check = _Check(starts, int(X.shape[0]))
    return X.map_blocks(
        check, token="checked-rows", dtype=X.dtype, meta=np.empty((0, 0), dtype=X.dtype)
    )


@dataclass(frozen=True)
class _Check:
    """A function that can be pickled, as the graph of an array must be."""

    starts: tuple[int, ...]
    n_samples: int

    def __call__(self, block: Floats, block_id: tuple[int, int] = (0, 0)) -> Floats:
        return _checked(block, block_id[0], self.starts[block_id[0]], self.n_samples)


def _checked(block: Floats, number: int, start: int, n_samples: int) -> Floats:
    if len(block) == 0:
        return block
    where = f"block {number} (rows {start} to {start + len(block) - 1})"
    bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
    if len(bad):
        raise InvalidInput(
            f"X holds NaN or infinite values in {where}, first in row {start + int(bad[0])}; "
            "replace them."
        )
    largest = float(np.abs(block).max(initial=0.0))
    limit = float(np.sqrt(np.finfo(block.dtype).max))
    if largest > 0 and largest > limit / (n_samples * block.shape[1] * largest):
        raise InvalidInput(
            f"X holds numbers as large as {largest:.3g} in {where}: sums of their products "
            f"overflow {block.dtype}; scale X."
        )
    return np.ascontiguousarray(block)


def _column_names(X: Any) -> Any:
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.asarray(columns, dtype=object)


def _check_features(model: Any, number: int, names: Any, *, reset: bool) -> None:
    if not reset:
        if number != model.n_features_in_:
            raise InvalidInput(
                f"X has {number} features, but {type(model).__name__} is expecting "
                f"{model.n_features_in_} features as input; pass rows like those of the fit."
            )
        return
    model.n_features_in_ = number
    model.__dict__.pop("feature_names_in_", None)
    if names is not None:
        model.feature_names_in_ = names
