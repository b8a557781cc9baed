"""Kernels from Python functions of two rows or of two blocks of rows."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ikpca.errors import InvalidInput
from ikpca.kernels.base import Floats, Rows


@dataclass(frozen=True)
class _FunctionKernel:
    """Function, and its keyword arguments."""

    function: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)


class Pairwise(_FunctionKernel):
    """Kernel from a function of two vectors, called for every pair of rows."""

    supports_sparse = False

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile, one pair at a time."""
        for i, x in enumerate(X):
            for j, y in enumerate(Y):
                out[i, j] = self.function(x, y, **self.params)

    def diagonal(self, X: Rows) -> Floats:
        """Return k(x, x)."""
        return np.array([self.function(x, x, **self.params) for x in X], dtype=X.dtype)

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Return zero: values are computed one at a time."""
        return 0


class Vectorized(_FunctionKernel):
    """Kernel from a function of two blocks of rows; :func:`vectorized` creates one."""

    supports_sparse = True

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile."""
        values = np.asarray(self.function(X, Y, **self.params))
        if values.shape != out.shape:
            raise InvalidInput(
                f"kernel {self.function!r} returned shape {values.shape} for {X.shape[0]} and "
                f"{Y.shape[0]} rows: a vectorized kernel must return shape {out.shape}; "
                "remove the decorator if the function takes one pair of rows."
            )
        out[...] = values

    def diagonal(self, X: Rows) -> Floats:
        """Return k(x, x), one row at a time."""
        out = np.empty((1, 1), dtype=X.dtype)
        values = np.empty(X.shape[0], dtype=X.dtype)
        for i in range(X.shape[0]):
            self.fill(X[i : i + 1], X[i : i + 1], out)
            values[i] = out[0, 0]
        return values

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Return the size of the matrix that the function returns."""
        return n_x * n_y * 8

    def __reduce__(self) -> tuple[Callable[..., Vectorized], tuple[object, ...]]:
        """Pickle by name: the decorator replaced the function in its module."""
        function = self.function
        if not _is_decorated(function):
            return type(self), (function, self.params)
        return _import_kernel, (function.__module__, function.__qualname__, self.params)

    def __call__(self, x: ArrayLike, y: ArrayLike, **params: object) -> float:
        """Return k(x, y) of one pair, as scikit-learn expects of a callable kernel."""
        merged = {**self.params, **params}
        return float(np.asarray(self.function(np.atleast_2d(x), np.atleast_2d(y), **merged))[0, 0])


def vectorized(function: Callable[..., ArrayLike]) -> Vectorized:
    """Turn ``function(X, Y) -> matrix`` into a kernel of whole blocks of rows.

    Parameters
    ----------
    function : callable
        Takes rows of shape (n, N) and (m, N); returns kernel values of shape (n, m).

    Returns
    -------
    Vectorized
        Value for ``kernel=``; it can also be called with one pair of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA, vectorized
    >>> @vectorized
    ... def quadratic(X, Y):
    ...     return (X @ Y.T) ** 2
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> KernelPCA(2, kernel=quadratic).fit_transform(X).shape
    (20, 2)
    """
    return Vectorized(function)


def _is_decorated(function: Callable[..., ArrayLike]) -> bool:
    """Return True if a module defines a kernel of the function under the name of the function."""
    try:
        kernel = attrgetter(function.__qualname__)(sys.modules[function.__module__])
    except (AttributeError, KeyError):
        return False
    return isinstance(kernel, Vectorized) and kernel.function is function


def _import_kernel(module: str, name: str, params: Mapping[str, Any]) -> Vectorized:
    """Import a decorated kernel by its qualified name, for unpickling."""
    return replace(attrgetter(name)(importlib.import_module(module)), params=params)
