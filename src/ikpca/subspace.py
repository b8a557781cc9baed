"""Components and mean in feature space as expansions on a set of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ikpca.gram import Centering, cross_gram, tile_slices
from ikpca.kernels import Floats, Kernel, Rows

#: Kernel values, and as many weights, held at a time: 16 MB each in double precision.
_STRIP_ENTRIES = 2_000_000


@dataclass(frozen=True, eq=False)
class Expansion:
    """Vectors u_r = Σ_j B_rj Φ(x_j), and points P = Σ_r c_r u_r in their span.

    Components of kernel PCA and their mean are such vectors, and so are those of any model that a
    reduced set is wanted for. Points are given by their coordinates c; those of the vectors
    themselves are the rows of the identity.

    Parameters
    ----------
    kernel : Kernel
    basis : ndarray of shape (m, N)
        The rows x_j.
    coefficients : ndarray of shape (q, m)
        B, uncentred.
    known_products : ndarray of shape (q, m), optional
        ⟨u_r, Φ(x_j)⟩, where it is known; otherwise it takes all kernel values of the basis.
    known_gram : ndarray of shape (q, q), optional
        ⟨u_r, u_s⟩, likewise.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Expansion
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0]])
    >>> mean = Expansion(Linear(), X, np.array([[0.5, 0.5]]))
    >>> mean.squared_distances(np.array([[1.0]]), np.array([[1.0, 3.0]]))
    array([9.])
    """

    kernel: Kernel
    basis: Floats
    coefficients: Floats
    known_products: Floats | None = None
    known_gram: Floats | None = None

    @cached_property
    def products(self) -> Floats:
        """⟨u_r, Φ(x_j)⟩."""
        if self.known_products is not None:
            return self.known_products
        parts = [
            self.coefficients @ cross_gram(self.kernel, self.basis, self.basis[columns])
            for columns in tile_slices(len(self.basis))
        ]
        return np.hstack(parts)

    @cached_property
    def gram(self) -> Floats:
        """⟨u_r, u_s⟩."""
        if self.known_gram is not None:
            return self.known_gram
        return self.products @ self.coefficients.T

    @cached_property
    def diagonal(self) -> Floats:
        """k(x_j, x_j)."""
        return self.kernel.diagonal(self.basis)

    @cached_property
    def spread(self) -> float:
        """Root of the mean squared distance of the rows from their mean: the scale of a step."""
        spread = float(np.sqrt(self.basis.var(axis=0, dtype=np.float64).sum()))
        return spread or 1.0

    def weights(self, coordinates: Floats) -> Floats:
        """G with P_i = Σ_j G_ij Φ(x_j)."""
        return coordinates @ self.coefficients

    def squared_lengths(self, coordinates: Floats) -> Floats:
        """‖P_i‖²."""
        return np.einsum("ir,rs,is->i", coordinates, self.gram, coordinates, optimize=True)

    def strips(self, number: int) -> Iterator[slice]:
        """Points in strips, so that their weights stay within bounds."""
        return tile_slices(number, max(1, _STRIP_ENTRIES // len(self.basis)))

    def nearest_rows(self, coordinates: Floats, number: int) -> NDArray[np.intp]:
        """Indices of the basis rows whose images are nearest to each point, nearest first."""
        distances = coordinates @ (-2 * self.products)
        distances += self.diagonal
        if number == 1:
            return distances.argmin(axis=1)[:, None]
        near = np.argpartition(distances, number - 1, axis=1)[:, :number]
        order = np.argsort(np.take_along_axis(distances, near, axis=1), axis=1, kind="stable")
        return np.take_along_axis(near, order, axis=1)

    def squared_distances(self, coordinates: Floats, Z: Floats) -> Floats:
        """‖P_i − Φ(z_i)‖²."""
        parts = []
        for strip in self.strips(len(Z)):
            values = cross_gram(self.kernel, Z[strip], self.basis)
            parts.append(np.einsum("ij,ij->i", values, self.weights(coordinates[strip])))
        return self.from_products(coordinates, np.concatenate(parts), self.kernel.diagonal(Z))

    def from_products(self, coordinates: Floats, products: Floats, own: Floats) -> Floats:
        """‖P_i − Φ(z_i)‖² from ⟨P_i, Φ(z_i)⟩ and k(z_i, z_i); rounding may not make it negative."""
        return np.maximum(self.squared_lengths(coordinates) - 2 * products + own, 0)


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
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.subspace import Subspace
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


#: Kernel values held at a time.
_PROJECTION_STRIP = 4_000_000


@dataclass(frozen=True)
class Projector:
    """What projecting a row takes.

    Parameters
    ----------
    kernel : Kernel or None
        None where rows come as kernel values with the training rows.
    X_fit : rows
        The training rows.
    centring : Centring
    coefficients : ndarray of shape (r, l)
        A.
    component_gram : ndarray of shape (r, r)
        AK'Aᵀ, the identity for orthonormal components.
    training_projections : ndarray of shape (r, l), optional
        AK', where it is kept: pre-images then need no kernel values of the training rows.
    """

    kernel: Kernel | None
    X_fit: Rows
    centring: Centering
    coefficients: Floats
    component_gram: Floats
    training_projections: Floats | None = None

    def project(self, X: Rows) -> Floats:
        """Projections y = A k'(x), a strip of rows at a time."""
        return np.vstack([self._projections(K_new) for _, K_new in self._strips(X)])

    def explained_share(self, X: Rows, kernel: Kernel) -> float:
        """1 − Σ‖Φ'(x) − WᵀWΦ'(x)‖² / Σ‖Φ'(x)‖², Φ' centred on the training mean."""
        missing, total = 0.0, 0.0
        for rows, K_new in self._strips(X):
            lengths = self.centring.diagonal(K_new, kernel.diagonal(rows))
            y = self._projections(K_new)
            inner = np.einsum("ni,ij,nj->", y, self.component_gram, y)
            missing += float(lengths.sum() - 2 * np.square(y).sum() + inner)
            total += float(lengths.sum())
        return 1 - missing / total if total > 0 else 0.0

    def coordinates(self, projections: Floats) -> Floats:
        """c with PΦ' = Σ_i c_i w_i: projections again, where components are orthonormal."""
        precision = float(np.finfo(projections.dtype).eps) * 10 * len(self.component_gram)
        return projections @ np.linalg.pinv(self.component_gram, precision, hermitian=True)

    def residuals(self, X: Rows, kernel: Kernel) -> Floats:
        """‖Φ'(x) − PΦ'(x)‖² for every row, P the orthogonal projector on the components."""
        parts = []
        for rows, K_new in self._strips(X):
            y = self._projections(K_new)
            lengths = self.centring.diagonal(K_new, kernel.diagonal(rows))
            parts.append(lengths - np.einsum("ni,ni->n", y, self.coordinates(y)))
        return np.maximum(np.concatenate(parts), 0)

    def _projections(self, K_new: Floats) -> Floats:
        return self.centring.project(K_new, self.coefficients)

    def _strips(self, X: Rows) -> Iterator[tuple[Rows, Floats]]:
        size = max(1, _PROJECTION_STRIP // self.coefficients.shape[1])
        for strip in tile_slices(X.shape[0], size):
            yield X[strip], self._kernel_values(X[strip])

    def _kernel_values(self, X: Rows) -> Floats:
        if self.kernel is not None:
            return cross_gram(self.kernel, X, self.X_fit)
        return X.toarray() if sparse.issparse(X) else X
