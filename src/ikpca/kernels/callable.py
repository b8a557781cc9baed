"""Kernels defined by a Python function of two rows or of two blocks of rows."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ikpca.errors import InvalidInput
from ikpca.kernels.base import Floats, Rows


@dataclass(frozen=True)
class Pairwise:
    """A function of two vectors that returns a number, called for every pair.

    Parameters
    ----------
    function : callable
        Takes two rows, and ``params`` by name; returns a number.
    params : mapping of str to object, optional
        What goes to the function beside the rows.

    See Also
    --------
    vectorised : Whole blocks at a time, at a fraction of the cost.
    sklearn.metrics.pairwise.pairwise_kernels : Calls functions of two rows in the same way.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Pairwise
    >>> Pairwise(lambda x, y: float(min(x[0], y[0]))).diagonal(np.array([[2.0], [5.0]]))
    array([2., 5.])
    """

    function: Callable[..., float]
    params: Mapping[str, Any] = field(default_factory=dict)

    takes_sparse = False

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile, pair by pair."""
        for i, x in enumerate(X):
            for j, y in enumerate(Y):
                out[i, j] = self.function(x, y, **self.params)

    def diagonal(self, X: Rows) -> Floats:
        """Return k(x, x)."""
        return np.array([self.function(x, x, **self.params) for x in X], dtype=X.dtype)

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """One number at a time."""
        return 0


@dataclass(frozen=True)
class Vectorized:
    """A function of two blocks of rows that returns the matrix of kernel values.

    Parameters
    ----------
    function : callable
        Takes rows of shape (n, N) and (m, N), and ``params`` by name; returns a matrix (n, m).
    params : mapping of str to object, optional
        What goes to the function beside the rows.

    See Also
    --------
    vectorised : The decorator that makes one.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Vectorized
    >>> tile = np.empty((1, 2))
    >>> Vectorised(lambda X, Y: X @ Y.T).fill(np.ones((1, 3)), np.ones((2, 3)), tile)
    >>> tile
    array([[3., 3.]])
    """

    function: Callable[..., ArrayLike]
    params: Mapping[str, Any] = field(default_factory=dict)

    takes_sparse = True

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile."""
        values = np.asarray(self.function(X, Y, **self.params))
        if values.shape != out.shape:
            raise InvalidInput(
                f"kernel {self.function!r} returned shape {values.shape} for {X.shape[0]} and "
                f"{Y.shape[0]} rows: a vectorised kernel returns a matrix of shape {out.shape}; "
                "drop the decorator if it takes one pair at a time."
            )
        out[...] = values

    def diagonal(self, X: Rows) -> Floats:
        """Return k(x, x), a row at a time."""
        out = np.empty((1, 1), dtype=X.dtype)
        values = np.empty(X.shape[0], dtype=X.dtype)
        for i in range(X.shape[0]):
            self.fill(X[i : i + 1], X[i : i + 1], out)
            values[i] = out[0, 0]
        return values

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """The matrix that the function returns."""
        return n_x * n_y * 8

    def __reduce__(self) -> Any:
        """Pickle by name: the decorator put this object where the function was."""
        known = _decorated(self.function)
        if known is None:
            return type(self), (self.function, self.params)
        return (_find, (self.function.__module__, self.function.__qualname__, self.params))

    def __call__(self, x: ArrayLike, y: ArrayLike, **params: Any) -> float:
        """One pair, so that the kernel also works where scikit-learn expects a callable."""
        merged = {**self.params, **params}
        return float(np.asarray(self.function(np.atleast_2d(x), np.atleast_2d(y), **merged))[0, 0])


def _decorated(function: Callable[..., ArrayLike]) -> Vectorized | None:
    """The kernel that stands in a module under the name of the function, if there is one."""
    try:
        found: Any = sys.modules[function.__module__]
        for name in function.__qualname__.split("."):
            found = getattr(found, name)
    except (AttributeError, KeyError):
        return None
    same = isinstance(found, Vectorized) and found.function is function
    return found if same else None


def _find(module: str, name: str, params: Mapping[str, Any]) -> Vectorized:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return replace(found, params=params)


def vectorized(function: Callable[..., ArrayLike]) -> Vectorized:
    """Mark ``function(X, Y) -> matrix`` as a kernel of whole blocks of rows.

    Parameters
    ----------
    function : callable
        Takes rows of shape (n, N) and (m, N); returns kernel values of shape (n, m).

    Returns
    -------
    Vectorised
        For ``kernel=``; it can also be called with one pair of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA, vectorized
    >>> @vectorised
    ... def quadratic(X, Y):
    ...     return (X @ Y.T) ** 2
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> KernelPCA(2, kernel=quadratic).fit_transform(X).shape
    (20, 2)
    """
    return Vectorized(function)
