"""Ritz pairs of K' from a basis, in feature space or in the space of coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.kernels import Floats
from ikpca.spectra import rayleigh_ritz

__all__ = ["Ritz"]

#: Relative residual from which on a component lacks less than 1e-8 of its variance.
_SETTLED = 1e-4


@dataclass(frozen=True)
class Ritz:
    """What a basis Q knows of K', from N = QᵀK'Q and S = (K'Q)ᵀK'Q.

    Parameters
    ----------
    values, vectors : ndarray
        Eigenpairs of N, descending: Ritz pairs in the space of coefficients.
    N, S : ndarray of shape (columns, columns)
    eps : float
        Of the basis.
    """

    values: Floats
    vectors: Floats
    N: Floats
    S: Floats
    eps: float

    @classmethod
    def of(cls, N: Floats, S: Floats, eps: float) -> Ritz:
        """Decompose N."""
        values, vectors = np.linalg.eigh(N)
        return cls(values[::-1], vectors[:, ::-1], N, S, eps)

    def components(self, n_components: int) -> tuple[Floats, Floats]:
        """Ritz values, and T with A = TQᵀ.

        Ritz pairs in feature space hold the most variance after a given pass. They are taken with
        coefficients of near-null directions, though, which rounding blows up; so once the leading
        pairs are settled, and for an indefinite kernel, those of the space of coefficients serve.
        """
        drop = max(1e-12, 10 * self.eps)
        indefinite = self.values[-1] < -100 * self.eps * max(self.values[0], 0.0)
        if not indefinite and not self._settled(n_components):
            return rayleigh_ritz(self.N, self.S, drop=drop)
        values = self.values
        if not indefinite:
            values = np.where(values > drop * values[0], values, 0.0)
        roots = np.sqrt(np.clip(values, 0, None))[:, None]
        T = np.divide(self.vectors.T, roots, out=np.zeros_like(self.vectors), where=roots > 0)
        return values, T

    def _settled(self, n_components: int) -> bool:
        """Whether no leading pair has a residual that variance would still notice."""
        leading = self.vectors[:, :n_components]
        squares = np.einsum("ir,ij,jr->r", leading, self.S, leading, optimize=True)
        squares -= np.square(self.values[:n_components])
        return float(squares.max(initial=0.0)) <= (_SETTLED * float(self.values[0])) ** 2
