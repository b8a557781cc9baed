"""Validation of rows; kernels from names; threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from os import PathLike as OsPath
from typing import Any, Literal, TypeAlias

import numpy as np
from joblib import cpu_count
from numpy.random import RandomState
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from ikpca.errors import Choice, InvalidInput, Number, OutOfMemory, invalid_parameter
from ikpca.gram import tile_slices
from ikpca.gram.lazy_rows import LazyRows
from ikpca.gram.resources import THREAD_POOLS, release_pages, single_threaded_blas
from ikpca.gram.sources import TILE
from ikpca.kernels import (
    Cosine,
    Floats,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Pairwise,
    Polynomial,
    Rows,
    Sigmoid,
    Vectorized,
    one_norm_distances,
)
from ikpca.preimages import PreimageMethod

#: Types of public parameters.
RowsLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix | LazyRows
KernelLike: TypeAlias = str | Kernel | Callable[..., object]
GammaLike: TypeAlias = float | Literal["scale", "median"] | None
PreimageLike: TypeAlias = str | PreimageMethod
RandomStateLike: TypeAlias = int | RandomState | None
PathLike: TypeAlias = str | OsPath[str]

#: Kernels by scikit-learn's names, from gamma, degree and coef0.
_BUILDERS: dict[str, Callable[[float, float, float], Kernel]] = {
    "linear": lambda gamma, degree, coef0: Linear(),
    "poly": lambda gamma, degree, coef0: Polynomial(degree, gamma, coef0),
    "polynomial": lambda gamma, degree, coef0: Polynomial(degree, gamma, coef0),
    "rbf": lambda gamma, degree, coef0: Gaussian(gamma),
    "sigmoid": lambda gamma, degree, coef0: Sigmoid(gamma, coef0),
    "cosine": lambda gamma, degree, coef0: Cosine(),
    "laplacian": lambda gamma, degree, coef0: Laplacian(gamma),
}
KERNEL_NAMES = tuple(_BUILDERS)
#: Names of the kernels of a distance.
_RADIAL_NAMES = ("rbf", "laplacian")

FLOAT_DTYPES = (np.float64, np.float32)
#: Number of rows drawn for the median of distances.
_MEDIAN_ROWS = 1000
#: Number of invalid rows listed in an error message.
_MAX_LISTED_ROWS = 5


def draw_seed(random_state: object) -> int:
    """Draw an integer seed from ``random_state``; raise an error if it is not a seed."""
    try:
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    except ValueError:
        raise invalid_parameter(
            "random_state",
            random_state,
            "must be an integer from 0 to 2³² − 1, a RandomState or None",
            "pass 0",
        ) from None


def is_named(value: object, *names: str) -> bool:
    """Return True if a parameter, which may be an object, is one of the names."""
    return isinstance(value, str) and value in names


def is_kernel_object(kernel: object) -> bool:
    """Return True for an object with parameters of its own; False for a name and a function."""
    return isinstance(kernel, Kernel) and not callable(kernel)


def gamma_beside(kernel: KernelLike, gamma: GammaLike) -> GammaLike:
    """Return ``gamma``; None in place of a default "scale" beside a kernel object."""
    return None if is_kernel_object(kernel) and is_named(gamma, "scale") else gamma


def check_gamma(gamma: GammaLike, kernel: KernelLike) -> None:
    """Raise an error unless ``gamma`` is a number, None, or a name that the kernel supports."""
    if isinstance(gamma, str):
        Choice(("scale", "median")).check("gamma", gamma)
        if gamma == "median" and kernel not in _RADIAL_NAMES:
            raise invalid_parameter(
                "gamma",
                gamma,
                f"needs a kernel of a distance, not kernel={kernel!r}",
                "pass a number or 'scale'",
            )
    elif gamma is not None:
        Number("must not be negative", "pass None, 'scale' or 'median'", low=0).check(
            "gamma", gamma
        )


def make_kernel(
    kernel: object,
    *,
    gamma: float,
    degree: float,
    coef0: float,
    params: Mapping[str, Any] | None = None,
) -> Kernel:
    """Return the kernel object for a name, a callable or a kernel object, which is unchanged.

    Parameters that a named kernel does not have are ignored; ``params`` is passed to callables
    only, as in scikit-learn.
    """
    names = ", ".join([*KERNEL_NAMES, "precomputed"])
    if isinstance(kernel, str):
        if kernel not in _BUILDERS:
            raise invalid_parameter(
                "kernel", kernel, "is unknown", f"choose one of {names}, or pass a callable"
            )
        return _BUILDERS[kernel](gamma, degree, coef0)
    if isinstance(kernel, Vectorized):
        return replace(kernel, params={**kernel.params, **(params or {})})
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Pairwise(kernel, params or {})
    raise invalid_parameter(
        "kernel", kernel, "must be a name, a callable or a kernel object", f"choose one of {names}"
    )


def centered_kernel(kernel: Kernel, X: Rows) -> Kernel:
    """Return a linear or cosine kernel relative to the mean of rows, and any other unchanged."""
    return kernel.centered(X) if isinstance(kernel, Linear | Cosine) else kernel


def resolve_gamma(gamma: GammaLike, X: Rows, kernel: KernelLike, seed: int) -> float:
    """Return γ: None is 1/N, "scale" 1/(N·variance), "median" from the median distance.

    That of a kernel object is its own; 1/N if it has none.
    """
    own = getattr(kernel, "gamma", None)
    if is_kernel_object(kernel) and isinstance(own, Real):
        return float(own)
    if gamma is None:
        return 1.0 / X.shape[1]
    if not isinstance(gamma, str):
        return float(gamma)
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if gamma == "scale":
        variance = _variance(X)
        value = 1 / (X.shape[1] * variance) if variance > 0 else np.inf
    else:
        value = _gamma_median(X, kernel, seed)
    if not np.isfinite(value):
        reason = "all rows are equal" if gamma == "scale" else "the median distance of rows is 0"
        raise invalid_parameter(
            "gamma", gamma, f"is undefined: {reason}", "pass a number, or more rows"
        )
    return value


def _variance(X: Rows) -> float:
    """Return the variance of all entries in double precision, by tiles as X may be on disk."""
    # Differences from the first entry are zero if all entries are equal.
    first, parts = float(X[0:1][0, 0]), []
    for strip in tile_slices(X.shape[0]):
        rows = X[strip]
        values = np.subtract(rows.data if sparse.issparse(rows) else rows, first, dtype=np.float64)
        release_pages(X)
        mean = values.mean() if values.size else 0.0
        values -= mean
        parts.append((values.size, mean, np.square(values, out=values).sum()))
        # Entries that CSR rows do not store.
        parts.append((np.prod(rows.shape) - values.size, -first, 0.0))
    counts, means, squares = np.array(parts).T
    squares += counts * np.square(means - np.average(means, weights=counts))
    return float(squares.sum() / counts.sum())


def _gamma_median(X: Rows, kernel: KernelLike, seed: int) -> float:
    """Return γ of a Gaussian with σ = median distance, or of a Laplacian with the 1-norm's."""
    n_samples = X.shape[0]
    if n_samples < 2:
        return np.inf
    chosen = np.arange(n_samples)
    if n_samples > _MEDIAN_ROWS:
        chosen = np.random.default_rng([seed, 2]).choice(n_samples, _MEDIAN_ROWS, replace=False)
    rows = X[np.sort(chosen)].astype(np.float64)
    is_laplacian = kernel == "laplacian"
    if not sparse.issparse(rows):
        # From differences, as those of squared norms cancel.
        distances = pdist(rows, "cityblock" if is_laplacian else "euclidean")
    elif is_laplacian:
        distances = squareform(one_norm_distances(rows, rows), checks=False)
    else:
        # Squared norms cancel in columns with a common offset, which have few zeros.
        is_full = np.bincount(rows.indices, minlength=rows.shape[1]) > rows.shape[0] / 2
        others = euclidean_distances(rows.multiply(~is_full).tocsr())
        distances = np.hypot(pdist(rows[:, is_full].toarray()), squareform(others, checks=False))
    median = float(np.median(distances))
    if median == 0:
        return np.inf
    return 1 / median if is_laplacian else 1 / (2 * median * median)


