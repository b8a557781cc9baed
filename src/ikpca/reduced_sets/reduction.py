"""The port: what a reduction must offer, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from ikpca.kernels import Floats, Kernel
from ikpca.preimages import Expansion
from ikpca.reduced_sets.least_squares import least_squares

__all__ = ["ReducedSet", "Reduction", "nearest_on", "with_coefficients"]


@dataclass(frozen=True, eq=False)
class ReducedSet:
    """Vectors u'_i near u_i, on fewer rows.

    Parameters
    ----------
    expansion : Expansion
        The vectors u'_i, with their inner products known. Rows are of the type that the original
        ones have; all else is in double precision.
    squared_errors : ndarray of shape (q,)
        ‖u_i − u'_i‖², as exact as ‖u_i‖² is known: in the precision of the original rows where they
        are too many to be compared with each other, in double precision otherwise.
    squared_lengths : ndarray of shape (q,)
        ‖u_i‖².
    across : ndarray of shape (q, s)
        ⟨u_i, Φ(z_k)⟩: the original vectors and the new rows.
    values : ndarray of shape (s, s)
        k(z_k, z_l).

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.preimages import Expansion
    >>> from ikpca.reduced_sets import ChosenSamples
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> reduced = ChosenSamples().reduce(Expansion(Linear(), X, np.ones((1, 3))), 2)
    >>> reduced.expansion.basis.shape
    (2, 2)
    """

    expansion: Expansion
    squared_errors: Floats
    squared_lengths: Floats
    across: Floats
    values: Floats

    @property
    def relative_errors(self) -> Floats:
        """‖u_i − u'_i‖ / ‖u_i‖, and zero for a vector that is zero."""
        shares = np.zeros_like(self.squared_errors)
        there = self.squared_lengths > 0
        np.divide(self.squared_errors, self.squared_lengths, out=shares, where=there)
        return np.sqrt(shares)


@runtime_checkable
class Reduction(Protocol):
    """Puts vectors of feature space on fewer rows.

    Examples
    --------
    >>> from ikpca.kernels import Cosine
    >>> from ikpca.reduced_sets import ChosenSamples, Reduction
    >>> isinstance(ChosenSamples(), Reduction)
    True
    >>> ChosenSamples().serves(Cosine())
    True
    """

    def serves(self, kernel: Kernel) -> bool:
        """Whether the kernel has what the reduction needs."""

    def reduce(
        self,
        expansion: Expansion,
        size: int,
        weights: Floats | None = None,
        *,
        values: Floats | None = None,
    ) -> ReducedSet:
        """Find vectors near those of the expansion.

        Parameters
        ----------
        expansion : Expansion
            The vectors.
        size : int
            Rows that the new expansion has at most; not fewer than the vectors.
        weights : ndarray of shape (q,), optional
            How much an error of each vector matters, such as the singular values; alike by default.
        values : ndarray of shape (m, m), optional
            k(x_i, x_j) of the basis in double precision, where they are known.
        """


def nearest_on(
    vectors: Expansion,
    rows: Floats,
    values: Floats,
    across: Floats,
    earlier: Floats | None = None,
) -> ReducedSet:
    """All vectors on the given rows, by least squares.

    ``earlier`` coefficients are kept for the vectors that they are nearer to: rounding in a gram
    that is nearly singular may not turn a second pass into a loss.
    """
    found = with_coefficients(vectors, rows, values, across, least_squares(values, across))
    if earlier is None:
        return found
    first = with_coefficients(vectors, rows, values, across, earlier)
    nearer = first.squared_errors < found.squared_errors
    if not nearer.any():
        return found
    mixed = np.where(nearer[:, None], earlier, found.expansion.coefficients)
    return with_coefficients(vectors, rows, values, across, mixed)


def with_coefficients(
    vectors: Expansion, rows: Floats, values: Floats, across: Floats, coefficients: Floats
) -> ReducedSet:
    """Vectors with given coefficients on given rows, and all that is known about them."""
    lengths = np.maximum(np.diagonal(vectors.gram).astype(np.float64), 0)
    products = coefficients @ values
    gram = products @ coefficients.T
    reduced = Expansion(vectors.kernel, rows, coefficients, products, (gram + gram.T) / 2)
    # Rounding may not make an error negative, nor may a kernel that is no inner product.
    mixed = np.einsum("ik,ik->i", coefficients, across)
    errors = np.maximum(lengths - 2 * mixed + np.diagonal(gram), 0)
    return ReducedSet(reduced, errors, lengths, across, values)
