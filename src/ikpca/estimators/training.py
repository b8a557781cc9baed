"""Training rows and the kernel that fits them, checked before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import validate_data

from ikpca.errors import InvalidInput, refuse
from ikpca.gram import LazyRows, tiles
from ikpca.kernels import Kernel, choose_kernel

__all__ = [
    "chosen_kernel",
    "is_lazy",
    "is_named",
    "is_precomputed",
    "kernel_of",
    "learns_ridge",
    "needs_dense_rows",
    "training_rows",
]

_DTYPES = (np.float64, np.float32)


def is_precomputed(model: Any) -> bool:
    """Whether rows come as kernel values."""
    return is_named(model.kernel, "precomputed")


def is_named(value: Any, *names: str) -> bool:
    """Whether a parameter that may also be an object is one of the names."""
    return isinstance(value, str) and value in names


def learns_ridge(model: Any) -> bool:
    """Whether the fit ends with a kernel ridge regression back to the rows."""
    return bool(model.fit_inverse_transform or is_named(model.preimage, "ridge"))


def needs_dense_rows(model: Any) -> bool:
    """Whether a way back to input space was asked for, where rows are dense and in memory."""
    return learns_ridge(model) or not is_named(model.preimage, "auto")


def training_rows(model: Any, X: Any) -> Any:
    """X as float32 or float64, dense or CSR, at least two rows, square if precomputed."""
    if learns_ridge(model) and is_precomputed(model):
        raise InvalidInput(
            "Cannot fit_inverse_transform with a precomputed kernel: the rows are not known; "
            "pass rows and a kernel."
        )
    if is_lazy(X):
        return _lazy_rows(model, X)
    if isinstance(X, np.memmap) and X.dtype not in _DTYPES:
        raise InvalidInput(
            f"X is a memory map of {X.dtype}: only float32 and float64 are read in place; convert "
            "the file, or pass X[:] to load it."
        )
    X = validate_data(
        model,
        X,
        accept_sparse=False if needs_dense_rows(model) else "csr",
        dtype=list(_DTYPES),
        # A memory map is never copied whole.
        copy=model.copy_X and not isinstance(X, np.memmap),
        ensure_min_samples=2,
    )
    if is_precomputed(model) and X.shape[0] != X.shape[1]:
        raise InvalidInput(
            f"X has shape {X.shape}: a precomputed kernel matrix must be square; pass rows with "
            "another kernel, or the kernel values of all pairs of training rows."
        )
    return X


def is_lazy(X: Any) -> bool:
    """Whether X is a chunked array that lives elsewhere, such as a Zarr array."""
    return not isinstance(X, np.ndarray) and all(hasattr(X, name) for name in ("chunks", "oindex"))


def _lazy_rows(model: Any, X: Any) -> LazyRows:
    """The checks of ``validate_data``, a tile of rows at a time."""
    if is_precomputed(model) or needs_dense_rows(model) or model.gamma == "scale":
        raise InvalidInput(
            f"X is a {type(X).__name__}, which is read in tiles: a precomputed kernel, preimage, "
            "fit_inverse_transform and gamma='scale' need rows in memory; pass X[:]."
        )
    if len(X.shape) != 2 or np.dtype(X.dtype) not in _DTYPES:
        raise InvalidInput(
            f"X is a {type(X).__name__} of shape {X.shape} and type {X.dtype}: only two-dimensional"
            " float32 and float64 are read in place; convert it."
        )
    if X.shape[0] < 2:
        raise InvalidInput(
            f"X has {X.shape[0]} sample(s): at least two are needed; pass more rows."
        )
    rows = LazyRows(X)
    for part in tiles(rows.shape[0]):
        assert_all_finite(rows[part], input_name="X")
    model.n_features_in_ = rows.shape[1]
    return rows


def kernel_of(model: Any, gamma: float) -> Kernel:
    """The kernel object that the parameters describe."""
    return choose_kernel(
        model.kernel,
        gamma=gamma,
        degree=model.degree,
        coef0=model.coef0,
        params=model.kernel_params,
    )


def chosen_kernel(model: Any, X: Any) -> Kernel | None:
    """The kernel object, or None for a precomputed matrix."""
    if is_precomputed(model):
        return None
    kernel = kernel_of(model, model.gamma_)
    if sparse.issparse(X) and not kernel.takes_sparse:
        raise refuse("kernel", model.kernel, "a kernel of one pair cannot take sparse rows",
                     "pass X.toarray(), or a vectorised kernel")  # fmt: skip
    return kernel