def is_lazy(X: RowsLike) -> bool:
    """Return True for rows on disk: a Zarr array, a dataset of h5py or a Parquet file."""
    if isinstance(X, LazyRows) or type(X).__module__.startswith("h5py."):
        return True
    return not isinstance(X, np.ndarray) and all(hasattr(X, name) for name in ("chunks", "oindex"))


def validate_rows(
    model: BaseEstimator,
    X: Rows,
    *,
    reset: bool = False,
    accept_sparse: str | bool = False,
    copy: bool = False,
    min_samples: int = 1,
) -> Rows:
    """Return rows as float32 or float64; those on disk are checked by tiles and not loaded.

    With ``reset``, number and names of the features are set in the model, otherwise compared.
    """
    if not (is_lazy(X) or (reset and isinstance(X, np.memmap))):
        return validate_data(
            model,
            X,
            reset=reset,
            accept_sparse=accept_sparse,
            dtype=FLOAT_DTYPES,
            copy=copy,
            ensure_min_samples=min_samples,
        )
    if len(X.shape) != 2 or not X.shape[1] or np.dtype(X.dtype) not in FLOAT_DTYPES:
        raise InvalidInput(
            f"X is a {type(X).__name__} of shape {X.shape} and type {X.dtype}: only "
            "two-dimensional float32 and float64 with features are read in place; convert it, or "
            "pass X[:] to load it."
        )
    if X.shape[0] < min_samples:
        raise InvalidInput(
            f"X has {X.shape[0]} sample(s): at least {min_samples} must be given; pass more rows."
        )
    rows = X if isinstance(X, LazyRows | np.memmap) else LazyRows(X)
    check_finite(rows)
    # Number and names of the features.
    validate_data(model, rows, reset=reset, skip_check_array=True)
    return rows


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


