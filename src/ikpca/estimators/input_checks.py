"""Checks of the values of rows and batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from ikpca.errors import InvalidInput, OutOfMemory
from ikpca.estimators.validation import FLOAT_DTYPES
from ikpca.gram import tile_slices
from ikpca.kernels import Floats, Gaussian, Kernel, squared_norms

#: Number of invalid rows listed in an error message.
_MAX_LISTED_ROWS = 5


@contextmanager
def explain_memory_errors(remedy: str) -> Iterator[None]:
    """Replace MemoryError by an error with a remedy."""
    try:
        yield
    except OutOfMemory:
        raise
    except MemoryError as error:
        reason = str(error).rstrip(".") or "an array did not fit"
        raise OutOfMemory(f"Not enough memory ({reason}): {remedy}.") from error


def check_overflow(X: Any, *, first: bool = True) -> None:
    """Reject rows whose squared inner products, summed over all rows, overflow.

    Also reject all rows of a fit, or the first batch of a stream, if their squares underflow.
    """
    limit = float(np.sqrt(np.finfo(X.dtype).max))
    overall = 0.0
    for strip in tile_slices(X.shape[0]):
        largest = _max_magnitude(X[strip])
        overall = max(overall, largest)
        # Compared by division, as the product itself may overflow.
        if largest > 0 and largest > limit / (X.shape[0] * X.shape[1] * largest):
            row = strip.start + int(_row_magnitudes(X[strip]).argmax())
            raise InvalidInput(
                f"X has values as large as {largest:.3g}, in row {row} (counted from 0): sums of "
                f"their products overflow {X.dtype}; scale X, for example with "
                "sklearn.preprocessing.StandardScaler."
            )
    if first and 0 < overall < _min_magnitude(X.dtype):
        raise InvalidInput(
            f"X has no value larger than {overall:.3g}: squares of such values underflow in "
            f"{X.dtype}; scale X, for example with sklearn.preprocessing.StandardScaler."
        )


def check_kernel_values(kernel: Kernel | None, X: Any) -> None:
    """Reject rows whose k(x, x) is not finite or overflows when summed and squared."""
    if kernel is None:
        return
    check_distances(kernel, X)
    largest = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for strip in tile_slices(X.shape[0]):
            largest = max(largest, float(np.abs(kernel.diagonal(X[strip])).max()))
            if not largest <= float(np.sqrt(np.finfo(X.dtype).max)) / X.shape[0]:
                raise InvalidInput(
                    f"k(x, x) is as large as {largest:.3g} under {kernel!r}: sums of kernel values "
                    f"overflow {X.dtype}; scale X, or choose a smaller gamma or degree."
                )


def check_distances(kernel: Kernel, X: Any, origin: Any = None) -> None:
    """Reject rows so far apart that rounding errors exceed the width of a Gaussian kernel.

    Exponents are differences of squared norms; beyond this limit even k(x, x) differs from 1.
    Dense rows are compared with ``origin``, the first row by default; CSR rows are never shifted.
    """
    if not isinstance(kernel, Gaussian):
        return
    limit = 1 / float(np.finfo(X.dtype).eps)
    origin = X[:1] if origin is None else origin
    for strip in tile_slices(X.shape[0]):
        part = X[strip] if sparse.issparse(X) else X[strip] - origin
        exponent = kernel.gamma * float(squared_norms(part).max())
        if not exponent <= limit:
            raise InvalidInput(
                f"rows of X are so far apart that gamma times their squared distance is "
                f"{exponent:.3g}, more than {X.dtype} resolves under {kernel!r}; scale X, or pass "
                "gamma='scale'."
            )


def finite_projections(project: Callable[[], Floats]) -> Floats:
    """Compute projections; raise an error if kernel values of finite rows are not finite."""
    remedy = "pass fewer rows at a time, or compress the model"
    with np.errstate(over="ignore", invalid="ignore"), explain_memory_errors(remedy):
        projections = project()
    if not np.isfinite(projections).all():
        bad = np.flatnonzero(~np.isfinite(projections).all(axis=1))
        raise InvalidInput(
            f"X: kernel values of {len(bad)} rows, the first of them row {bad[0]}, are not finite; "
            "scale X like the rows of the fit, or choose another kernel."
        )
    return projections


def cast_arrays(arrays: Sequence[Floats], dtype: np.dtype[Any]) -> list[Floats]:
    """Cast arrays to the dtype of the rows; raise an error if values overflow."""
    with np.errstate(over="ignore"):
        narrow = [array.astype(dtype, copy=False) for array in arrays]
    if not all(np.isfinite(array).all() for array in narrow):
        raise InvalidInput(
            f"X: the kernel values vary so little that the components overflow {dtype}; pass rows "
            "in double precision, or scale X."
        )
    return narrow


def _min_magnitude(dtype: np.dtype[Any]) -> float:
    """Return the smallest magnitude whose square has full precision."""
    limits = np.finfo(dtype)
    return float(np.sqrt(limits.tiny / limits.eps))


def _max_magnitude(part: Any) -> float:
    values = part.data if sparse.issparse(part) else part
    return float(np.abs(values).max(initial=0.0))


def _row_magnitudes(part: Any) -> Floats:
    largest = abs(part).max(axis=1)
    return largest.toarray().ravel() if sparse.issparse(largest) else largest


def validate_batch(model: Any, X: Any, *, first: bool, seen: int) -> Any:
    """Validate a batch of a stream and return it as float32 or float64."""
    settings = {"dtype": FLOAT_DTYPES, "ensure_all_finite": False}
    if first:
        # n_features_in_ is set only by a valid batch.
        _check_values(check_array(X, input_name="X", **settings), seen)
        return validate_data(model, X, reset=True, **settings)
    X = validate_data(model, X, reset=False, **settings)
    _check_values(X, seen)
    return X


def validate_rows(model: Any, X: Any) -> Any:
    """Validate all rows of a data set, which may be read in slices."""
    if not reads_in_slices(X):
        X = validate_data(model, X, dtype=FLOAT_DTYPES, ensure_all_finite=False)
        _check_values(X, 0)
        return X
    if len(X.shape) != 2 or not all(X.shape):
        raise InvalidInput(
            f"X is a {type(X).__name__} of shape {X.shape}: it must be two-dimensional and not "
            "empty; pass a two-dimensional array."
        )
    for rows in tile_slices(X.shape[0]):
        _check_values(_load(X[rows]), rows.start)
    validate_data(model, _load(X[:1]), dtype=FLOAT_DTYPES)
    return _SlicedRows(X)


class _SlicedRows:
    """Rows that are loaded by slices."""

    def __init__(self, X: Any) -> None:
        self.base = X
        self.shape = tuple(X.shape)
        self.dtype = np.dtype(X.dtype)

    def __getitem__(self, rows: Any) -> Any:
        return _load(self.base[rows])


def reads_in_slices(X: Any) -> bool:
    """Return True for memory maps and array-likes on disk, which are never loaded completely."""
    if isinstance(X, np.memmap):
        return True
    table = all(hasattr(X, name) for name in ("shape", "dtype", "__getitem__"))
    return table and not isinstance(X, np.ndarray) and not sparse.issparse(X)


def check_finite(X: Any, seen: int) -> None:
    """Reject NaN and infinity; report the rows by their index in the batch and in the stream."""
    # Cheap test first: unless it overflows, a sum is finite if all of its terms are.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=np.float64)):
            return
    bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if not len(bad):
        return
    more = f" and {len(bad) - _MAX_LISTED_ROWS} more" if len(bad) > _MAX_LISTED_ROWS else ""
    listed = ", ".join(map(str, bad[:_MAX_LISTED_ROWS]))
    in_stream = ", ".join(map(str, bad[:_MAX_LISTED_ROWS] + seen))
    raise InvalidInput(
        f"X contains NaN or infinity in rows {listed}{more} (rows {in_stream}{more} of the stream, "
        "both counted from 0): every value must be a finite number; leave these rows out or "
        "impute them. The model is unchanged."
    )


def check_diagonal(kernel: Kernel, X: Any) -> None:
    """Reject rows whose k(x, x) is not finite; report their indices."""
    with np.errstate(over="ignore", invalid="ignore"):
        bad = np.flatnonzero(~np.isfinite(kernel.diagonal(X)))
    if len(bad):
        listed = ", ".join(map(str, bad[:_MAX_LISTED_ROWS]))
        raise InvalidInput(
            f"k(x, x) is NaN or infinite for {len(bad)} rows, the first of them {listed} (counted "
            "from 0): every kernel value must be a finite number; scale the rows. The model is "
            "unchanged."
        )


def _check_values(X: Any, seen: int) -> None:
    check_finite(X, seen)
    check_overflow(X, first=not seen)


def _load(rows: Any) -> Any:
    return check_array(np.asarray(rows), dtype=FLOAT_DTYPES, ensure_all_finite=False)
