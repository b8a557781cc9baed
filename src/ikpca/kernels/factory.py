"""Kernel objects from scikit-learn's names and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ikpca.errors import invalid_parameter
from ikpca.kernels.base import Kernel, Rows
from ikpca.kernels.callable import Pairwise, Vectorized
from ikpca.kernels.dot_product import Cosine, Linear, Polynomial, Sigmoid
from ikpca.kernels.radial import Gaussian, Laplacian

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
RADIAL_NAMES = ("rbf", "laplacian")


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
