"""A mean and components on a library of rows: what streams learn and reduced sets shrink."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Rows
from ikpca.preimages import Expansion

__all__ = ["Subspace"]


@dataclass(frozen=True, eq=False)
class Subspace:
    """Components u_i = Σ_j α_ij Φ(x_j) about a mean µ = Σ_j ν_j Φ(x_j) (Chin 2006, eq. 6).

    Unlike the mean of a training set, µ need not weigh the rows alike, and n, the number of samples
    it is the mean of, need not be the number of rows.

    Parameters
    ----------
    expansion : Expansion
        The components in order, and the mean last.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.preimages import Expansion
    >>> from ikpca.reduced_sets import Subspace
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> along = Subspace(Expansion(Linear(), X, np.array([[0.5, -0.5], [0.5, 0.5]])))
    >>> along.project(np.array([[3.0, 7.0]]))
    array([[3.]])
    """

    expansion: Expansion

    @property
    def library(self) -> Floats:
        """The rows x_j."""
        return self.expansion.basis

    @property
    def components(self) -> Floats:
        """α, r×m, uncentred."""
        return self.expansion.coefficients[:-1]

    @property
    def mean(self) -> Floats:
        """ν."""
        return self.expansion.coefficients[-1]

    @property
    def component_gram(self) -> Floats:
        """⟨u_i, u_j⟩, the identity for orthonormal components."""
        return self.expansion.gram[:-1, :-1]

    @property
    def offsets(self) -> Floats:
        """⟨u_i, µ⟩."""
        return self.expansion.gram[-1, :-1]

    def part(self, which: NDArray[np.intp]) -> Subspace:
        """Some of the components, and the mean."""
        whole = self.expansion
        kept = np.append(which, len(self.components))
        products, gram = whole.known_products, whole.known_gram
        return Subspace(
            Expansion(
                whole.kernel,
                whole.basis,
                whole.coefficients[kept],
                None if products is None else products[kept],
                None if gram is None else gram[np.ix_(kept, kept)],
            )
        )

    def project(self, X: Rows) -> Floats:
        """⟨u_i, Φ(x) − µ⟩ (eq. 5), a strip of rows at a time."""
        return np.vstack([self._projections(values) for _, values in self._strips(X)])

    def residuals(self, X: Rows) -> Floats:
        """‖Φ(x) − µ − P(Φ(x) − µ)‖² for every row, P the orthogonal projector on the components."""
        return self.split_lengths(X)[1]

    def explained_share(self, X: Rows) -> float:
        """1 − Σ‖Φ(x) − µ − P(Φ(x) − µ)‖² / Σ‖Φ(x) − µ‖²."""
        total, missing = (float(part.sum(dtype=np.float64)) for part in self.split_lengths(X))
        return 1 - missing / total if total > 0 else 0.0

    def split_lengths(self, X: Rows) -> tuple[Floats, Floats]:
        """‖Φ(x) − µ‖² for every row, and what P leaves of it."""
        totals, rests = [], []
        for rows, values in self._strips(X):
            y = self._projections(values)
            lengths = self.expansion.kernel.diagonal(rows) - 2 * (values @ self.mean)
            lengths += self.expansion.gram[-1, -1]
            totals.append(lengths)
            rests.append(lengths - np.einsum("ni,ni->n", y, self.coordinates(y)))
        return np.maximum(np.concatenate(totals), 0), np.maximum(np.concatenate(rests), 0)

    def coordinates(self, projections: Floats) -> Floats:
        """c with P(Φ − µ) = Σ_i c_i u_i: projections again, where components are orthonormal."""
        return projections @ self._inverse_gram

    def points(self, projections: Floats) -> Floats:
        """Coordinates of µ + P(Φ − µ) in the expansion, for pre-images."""
        ones = np.ones((len(projections), 1), dtype=projections.dtype)
        return np.hstack([self.coordinates(projections), ones])

    @cached_property
    def _inverse_gram(self) -> Floats:
        gram = self.component_gram
        precision = float(np.finfo(gram.dtype).eps) * 10 * len(gram)
        return np.linalg.pinv(gram, precision, hermitian=True)

    def _projections(self, values: Floats) -> Floats:
        return values @ self.components.T - self.offsets

    def _strips(self, X: Rows) -> Iterator[tuple[Rows, Floats]]:
        for strip in self.expansion.strips(X.shape[0]):
            yield X[strip], cross_gram(self.expansion.kernel, X[strip], self.library)
