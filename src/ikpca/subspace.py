"""Components and mean in feature space as expansions over a set of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ikpca.gram import Centering, cross_gram, tile_slices
from ikpca.kernels import Floats, Kernel, Rows

#: Kernel values, and as many weights, in memory at a time: 16 MB each in double precision.
_STRIP_ENTRIES = 2_000_000
#: Kernel values in memory at a time for projections.
_PROJECTOR_STRIP_ENTRIES = 4_000_000


@dataclass(frozen=True, eq=False)
class Expansion:
    """Vectors u_r = Σ_j B_rj Φ(x_j), and points P = Σ_r c_r u_r in their span.

    Components of kernel PCA and their mean are such vectors, and so are the vectors that reduced
    sets approximate. Points are given by their coordinates c; the coordinates of the vectors
    themselves are the rows of the identity.

    Parameters
    ----------
    kernel : Kernel
    basis : ndarray of shape (m, N)
        The rows x_j.
    coefficients : ndarray of shape (q, m)
        B, uncentered.
    known_products : ndarray of shape (q, m), optional
        ⟨u_r, Φ(x_j)⟩; by default computed from all kernel values of the basis.
    known_gram : ndarray of shape (q, q), optional
        ⟨u_r, u_s⟩; computed by default.

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
        """Inner products ⟨u_r, Φ(x_j)⟩."""
        if self.known_products is not None:
            return self.known_products
        parts = [
            self.coefficients @ cross_gram(self.kernel, self.basis, self.basis[columns])
            for columns in tile_slices(len(self.basis))
        ]
        return np.hstack(parts)

    @cached_property
    def gram(self) -> Floats:
        """Inner products ⟨u_r, u_s⟩."""
        if self.known_gram is not None:
            return self.known_gram
        return self.products @ self.coefficients.T

    @cached_property
    def diagonal(self) -> Floats:
        """Kernel values k(x_j, x_j)."""
        return self.kernel.diagonal(self.basis)

    @cached_property
    def basis_std(self) -> float:
        """Total standard deviation of the basis rows, the scale of steps; 1 if rows are equal."""
        std = float(np.sqrt(self.basis.var(axis=0, dtype=np.float64).sum()))
        return std or 1.0

    def weights(self, coordinates: Floats) -> Floats:
        """Return G with P_i = Σ_j G_ij Φ(x_j)."""
        return coordinates @ self.coefficients

    def squared_norms(self, coordinates: Floats) -> Floats:
        """Return ‖P_i‖²."""
        return np.einsum("ir,rs,is->i", coordinates, self.gram, coordinates, optimize=True)

    def strips(self, n_points: int) -> Iterator[slice]:
        """Divide points into strips whose weights fit into the memory limit."""
        return tile_slices(n_points, max(1, _STRIP_ENTRIES // len(self.basis)))

    def nearest_rows(self, coordinates: Floats, n_rows: int) -> NDArray[np.intp]:
        """Return the indices of the basis rows with the nearest images to each point, in order."""
        distances = coordinates @ (-2 * self.products)
        distances += self.diagonal
        if n_rows == 1:
            return distances.argmin(axis=1)[:, None]
        nearest = np.argpartition(distances, n_rows - 1, axis=1)[:, :n_rows]
        order = np.argsort(np.take_along_axis(distances, nearest, axis=1), axis=1, kind="stable")
        return np.take_along_axis(nearest, order, axis=1)

    def squared_distances(self, coordinates: Floats, Z: Floats) -> Floats:
        """Return ‖P_i − Φ(z_i)‖², clipped at 0 against rounding errors."""
        parts = []
        for strip in self.strips(len(Z)):
            values = cross_gram(self.kernel, Z[strip], self.basis)
            parts.append(np.einsum("ij,ij->i", values, self.weights(coordinates[strip])))
        products, diagonal = np.concatenate(parts), self.kernel.diagonal(Z)
        return np.maximum(self.squared_norms(coordinates) - 2 * products + diagonal, 0)


@dataclass(frozen=True, eq=False)
class Subspace:
    """Components u_i = Σ_j α_ij Φ(x_j) about a mean µ = Σ_j ν_j Φ(x_j) (Chin 2006, eq. 6).

    Unlike the mean of a training set, µ may have unequal weights, and it may be the mean of more
    samples than there are rows.

    Parameters
    ----------
    expansion : Expansion
        The components in order, and the mean last.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Expansion, Subspace
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> along = Subspace(Expansion(Linear(), X, np.array([[0.5, -0.5], [0.5, 0.5]])))
    >>> along.project(np.array([[3.0, 7.0]]))
    array([[3.]])
    """

    expansion: Expansion

    @property
    def basis(self) -> Floats:
        """Rows x_j."""
        return self.expansion.basis

    @property
    def components(self) -> Floats:
        """Coefficients α of the components, r×m, uncentered."""
        return self.expansion.coefficients[:-1]

    @property
    def mean(self) -> Floats:
        """Coefficients ν of the mean."""
        return self.expansion.coefficients[-1]

    @property
    def component_gram(self) -> Floats:
        """Inner products ⟨u_i, u_j⟩, the identity for orthonormal components."""
        return self.expansion.gram[:-1, :-1]

    @property
    def offsets(self) -> Floats:
        """Inner products ⟨u_i, µ⟩."""
        return self.expansion.gram[-1, :-1]

    def select(self, indices: NDArray[np.intp]) -> Subspace:
        """Return the subspace of some of the components, with the same mean."""
        expansion = self.expansion
        selected = np.append(indices, len(self.components))
        products, gram = expansion.known_products, expansion.known_gram
        return Subspace(
            Expansion(
                expansion.kernel,
                expansion.basis,
                expansion.coefficients[selected],
                None if products is None else products[selected],
                None if gram is None else gram[np.ix_(selected, selected)],
            )
        )

    def project(self, X: Rows) -> Floats:
        """Return ⟨u_i, Φ(x) − µ⟩ (eq. 5), computed by strips of rows."""
        return np.vstack([self._projections(values) for _, values in self._strips(X)])

    def residuals(self, X: Rows) -> Floats:
        """Return ‖Φ(x) − µ − P(Φ(x) − µ)‖², P the orthogonal projector on the components."""
        return self.squared_norms_and_residuals(X)[1]

    def explained_share(self, X: Rows) -> float:
        """Return 1 − Σ‖Φ(x) − µ − P(Φ(x) − µ)‖² / Σ‖Φ(x) − µ‖²."""
        total, residual = (
            float(part.sum(dtype=np.float64)) for part in self.squared_norms_and_residuals(X)
        )
        return 1 - residual / total if total > 0 else 0.0

    def squared_norms_and_residuals(self, X: Rows) -> tuple[Floats, Floats]:
        """Return ‖Φ(x) − µ‖² and ‖Φ(x) − µ − P(Φ(x) − µ)‖² for every row."""
        norms, residuals = [], []
        for rows, values in self._strips(X):
            y = self._projections(values)
            squared = self.expansion.kernel.diagonal(rows) - 2 * (values @ self.mean)
            squared += self.expansion.gram[-1, -1]
            norms.append(squared)
            residuals.append(squared - np.einsum("ni,ni->n", y, self.coordinates(y)))
        return np.maximum(np.concatenate(norms), 0), np.maximum(np.concatenate(residuals), 0)

    def coordinates(self, projections: Floats) -> Floats:
        """Return c with P(Φ − µ) = Σ_i c_i u_i; projections if components are orthonormal."""
        return projections @ self._inverse_gram

    def points(self, projections: Floats) -> Floats:
        """Return the coordinates of µ + P(Φ − µ) in the expansion, for pre-images."""
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
            yield X[strip], cross_gram(self.expansion.kernel, X[strip], self.basis)


@dataclass(frozen=True)
class Projector:
    """Projection of rows on components that are expansions over the centered training rows.

    Parameters
    ----------
    kernel : Kernel or None
        None if rows are given as kernel values with the training rows.
    X_fit : rows
        The training rows.
    centring : Centering
    coefficients : ndarray of shape (r, l)
        A.
    component_gram : ndarray of shape (r, r)
        AK'Aᵀ, the identity for orthonormal components.
    training_projections : ndarray of shape (r, l), optional
        AK'; with it, pre-images need no kernel values between training rows.
    """

    kernel: Kernel | None
    X_fit: Rows
    centring: Centering
    coefficients: Floats
    component_gram: Floats
    training_projections: Floats | None = None

    def project(self, X: Rows) -> Floats:
        """Return projections y = A k'(x), computed by strips of rows."""
        return np.vstack([self._projections(K_new) for _, K_new in self._strips(X)])

    def explained_share(self, X: Rows, kernel: Kernel) -> float:
        """Return 1 − Σ‖Φ'(x) − WᵀWΦ'(x)‖² / Σ‖Φ'(x)‖², with Φ' centered on the training mean."""
        residual, total = 0.0, 0.0
        for rows, K_new in self._strips(X):
            squared_norms = self.centring.diagonal(K_new, kernel.diagonal(rows))
            y = self._projections(K_new)
            inner = np.einsum("ni,ij,nj->", y, self.component_gram, y)
            residual += float(squared_norms.sum() - 2 * np.square(y).sum() + inner)
            total += float(squared_norms.sum())
        return 1 - residual / total if total > 0 else 0.0

    def coordinates(self, projections: Floats) -> Floats:
        """Return c with PΦ' = Σ_i c_i w_i; projections if components are orthonormal."""
        precision = float(np.finfo(projections.dtype).eps) * 10 * len(self.component_gram)
        return projections @ np.linalg.pinv(self.component_gram, precision, hermitian=True)

    def residuals(self, X: Rows, kernel: Kernel) -> Floats:
        """Return ‖Φ'(x) − PΦ'(x)‖², P the orthogonal projector on the components."""
        parts = []
        for rows, K_new in self._strips(X):
            y = self._projections(K_new)
            squared_norms = self.centring.diagonal(K_new, kernel.diagonal(rows))
            parts.append(squared_norms - np.einsum("ni,ni->n", y, self.coordinates(y)))
        return np.maximum(np.concatenate(parts), 0)

    def _projections(self, K_new: Floats) -> Floats:
        return self.centring.project(K_new, self.coefficients)

    def _strips(self, X: Rows) -> Iterator[tuple[Rows, Floats]]:
        size = max(1, _PROJECTOR_STRIP_ENTRIES // self.coefficients.shape[1])
        for strip in tile_slices(X.shape[0], size):
            yield X[strip], self._kernel_values(X[strip])

    def _kernel_values(self, X: Rows) -> Floats:
        if self.kernel is not None:
            return cross_gram(self.kernel, X, self.X_fit)
        return X.toarray() if sparse.issparse(X) else X