def check_overflow(X: Rows, *, first: bool = True) -> None:
    """Reject rows whose squared inner products, summed over all rows, overflow.

    Also reject all rows of a fit, or the first batch of a stream, if their squares underflow.
    """
    limits, largest, row = np.finfo(X.dtype), 0.0, 0
    for strip in tile_slices(X.shape[0]):
        part = X[strip]
        values = part.data if sparse.issparse(part) else part
        # Without a temporary array of magnitudes.
        magnitude = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
        if magnitude > largest:
            largest, row = magnitude, strip.start
        release_pages(X)
    # Compared by division, as the product itself may overflow.
    if largest > 0 and largest > float(np.sqrt(limits.max)) / (X.shape[0] * X.shape[1] * largest):
        part = X[row : row + TILE]
        magnitudes = abs(part).max(axis=1)
        row += int((magnitudes.toarray() if sparse.issparse(part) else magnitudes).argmax())
        raise InvalidInput(
            f"X has values as large as {largest:.3g}, in row {row} (counted from 0): sums of their "
            f"products overflow {X.dtype}; scale X, for example with "
            "sklearn.preprocessing.StandardScaler."
        )
    # The smallest magnitude whose square has full precision.
    if first and 0 < largest < float(np.sqrt(limits.tiny / limits.eps)):
        raise InvalidInput(
            f"X has no value larger than {largest:.3g}: squares of such values underflow in "
            f"{X.dtype}; scale X, for example with sklearn.preprocessing.StandardScaler."
        )


def finite_values(compute: Callable[[], Floats]) -> Floats:
    """Compute values of rows; raise an error if kernel values of finite rows are not finite."""
    remedy = "pass fewer rows at a time, or compress the model"
    with np.errstate(over="ignore", invalid="ignore"), explain_memory_errors(remedy):
        values = compute()
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
        raise InvalidInput(
            f"X: kernel values of {len(bad)} rows, the first of them row {bad[0]}, are not finite; "
            "scale X like the rows of the fit, or choose another kernel."
        )
    return values


def check_finite(X: Rows, seen: int = 0) -> None:
    """Reject NaN and infinity; report rows by their index in X and, after others, in the stream."""
    bad: list[int] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for strip in tile_slices(X.shape[0]):
            part = X[strip]
            # Cheap test first: unless it overflows, a sum is finite if all of its terms are.
            if not np.isfinite(part.sum(dtype=np.float64)):
                bad.extend(strip.start + np.flatnonzero(~np.isfinite(part).all(axis=1)))
            release_pages(X)
    if not bad:
        return
    listed = bad[:_MAX_LISTED_ROWS]
    more = f" and {len(bad) - len(listed)} more" if len(bad) > len(listed) else ""
    rows = ", ".join(map(str, listed)) + more
    if seen:
        in_stream = ", ".join(str(seen + row) for row in listed)
        rows += f" (rows {in_stream}{more} of the stream)"
    raise InvalidInput(
        f"X contains NaN or infinity in rows {rows}, counted from 0: every value must be a finite "
        "number; leave these rows out or impute them. The model is unchanged."
    )


def check_values(X: Rows, seen: int) -> None:
    """Reject rows of a stream, after ``seen`` others, that are not finite or too large."""
    check_finite(X, seen)
    check_overflow(X, first=not seen)


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> Floats:
    """Return the weights of rows in double precision; ones by default."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise InvalidInput(
            f"sample_weight of shape {weights.shape} for {n_rows} rows: it must hold a finite, "
            "nonnegative number for every row."
        )
    return weights


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for tiles; None uses as many as BLAS, and −1 all cores."""
    if n_jobs is None:
        pools = (pool for pool in THREAD_POOLS.info() if pool["user_api"] == "blas")
        return max((pool["num_threads"] for pool in pools), default=1)
    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


@contextmanager
def single_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread, as the last bits depend on the number of threads."""
    # Limits of OpenMP are those of the calling thread.
    with single_threaded_blas(), THREAD_POOLS.select(user_api="openmp").limit(limits=1):
        yield
