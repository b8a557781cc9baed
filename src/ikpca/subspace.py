"""Components and mean in feature space as combinations of the images of a set of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ikpca.errors import UnreadableFile
from ikpca.gram import cross_gram, tile_slices
from ikpca.gram.centering import Centering, center_columns
from ikpca.gram.resources import SERIAL, Workers
from ikpca.kernels import Floats, Kernel, Rows

#: Kernel values, and as many weights, in memory at a time: 16 MB each in double precision.
_STRIP_ENTRIES = 2_000_000
#: Largest relative residual that is a rounding error, in units of machine epsilon.
_ROUNDING = 100
#: Blocks of the product with a triangular matrix, and rows of the smallest.
_TRIANGLE_BLOCKS, _MIN_BLOCK = 8, 64


def check_shapes(*expected: tuple[Any, tuple[int, ...]]) -> None:
    """Raise an error unless all arrays have the given shapes."""
    for array, shape in expected:
        if getattr(array, "shape", None) != shape:
            raise UnreadableFile(f"an array has shape {np.shape(array)} instead of {shape}")


@dataclass(frozen=True, eq=False)
class Subspace:
    """Components u_i = Σ_j α_ij Φ(x_j) about a mean µ = Σ_j ν_j Φ(x_j) (Chin 2006, eq. 6).

    Unlike the mean of a training set, µ may have unequal weights, and it may be the mean of more
    samples than there are rows.

    The vectors of the subspace are its components and, last, its mean. Reduced sets approximate
    them, and pre-images are rows for points P = Σ_r c_r u_r in their span. Points are given by
    their coordinates c; the coordinates of the vectors themselves are the rows of the identity. A
    single vector is a subspace without components.

    Parameters
    ----------
    kernel : Kernel or None
        None if rows are given as kernel values with the basis; they can only be projected.
    basis : rows of shape (m, N)
        The rows x_j: dense, CSR or on disk. Pre-images need them dense and in memory.
    coefficients : ndarray of shape (r + 1, m)
        α, one component per row, and ν last; uncentered.
    known_products : ndarray of shape (r + 1, m), optional
        ⟨u_i, Φ(x_j)⟩ and ⟨µ, Φ(x_j)⟩; by default computed from all kernel values of the basis. With
        ``eigenvalues`` the last row only.
    known_gram : ndarray of shape (r + 1, r + 1), optional
        Inner products of the vectors; computed by default.
    eigenvalues : ndarray of shape (r,), optional
        λ of components with ⟨u_i, Φ(x_j) − µ⟩ = λ_i α_ij, which need no products.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Subspace
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> along = Subspace(Linear(), X, np.array([[0.5, -0.5], [0.5, 0.5]]))
    >>> along.project(np.array([[3.0, 7.0]]))
    array([[3.]])
    >>> along.squared_distances(along.points(np.array([[3.0]])), np.array([[3.0, 7.0]]))
    array([49.])
    """

    # Kernel or None; most methods assume a kernel.
    kernel: Any
    basis: Rows
    coefficients: Floats
    known_products: Floats | None = None
    known_gram: Floats | None = None
    eigenvalues: Floats | None = None

    @classmethod
    def from_centered(
        cls,
        kernel: Kernel | None,
        X: Rows,
        coefficients: Floats,
        centering: Centering,
        projections: Floats,
        mean: Floats | None = None,
        eigenvalues: Floats | None = None,
    ) -> Subspace:
        """Return components that are combinations of the centered images of training rows.

        ``X`` are the training rows, or their kernel matrix if the kernel is None. Coefficients are
        A, projections AK', so that no kernel values between training rows are needed. If X are not
        all of the training rows, ``mean`` are the coefficients of the mean, and the images are not
        centered. With eigenvalues λ, and AK' = λA up to rounding, no products are stored.
        """
        # Σ_j a_j Φ'(x_j) = Σ_j (a_j − mean a) Φ(x_j), and ⟨u, Φ(x)⟩ = ⟨u, Φ'(x)⟩ + ⟨u, µ⟩.
        if mean is None:
            n_rows, coefficients = coefficients.shape[1], center_columns(coefficients.T).T
            mean = np.full_like(coefficients, 1 / n_rows, shape=n_rows)
        offsets = (coefficients @ centering.column_means)[:, None]
        sums = coefficients.sum(axis=1, dtype=np.float64, keepdims=True)
        lengths = coefficients @ projections.T + sums * offsets.T
        grand_mean = np.array([[centering.grand_mean]])
        gram = np.block([[lengths, offsets], [offsets.T, grand_mean]])
        products = centering.column_means[None]
        if eigenvalues is None or not _are_eigenvectors(coefficients, projections, eigenvalues):
            products, eigenvalues = np.vstack([projections + offsets, products]), None
        return cls(
            kernel,
            X,
            np.vstack([coefficients, mean]),
            products,
            gram.astype(coefficients.dtype, copy=False),
            eigenvalues,
        )

    def check_shapes(self, n_components: int, n_features: int) -> None:
        """Raise an error unless the arrays, which may be those of a file, fit together."""
        n_rows, n_vectors = len(self.mean), n_components + 1
        products, values = self.known_products, self.eigenvalues
        n_products = n_vectors if values is None else 1
        check_shapes(
            # Without a kernel, a row has a kernel value for every row of the basis.
            (self.basis, (n_rows, n_rows if self.kernel is None else n_features)),
            (self.coefficients, (n_vectors, n_rows)),
            (self.known_gram, (n_vectors, n_vectors)),
            *([] if products is None else [(products, (n_products, n_rows))]),
            *([] if values is None else [(values, (n_components,))]),
        )

    @property
    def components(self) -> Floats:
        """Coefficients α of the components, r×m, uncentered."""
        return self.coefficients[:-1]

    @property
    def mean(self) -> Floats:
        """Coefficients ν of the mean."""
        return self.coefficients[-1]

    @property
    def projections(self) -> Floats:
        """Inner products ⟨u_i, Φ(x_j) − µ⟩ of the basis."""
        if self.eigenvalues is None:
            return self.products[:-1] - self.offsets[:, None]
        return self.components * self.eigenvalues[:, None]

    @property
    def products(self) -> Floats:
        """Inner products of the vectors with the images Φ(x_j) of the basis."""
        if self.known_products is None:
            return self._computed_products
        if self.eigenvalues is None:
            return self.known_products
        return np.vstack([self.projections + self.offsets[:, None], self.known_products])

    @cached_property
    def _computed_products(self) -> Floats:
        return self.products_with(self.basis)

    @cached_property
    def gram(self) -> Floats:
        """Inner products of the vectors."""
        if self.known_gram is not None:
            return self.known_gram
        return self.products @ self.coefficients.T

    @property
    def component_gram(self) -> Floats:
        """Inner products ⟨u_i, u_j⟩, the identity for orthonormal components."""
        return self.gram[:-1, :-1]

    @property
    def offsets(self) -> Floats:
        """Inner products ⟨u_i, µ⟩."""
        return self.gram[-1, :-1]

    @cached_property
    def diagonal(self) -> Floats:
        """Kernel values k(x_j, x_j)."""
        return self.kernel.diagonal(self.basis)

    @cached_property
    def basis_std(self) -> float:
        """Total standard deviation of the basis rows, the scale of steps; 1 if rows are equal."""
        std = float(np.sqrt(self.basis.var(axis=0, dtype=np.float64).sum()))
        return std or 1.0

    def select(self, indices: NDArray[np.intp]) -> Subspace:
        """Return the subspace of some of the components, with the same mean."""
        selected, gram = np.append(indices, len(self.components)), self.known_gram
        return replace(
            self,
            coefficients=self.coefficients[selected],
            known_products=None if self.known_products is None else self.products[selected],
            known_gram=None if gram is None else gram[np.ix_(selected, selected)],
            eigenvalues=None,
        )

    def products_with(self, Z: Rows) -> Floats:
        """Return the inner products of the vectors with the images Φ(z_k) of any rows."""
        parts = (
            self.coefficients[:, strip] @ cross_gram(self.kernel, self.basis[strip], Z)
            for strip in tile_slices(self.basis.shape[0])
        )
        return reduce(np.add, parts)

    def project(self, X: Rows, workers: Workers = SERIAL) -> Floats:
        """Return ⟨u_i, Φ(x) − µ⟩ (eq. 5), computed by strips of rows."""

        def part(strip: slice) -> Floats:
            return self._projections(self._kernel_values(X[strip]))

        return np.vstack(list(workers.map(part, self._row_strips(X))))

    def has_strips(self, X: Rows) -> bool:
        """Return True if kernel values of rows are computed in more than one strip."""
        return len(list(self._row_strips(X))) > 1

    def residuals(self, X: Rows) -> Floats:
        """Return ‖Φ(x) − µ − P(Φ(x) − µ)‖², P the orthogonal projector on the components."""
        return self.squared_norms_and_residuals(X)[1]

    def squared_norms_and_residuals(self, X: Rows) -> tuple[Floats, Floats]:
        """Return ‖Φ(x) − µ‖² and ‖Φ(x) − µ − P(Φ(x) − µ)‖² for every row."""
        # In the precision of the basis.
        dtype, parts = np.result_type(X.dtype, self.basis.dtype), []
        for strip in self._row_strips(X):
            rows = X[strip].astype(dtype, copy=False)
            values, diagonal = self._kernel_values(rows), self.kernel.diagonal(rows)
            parts.append(self.norms_and_residuals_from(values, diagonal))
        norms, residuals = map(np.concatenate, zip(*parts, strict=True))
        return norms, residuals

    def norms_and_residuals_from(self, values: Floats, diagonal: Floats) -> tuple[Floats, Floats]:
        """Return the same for rows with these kernel values with the basis, and k(x, x)."""
        y = self._projections(values)
        norms = diagonal - 2 * (values @ self.mean) + self.gram[-1, -1]
        whitened = y @ self._whitening
        residuals = norms - np.einsum("ni,ni->n", whitened, whitened)
        return np.maximum(norms, 0), np.maximum(residuals, 0)

    def coordinates(self, projections: Floats) -> Floats:
        """Return c with P(Φ − µ) = Σ_i c_i u_i; projections if components are orthonormal."""
        return projections @ (self._whitening @ self._whitening.T)

    def points(self, projections: Floats) -> Floats:
        """Return the coordinates of the points µ + P(Φ − µ), for pre-images."""
        ones = np.ones((len(projections), 1), dtype=projections.dtype)
        return np.hstack([self.coordinates(projections), ones])

    def weights(self, coordinates: Floats) -> Floats:
        """Return G with P_i = Σ_j G_ij Φ(x_j)."""
        return coordinates @ self.coefficients

    def squared_norms(self, coordinates: Floats) -> Floats:
        """Return ‖P_i‖²."""
        return np.einsum("ir,rs,is->i", coordinates, self.gram, coordinates, optimize=True)

    def strips(self, n_points: int) -> Iterator[slice]:
        """Divide points into strips whose weights fit into the memory limit."""
        return tile_slices(n_points, max(1, _STRIP_ENTRIES // self.coefficients.shape[1]))

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
        """Return ‖P_i − Φ(z_i)‖², clipped at 0 against rounding errors; infinite on overflow."""
        parts = []
        with np.errstate(over="ignore", invalid="ignore"):
            for strip in self.strips(len(Z)):
                values = cross_gram(self.kernel, Z[strip], self.basis)
                parts.append(np.einsum("ij,ij->i", values, self.weights(coordinates[strip])))
            products, diagonal = np.concatenate(parts), self.kernel.diagonal(Z)
            distances = self.squared_norms(coordinates) - 2 * products + diagonal
        return np.where(np.isnan(distances), np.inf, np.maximum(distances, 0))

    @cached_property
    def _whitening(self) -> Floats:
        """W with WWᵀ the pseudo-inverse of the Gram matrix of the components."""
        values, vectors = np.linalg.eigh(self.component_gram)
        precision = float(np.finfo(values.dtype).eps) * 10 * len(values)
        kept = values > precision * values.max(initial=0.0)
        return vectors[:, kept] / np.sqrt(values[kept])

    def _projections(self, values: Floats) -> Floats:
        return values @ self.components.T - self.offsets

    def _row_strips(self, X: Rows) -> Iterator[slice]:
        """Divide rows into strips, twice as long as those of points, which need weights."""
        n_entries = max(X.shape[1], len(self.mean))
        return tile_slices(X.shape[0], max(1, 2 * _STRIP_ENTRIES // n_entries))

    def _kernel_values(self, X: Rows) -> Floats:
        if self.kernel is not None:
            return cross_gram(self.kernel, X, self.basis)
        return X.toarray() if sparse.issparse(X) else X


def _are_eigenvectors(coefficients: Floats, projections: Floats, eigenvalues: Floats) -> bool:
    """Return True if ‖AK' − λA‖ is rounding error for every component."""
    limit = _ROUNDING * np.finfo(projections.dtype).eps * eigenvalues.max(initial=0.0)
    pairs = zip(coefficients, projections, eigenvalues, strict=True)
    norm = np.linalg.norm
    return all(norm(y - value * a) <= limit * norm(a) for a, y, value in pairs)


