"""K scaled by its degrees, as spectral clustering wants it, in a form that centring completes."""

from __future__ import annotations

import numpy as np

from ikpca.errors import InvalidInput
from ikpca.gram.products import multiply
from ikpca.gram.source import GramSource, Indices
from ikpca.gram.workers import SERIAL, Workers
from ikpca.gram.wrapping import WrappedSource
from ikpca.kernels import Floats

__all__ = ["NormalisedGram"]


class NormalisedGram(WrappedSource):
    """P L P with L = D^{-1/2} K D^{-1/2} (Ng, Jordan and Weiss 2002), D the row sums of K.

    The first eigenvector of L is known: u ∝ D^{1/2} 1, eigenvalue 1. The reflection P takes u to
    the constant vector, which centring removes, so that a solver of centred matrices finds exactly
    the eigenvectors of L after the first; :meth:`reflect` turns them back. P = I − 2wwᵀ changes a
    tile by rank two: nothing larger than a tile is ever made.

    Parameters
    ----------
    source : GramSource
        K, symmetric.
    workers : Workers
        Share the tiles of the two passes that the degrees and Lw take.
    """

    def __init__(self, source: GramSource, workers: Workers = SERIAL) -> None:
        if not source.symmetric:
            raise InvalidInput(
                "the kernel matrix is not symmetric: its degrees would depend on the side they are "
                "summed from; pass (K + K.T)/2."
            )
        super().__init__(source)
        n_samples = source.n_samples
        degrees = _degrees(source, workers)
        scale = 1 / np.sqrt(degrees)
        #: u, the first eigenvector of L, of unit length.
        self.first = np.sqrt(degrees / degrees.sum())
        self._w = _direction(self.first - 1 / np.sqrt(n_samples))
        Lw = scale * multiply(source, (scale * self._w)[:, None], workers)[:, 0]
        self._scale = scale.astype(self.dtype)
        # PLP = L − wzᵀ − zwᵀ.
        z = 2 * Lw - 2 * (self._w @ Lw) * self._w
        self._left = np.column_stack([self._w, z]).astype(self.dtype)

    def reflect(self, V: Floats) -> Floats:
        """PV: from eigenvectors of this matrix to those of L, and back."""
        return (V - 2 * np.outer(self._w, self._w @ V)).astype(V.dtype)

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Scale K[rows, columns] and reflect it on both sides."""
        held = self._source.held(rows, columns) if isinstance(rows, slice) else None
        if held is None:
            self._source.fill(rows, columns, out)
            held = out
        np.multiply(held, self._scale[rows, None], out=out)
        out *= self._scale[columns]
        out -= self._left[rows] @ self._left[columns, ::-1].T

    def held(self, rows: slice, columns: slice) -> Floats | None:
        """Nothing is stored in this form."""
        return None

    def diagonal(self) -> Floats:
        """k(x, x) over the degree of x, reflected."""
        return self._source.diagonal() * self._scale**2 - 2 * np.prod(self._left, axis=1)


def _degrees(source: GramSource, workers: Workers) -> Floats:
    degrees = multiply(source, np.ones((source.n_samples, 1)), workers)[:, 0]
    if not degrees.min() > 0:
        raise InvalidInput(
            f"a row of the kernel matrix sums to {degrees.min():.3g}: degrees must be positive; "
            "choose a kernel without negative values, such as 'rbf', or normalise=None."
        )
    return degrees


def _direction(difference: Floats) -> Floats:
    """Of unit length; zero, and P the identity, where all degrees are equal."""
    length = float(np.linalg.norm(difference))
    return difference / length if length > 0 else difference
