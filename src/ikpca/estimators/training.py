"""Training rows and the kernel that fits them, checked before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from ikpca.errors import InvalidInput, refuse
from ikpca.kernels import Kernel, choose_kernel

__all__ = ["chosen_kernel", "is_precomputed", "training_rows"]


def is_precomputed(model: Any) -> bool:
    """Whether rows come as kernel values."""
    return isinstance(model.kernel, str) and model.kernel == "precomputed"


def training_rows(model: Any, X: Any) -> Any:
    """X as float32 or float64, dense or CSR, at least two rows, square if precomputed."""
    if model.fit_inverse_transform and is_precomputed(model):
        raise ValueError(
            "Cannot fit_inverse_transform with a precomputed kernel: the rows are not known; "
            "pass rows and a kernel."
        )
    X = validate_data(
        model,
        X,
        # The inverse is learned in input space, where sparse rows would become dense.
        accept_sparse=False if model.fit_inverse_transform else "csr",
        dtype=[np.float64, np.float32],
        copy=model.copy_X,
        ensure_min_samples=2,
    )
    if is_precomputed(model) and X.shape[0] != X.shape[1]:
        raise InvalidInput(
            f"X has shape {X.shape}: a precomputed kernel matrix must be square; pass rows with "
            "another kernel, or the kernel values of all pairs of training rows."
        )
    return X


def chosen_kernel(model: Any, X: Any) -> Kernel | None:
    """The kernel object, or None for a precomputed matrix."""
    if is_precomputed(model):
        return None
    kernel = choose_kernel(
        model.kernel,
        gamma=model.gamma_,
        degree=model.degree,
        coef0=model.coef0,
        params=model.kernel_params,
    )
    if sparse.issparse(X) and not kernel.takes_sparse:
        raise refuse("kernel", model.kernel, "a kernel of one pair cannot take sparse rows",
                     "pass X.toarray(), or a vectorised kernel")  # fmt: skip
    return kernel