class MeanResidual(Subspace):
    """Mean of the residuals for several subspaces, for which one matrix product is enough.

    For a row x with kernel values k it is k(x, x) − 2⟨ν, k⟩ + c − ‖Tk + t‖²: that of orthonormal
    components with coefficients T, which are triangular, and offsets −t, about a mean ν with the
    squared norm c.
    """

    @classmethod
    def of(
        cls, basis: Rows, subspaces: Sequence[Subspace], indices: Sequence[NDArray[np.intp]]
    ) -> MeanResidual:
        """Combine subspaces; the basis of each has the given indices in ``basis``."""
        n_rows, number = basis.shape[0], len(subspaces)
        mean, stacked = np.zeros(n_rows), np.zeros((0, n_rows + 1))
        for subspace, rows in zip(subspaces, indices, strict=True):
            mean[rows] += subspace.mean / number
            whitening = subspace._whitening.T.astype(np.float64) / np.sqrt(number)
            block = np.zeros((len(whitening), n_rows + 1))
            block[:, rows] = whitening @ subspace.components
            block[:, -1] = -whitening @ subspace.offsets
            # Orthogonal transformations do not change the sum of squares.
            stacked = np.asarray(np.linalg.qr(np.vstack([stacked, block]), mode="r"))
        offsets = -stacked[:, -1:]
        squared_mean = np.mean([[subspace.gram[-1:, -1:]] for subspace in subspaces], axis=(0, 1))
        gram = np.block([[np.eye(len(stacked)), offsets], [offsets.T, squared_mean]])
        coefficients = np.vstack([stacked[:, :-1], mean])
        return cls(
            subspaces[0].kernel,
            basis,
            coefficients.astype(basis.dtype),
            known_gram=gram.astype(basis.dtype),
        )

    def norms_and_residuals_from(self, values: Floats, diagonal: Floats) -> tuple[Floats, Floats]:
        """Return the same as a subspace; blocks of the triangle skip most zeros."""
        norms = diagonal - 2 * (values @ self.mean) + self.gram[-1, -1]
        residuals = norms.copy()
        size = max(_MIN_BLOCK, -(-len(self.mean) // _TRIANGLE_BLOCKS))
        for block in tile_slices(len(self.components), size):
            y = values[:, block.start :] @ self.components[block, block.start :].T
            y -= self.offsets[block]
            residuals -= np.einsum("ni,ni->n", y, y)
        return np.maximum(norms, 0), np.maximum(residuals, 0)
