"""Span of the images of basis rows, with orthonormal coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import blas, lapack

from ikpca.errors import InvalidInput
from ikpca.gram import cross_gram
from ikpca.kernels import (
    Cosine,
    Floats,
    Gaussian,
    Indices,
    Kernel,
    Linear,
    Pairwise,
    Rows,
    Sigmoid,
    Vectorized,
    squared_norms,
)
from ikpca.subspace import Subspace

#: Squared lengths below this fraction of the largest k(x, x) are rounding errors, in exact streams
#: and in others, whose bases are better conditioned: ‖z‖² has errors of about 1e-14 divided by it.
_PIVOT_TOL = {np.dtype(np.float32): (1e-6, 1e-6), np.dtype(np.float64): (1e-12, 1e-9)}
#: Negative squared length, as such a fraction, that is not rounding.
_NEGATIVE_TOL = 1e-5


class Stored:
    """Base class of dataclasses with cached properties, which are not pickled."""

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Span(Stored):
    """Space spanned by the images of basis rows, with orthonormal coordinates.

    Parameters
    ----------
    kernel : Kernel
    rows : rows of shape (m, N)
    factor : ndarray of shape (m, m)
        L, lower triangular, in double precision.
    """

    kernel: Kernel
    rows: Rows
    factor: Floats

    @classmethod
    def of(cls, kernel: Kernel, rows: Rows) -> tuple[Span, Indices]:
        """Return the span of rows, and the indices of those that are independent."""
        K = shifted_gram(kernel, rows, rows)
        scale = float(np.diagonal(K).max(initial=0.0))
        chosen, factor = independent_rows(K, pivot_tol(rows, exact=False) * scale)
        return cls(kernel, rows[chosen], np.asfortranarray(factor)), chosen

    def __len__(self) -> int:
        return len(self.factor)

    def features(self, X: Rows, diagonal: Floats) -> tuple[Floats, Floats, Indices]:
        """Return z as columns, ‖Φ(x)‖² − ‖z‖², and the basis row of the nearest image."""
        values, nearest = self.values(X)
        if not np.isfinite(values).all():
            raise _infinite(values)
        Z = self.solve(values)
        outside = diagonal - np.einsum("ij,ij->j", Z, Z)
        scale = float(diagonal.max(initial=0.0))
        if not outside.min(initial=0.0) >= -_NEGATIVE_TOL * scale:
            exact = self.wide_features(X)
            rest = diagonal - np.einsum("ij,ij->j", exact, exact)
            # Directions of small pivots have large relative errors.
            rounding = (
                100
                * np.finfo(np.float64).eps
                * scale
                / np.diagonal(self.factor).min(initial=1.0) ** 2
            )
            if rest.min() < -(_NEGATIVE_TOL + rounding) * scale:
                raise InvalidInput(
                    f"The kernel is not positive semi-definite on these rows (a squared length is "
                    f"{rest.min():.2g}): a stream cannot ignore its negative part; choose another "
                    "kernel."
                )
        return Z, np.maximum(outside, 0.0), nearest

    def solve(self, values: Floats) -> Floats:
        """Return z as columns from kernel values with the basis, which are overwritten."""
        if not values.size:
            # BLAS must not be called with empty matrices.
            return np.zeros((len(self), len(values)), values.dtype)
        is_single = values.dtype == np.float32
        if len(values) == 1:
            trsv = blas.strsv if is_single else blas.dtrsv
            return trsv(self._narrow_factor, values[0], lower=1, overwrite_x=1)[:, None]
        trsm = blas.strsm if is_single else blas.dtrsm
        return trsm(1.0, self._narrow_factor, values.T, lower=1, overwrite_b=1)

    def diagonal(self, X: Rows) -> Floats:
        """Return k(x, x) in double precision."""
        if isinstance(self.kernel, Gaussian):
            return np.ones(X.shape[0])
        diagonal = self.kernel.diagonal(X) + np.float64(shift_of(self.kernel))
        if not np.isfinite(diagonal).all():
            raise InvalidInput(
                f"k(x, x) of {np.count_nonzero(~np.isfinite(diagonal))} rows of X is not finite: "
                "an update needs finite values; scale the rows, or remove these."
            )
        return diagonal

    def check_rows(self, X: Rows) -> None:
        """Raise an error for rows with infinite kernel values."""
        if isinstance(self.kernel, Gaussian):
            return
        self.diagonal(X)
        # Cauchy–Schwarz: other values of positive kernels are no larger.
        if isinstance(self.kernel, Pairwise | Vectorized):
            values = cross_gram(self.kernel, X, stack((self.rows, X)))
            if not np.isfinite(values).all():
                raise _infinite(values)

    def cross(self, X: Rows) -> Floats:
        """Return kernel values of the basis and rows in double precision."""
        return shifted_gram(self.kernel, self.rows, X)

    def wide_features(self, X: Rows) -> Floats:
        """Return z in double precision."""
        if not len(self):
            return np.zeros((0, X.shape[0]))
        return blas.dtrsm(1.0, self.factor, self.cross(X), lower=1)

    @cached_property
    def _narrow_factor(self) -> Floats:
        return self.factor.astype(self.rows.dtype, order="F")

    @cached_property
    def _exponents(self) -> tuple[np.floating, Floats, Floats, Floats] | None:
        """γ, o, 2γ(b − o)ᵀ and γ‖b − o‖² of dense basis rows b and a Gaussian kernel."""
        if not (isinstance(self.rows, np.ndarray) and isinstance(self.kernel, Gaussian)):
            return None
        gamma = self.rows.dtype.type(self.kernel.gamma)
        origin = self.rows.mean(axis=0, dtype=np.float64).astype(self.rows.dtype)
        shifted = self.rows - origin
        scaled = np.ascontiguousarray(2 * gamma * shifted.T)
        return gamma, origin, scaled, gamma * squared_norms(shifted)

    @cached_property
    def _squared_lengths(self) -> Floats:
        return self.kernel.diagonal(self.rows)

    def values(self, X: Rows) -> tuple[Floats, Indices]:
        """Return kernel values with the basis, and the index of the nearest image."""
        shape = X.shape[0], len(self)
        if not len(self):
            return np.empty(shape, X.dtype), np.zeros(shape[0], np.intp)
        if self._exponents is None:
            values: Floats = np.empty(shape, X.dtype)
            self.kernel.fill(X, self.rows, values)
            nearest = (2 * values - self._squared_lengths).argmax(axis=1)
            return values + X.dtype.type(shift_of(self.kernel)), nearest
        gamma, origin, scaled, lengths = self._exponents
        shifted = X - origin
        values = shifted @ scaled
        values -= lengths
        values -= (gamma * squared_norms(shifted))[:, None]
        # Exponents differ also where kernel values underflow.
        nearest = values.argmax(axis=1)
        return np.exp(values, out=values), nearest


def stack(parts: Sequence[Rows]) -> Rows:
    """Return dense or CSR rows below each other."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, "csr")
    return np.ascontiguousarray(parts[0]) if len(parts) == 1 else np.concatenate(parts)


