"""Numbers so large or small that their products are none: refused at the door, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ikpca.errors import InvalidInput
from ikpca.estimators.shortage import memory_named
from ikpca.gram import tiles
from ikpca.kernels import Floats, Gaussian, Kernel, squared_norms

__all__ = [
    "check_distances",
    "check_kernel_values",
    "check_rows",
    "finite_projections",
    "narrowed",
]


def check_rows(X: Any, *, first: bool = True) -> None:
    """Refuse rows of which the squares of inner products, summed over all rows, overflow.

    And all rows of a fit, or the first of a stream, if their squares have no digits to spare.
    """
    limit = float(np.sqrt(np.finfo(X.dtype).max))
    overall = 0.0
    for strip in tiles(X.shape[0]):
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
        for strip in tiles(X.shape[0]):
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
    for strip in tiles(X.shape[0]):
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
    with np.errstate(over="ignore", invalid="ignore"), memory_named(remedy):
        projections = project()
    if not np.isfinite(projections).all():
        bad = np.flatnonzero(~np.isfinite(projections).all(axis=1))
        raise InvalidInput(
            f"X: kernel values of {len(bad)} rows, the first of them row {bad[0]}, are not finite; "
            "scale X like the rows of the fit, or choose another kernel."
        )
    return projections


def narrowed(arrays: Sequence[Floats], dtype: np.dtype[Any]) -> list[Floats]:
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
