"""Batches of a stream, checked before anything is learned from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from ikpca.errors import InvalidInput
from ikpca.estimators.magnitudes import check_rows
from ikpca.gram import tiles
from ikpca.kernels import Kernel

__all__ = [
    "batch_of_stream",
    "check_finite",
    "check_images",
    "reads_in_slices",
    "rows_of_data",
]

_DTYPES = (np.float64, np.float32)
#: Bad rows that an error names one by one.
_NAMED_ROWS = 5


def batch_of_stream(model: Any, X: Any, *, first: bool, seen: int) -> Any:
    """Rows as float32 or float64, as wide as the stream; NaN is refused by its place."""
    settings = {"dtype": list(_DTYPES), "ensure_all_finite": False}
    if first:
        # The model learns its width only from a batch that is good.
        _check(check_array(X, input_name="X", **settings), seen)
        return validate_data(model, X, reset=True, **settings)
    X = validate_data(model, X, reset=False, **settings)
    _check(X, seen)
    return X


def rows_of_data(model: Any, X: Any) -> Any:
    """A data set to be read in slices, all of it checked before the first of them is."""
    if not reads_in_slices(X):
        X = validate_data(model, X, dtype=list(_DTYPES), ensure_all_finite=False)
        _check(X, 0)
        return X
    if len(X.shape) != 2 or not all(X.shape):
        raise InvalidInput(
            f"X is a {type(X).__name__} of shape {X.shape}: rows come as a table that is not empty;"
            " pass a two-dimensional array."
        )
    for rows in tiles(X.shape[0]):
        _check(_loaded(X[rows]), rows.start)
    validate_data(model, _loaded(X[:1]), dtype=list(_DTYPES))
    return _Elsewhere(X)


class _Elsewhere:
    """Rows that are loaded as they are asked for."""

    def __init__(self, X: Any) -> None:
        self.base = X
        self.shape = tuple(X.shape)
        self.dtype = np.dtype(X.dtype)

    def __getitem__(self, rows: Any) -> Any:
        return _loaded(self.base[rows])


def reads_in_slices(X: Any) -> bool:
    """Whether X lives elsewhere, on disk mostly, and is never loaded whole."""
    if isinstance(X, np.memmap):
        return True
    table = all(hasattr(X, name) for name in ("shape", "dtype", "__getitem__"))
    return table and not isinstance(X, np.ndarray) and not sparse.issparse(X)


def check_finite(X: Any, seen: int) -> None:
    """Refuse rows with NaN or infinity, and say which, in the batch and in the stream."""
    # A sum is finite where all of its terms are, unless it overflows: one cheap look first.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=np.float64)):
            return
    bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if not len(bad):
        return
    more = f" and {len(bad) - _NAMED_ROWS} more" if len(bad) > _NAMED_ROWS else ""
    listed = ", ".join(map(str, bad[:_NAMED_ROWS]))
    in_stream = ", ".join(map(str, bad[:_NAMED_ROWS] + seen))
    raise InvalidInput(
        f"X holds NaN or infinity in rows {listed}{more} (rows {in_stream}{more} of the stream, "
        "both counted from 0): every value must be a finite number; leave these rows out or "
        "impute them. Nothing was learned from this X."
    )


def check_images(kernel: Kernel, X: Any) -> None:
    """Refuse rows whose kernel values overflow, and say which."""
    with np.errstate(over="ignore", invalid="ignore"):
        bad = np.flatnonzero(~np.isfinite(kernel.diagonal(X)))
    if len(bad):
        listed = ", ".join(map(str, bad[:_NAMED_ROWS]))
        raise InvalidInput(
            f"k(x, x) is NaN or infinite for {len(bad)} rows, the first of them {listed} (counted "
            "from 0): every kernel value must be a finite number; scale the rows. Nothing was "
            "learned from this X."
        )


def _check(X: Any, seen: int) -> None:
    check_finite(X, seen)
    check_rows(X, first=not seen)


def _loaded(rows: Any) -> Any:
    return check_array(np.asarray(rows), dtype=list(_DTYPES), ensure_all_finite=False)