def _infinite(values: Floats) -> InvalidInput:
    bad = np.count_nonzero(~np.isfinite(values).all(axis=1))
    return InvalidInput(
        f"kernel values of {bad} rows of X are not finite: an update needs finite values; scale "
        "the rows, or remove these."
    )


def pivot_tol(rows: Rows, *, exact: bool) -> float:
    """Return the relative squared length below which an image depends on the basis."""
    return _PIVOT_TOL[rows.dtype][0 if exact else 1]


def narrowed(
    kernel: Kernel, basis: Rows, coefficients: Floats, products: Floats, gram: Floats
) -> Subspace:
    """Return a subspace in the precision of its rows."""
    with np.errstate(over="ignore"):
        arrays = [array.astype(basis.dtype, copy=False) for array in (coefficients, products, gram)]
    if not all(np.isfinite(array).all() for array in arrays):
        raise InvalidInput(
            f"X: the kernel values vary so little that the components overflow {basis.dtype}; pass "
            "rows in double precision, or scale X."
        )
    return Subspace(kernel, basis, *arrays)


def origin_of(kernel: Kernel) -> Floats:
    """Return the origin of a linear or cosine kernel; empty for others and without one."""
    origin = kernel.origin if isinstance(kernel, Linear | Cosine) else None
    return np.zeros(0) if origin is None else origin


def shift_of(kernel: Kernel) -> float:
    """Return a constant to add to a sigmoid kernel with a negative value at zero; 0 for others.

    Centering removes it. Without it, all images have negative squared lengths.
    """
    return max(0.0, -2 * float(np.tanh(kernel.coef0))) if isinstance(kernel, Sigmoid) else 0.0


def shifted_gram(kernel: Kernel, X: Rows, Y: Rows) -> Floats:
    """Return kernel values with their shift in double precision."""
    return cross_gram(kernel, X.astype(np.float64), Y.astype(np.float64)) + shift_of(kernel)


def independent_rows(K: Floats, tol: float) -> tuple[Indices, Floats]:
    """Return rows with pivots above ``tol``, by a Cholesky decomposition, and their factor."""
    factor, pivots, rank, _ = lapack.dpstrf(K, tol=tol, lower=1)
    # dpstrf accepts its first pivot whatever its size.
    rank = rank if float(np.diagonal(K).max(initial=0.0)) > tol else 0
    return pivots[:rank].astype(np.intp) - 1, np.tril(factor)[:rank, :rank]
