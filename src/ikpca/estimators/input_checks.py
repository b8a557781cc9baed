"""Checks of the values of rows and batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from ikpca.errors import InvalidInput, OutOfMemory
from ikpca.gram import tile_slices
from ikpca.kernels import Floats, Gaussian, Kernel, squared_norms


@contextmanager
def named_memory_errors(remedy: str) -> Iterator[None]:
    """Within it, NumPy's complaint about an array becomes a sentence with a remedy."""
    try:
        yield
    except OutOfMemory:
        raise
    except MemoryError as error:
        reason = str(error).rstrip(".") or "an array did not fit"
        raise OutOfMemory(f"There is not enough memory ({reason}): {remedy}.") from error


def check_overflow(X: Any, *, first: bool = True) -> None:
    """Refuse rows of which the squares of inner products, summed over all rows, overflow.

    And all rows of a fit, or the first of a stream, if their squares have no digits to spare.
    """
    limit = float(np.sqrt(np.finfo(X.dtype).max))
    overall = 0.0
    for strip in tile_slices(X.shape[0]):
        largest = _largest(X[strip])
        overall = max(overall, largest)
        # Compared by division, as the product itself may overflow.
        if largest > 0 and largest > limit / (X.shape[0] * X.shape[1] * largest):
            row = strip.start + int(_largest_of_rows(X[strip]).argmax())
            raise InvalidInput(
                f"X holds numbers as large as {largest:.3g}, in row {row} (counted from 0): sums "
                f"of their products overflow {X.dtype}; scale X, for example with "
                "sklearn.preprocessing.StandardScaler."
            )
    if first and 0 < overall < _smallest(X.dtype):
        raise InvalidInput(
            f"X holds no number larger than {overall:.3g}: squares of such numbers vanish in "
            f"{X.dtype}; scale X, for example with sklearn.preprocessing.StandardScaler."
        )


def check_kernel_values(kernel: Kernel | None, X: Any) -> None:
    """Refuse rows whose k(x, x) is not finite, or too large to be summed and squared."""
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
    """Refuse rows so far apart, in widths of a Gaussian, that rounding alone spans a width.

    Exponents are differences of squared norms: beyond this not even k(x, x) = 1 comes out. Dense
    rows are compared with ``origin``, the first of them by default; CSR rows are never shifted.
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
    """Projections, if all are numbers; rows may be sound and their kernel values not."""
    remedy = "pass fewer rows at a time, or compress the model"
    with np.errstate(over="ignore", invalid="ignore"), named_memory_errors(remedy):
        projections = project()
    if not np.isfinite(projections).all():
        bad = np.flatnonzero(~np.isfinite(projections).all(axis=1))
        raise InvalidInput(
            f"X: kernel values of {len(bad)} rows, the first of them row {bad[0]}, are not finite; "
            "scale X like the rows of the fit, or choose another kernel."
        )
    return projections


def in_dtype_of(arrays: Sequence[Floats], dtype: np.dtype[Any]) -> list[Floats]:
    """Arrays in the precision of the rows; what that has no numbers for is refused."""
    with np.errstate(over="ignore"):
        narrow = [array.astype(dtype, copy=False) for array in arrays]
    if not all(np.isfinite(array).all() for array in narrow):
        raise InvalidInput(
            f"X: its kernel values vary so little that components have no place in {dtype}; pass "
            "rows in double precision, or scale X."
        )
    return narrow


def _smallest(dtype: np.dtype[Any]) -> float:
    """Whose square, and the rounding of it, can still be told from zero."""
    limits = np.finfo(dtype)
    return float(np.sqrt(limits.tiny / limits.eps))


def _largest(part: Any) -> float:
    values = part.data if sparse.issparse(part) else part
    return float(np.abs(values).max(initial=0.0))


def _largest_of_rows(part: Any) -> Floats:
    largest = abs(part).max(axis=1)
    return largest.toarray().ravel() if sparse.issparse(largest) else largest


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
    for rows in tile_slices(X.shape[0]):
        _check(_loaded(X[rows]), rows.start)
    validate_data(model, _loaded(X[:1]), dtype=list(_DTYPES))
    return _RemoteRows(X)


class _RemoteRows:
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
    check_overflow(X, first=not seen)


def _loaded(rows: Any) -> Any:
    return check_array(np.asarray(rows), dtype=list(_DTYPES), ensure_all_finite=False)
