"""Reduced sets of iterated pre-images (Chin 2006, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import linalg

from ikpca.errors import Number, check_parameters
from ikpca.gram import cross_gram
from ikpca.kernels import DifferentiableKernel, Floats, Kernel, RadialKernel
from ikpca.preimages import FixedPoint, Gradient, PreimageMethod
from ikpca.reduced_sets.base import CANDIDATES_RULE, ReducedSet, Reduction, ReductionProblem
from ikpca.subspace import Subspace

#: A row is dependent on the others if its residual is below this fraction of k(z, z).
_DEPENDENT = 1e-11
#: Relative error below which a vector needs no further pre-images.
_TOL = 1e-6
#: Iterations of a search for a pre-image: the best of several rows needs no accurate search.
_SEARCH_STEPS = 5

_RULES = {
    "per_vector": Number("must be 'auto' or a positive integer", "pass 'auto'",
                         low=1, integer=True, allowed=("auto",)),
    "max_candidates": CANDIDATES_RULE,
}  # fmt: skip


@dataclass(frozen=True)
class IteratedPreimages(Reduction):
    """Reduction that finds pre-images of the residuals one after the other, as in the paper.

    Vectors are processed in order of their weights. A vector also uses the pre-images of those
    before it and, in a second pass, all of them, which cannot increase an error (scheme (c) of
    figure 1).

    Parameters
    ----------
    per_vector : int or "auto"
        Pre-images per vector; "auto" divides ``size`` among the vectors.
    max_candidates : int
        Maximum number of rows used; more rows are sampled.
    seed : int
        Seed of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Gaussian
    >>> from ikpca.subspace import Subspace
    >>> from ikpca.reduced_sets import IteratedPreimages
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> mean = Subspace(Gaussian(0.1), X, np.full((1, 50), 0.02))
    >>> reduced = IteratedPreimages().reduce(mean, 10)
    >>> reduced.subspace.basis.shape, bool(reduced.relative_errors[0] < 0.05)
    ((10, 2), True)
    """

    per_vector: int | Literal["auto"] = "auto"
    max_candidates: int = 4000
    seed: int = 0

    def __post_init__(self) -> None:
        check_parameters(self, _RULES)

    def supports(self, kernel: Kernel) -> bool:
        """Return True for radial and differentiable kernels."""
        return isinstance(kernel, RadialKernel | DifferentiableKernel)

    def _reduce(self, problem: ReductionProblem) -> ReducedSet:
        """Find pre-images until all rows are used, and all coefficients in a second pass."""
        order = np.argsort(-problem.weights, kind="stable")
        basis = GrowingBasis(problem.candidates, problem.size)
        for position, i in enumerate(order):
            self._add_preimages(basis, i, len(order) - position)
        # If all vectors are zero, the basis must not be empty.
        return problem.on_rows(basis.rows if basis.count else problem.candidates.basis[:1])

    def _add_preimages(self, basis: GrowingBasis, i: int, vectors_left: int) -> None:
        """Add pre-images of one vector: ``per_vector``, or an equal part of the free rows."""
        number = self.per_vector
        if number == "auto":
            number = (basis.size - basis.count) // vectors_left
        tolerance = _TOL**2 * basis.vectors.gram[i, i]
        for _ in range(number):
            if basis.count == basis.size or basis.squared_errors[i] <= tolerance:
                break
            row = basis.best_row(i)
            if row is None:
                break
            basis.add(row)


class GrowingBasis:
    """Rows z_k added one by one, and least-squares approximations of vectors u_i on them.

    With q_k the orthonormal vectors from Φ(z_1), …, Φ(z_k) by Gram–Schmidt, each new row reduces
    the squared error of u_i by ⟨u_i, q_k⟩² and needs no new factorization.
    """

    def __init__(self, vectors: Subspace, size: int) -> None:
        number, n_basis = vectors.coefficients.shape
        self.vectors = vectors
        self.size = size
        self.count = 0
        self._rows = np.empty((size, vectors.basis.shape[1]))
        #: Lower triangular L: LLᵀ is the Gram matrix of the rows.
        self._factor = np.zeros((size, size))
        #: ⟨q_k, Φ(x_j)⟩ and ⟨u_i, q_k⟩.
        self._with_basis = np.empty((size, n_basis))
        self._with_vectors = np.empty((number, size))
        #: Of Φ(x_j) and of u_i, orthogonal to all Φ(z_k).
        self._squared_residuals = vectors.diagonal.astype(np.float64)
        self.squared_errors = np.diagonal(vectors.gram).copy()

    @property
    def rows(self) -> Floats:
        """Rows z_k added so far."""
        return self._rows[: self.count]

    def add(self, row: Floats) -> None:
        """Add a row, which must not be linearly dependent on the others."""
        n, (projections, squares) = self.count, self._project(row[None])
        projection, length = projections[:, 0], np.sqrt(squares[0])
        with_basis = cross_gram(self.vectors.kernel, row[None], self.vectors.basis)[0]
        self._rows[n], self._factor[n, :n], self._factor[n, n] = row, projection, length
        self._with_vectors[:, n] = self.vectors.coefficients @ with_basis
        self._with_vectors[:, n] -= self._with_vectors[:, :n] @ projection
        self._with_vectors[:, n] /= length
        self._with_basis[n] = (with_basis - projection @ self._with_basis[:n]) / length
        self._squared_residuals -= self._with_basis[n] ** 2
        self.squared_errors -= self._with_vectors[:, n] ** 2
        self.count = n + 1

    def coefficients(self) -> Floats:
        """Return C for all vectors."""
        n = self.count
        if not n:
            return np.zeros((len(self._with_vectors), 0))
        return linalg.solve_triangular(
            self._factor[:n, :n], self._with_vectors[:, :n].T, lower=True, trans=1,
            check_finite=False,
        ).T  # fmt: skip

    def best_row(self, i: int) -> Floats | None:
        """Find the row that reduces the error of u_i most; None if all are linearly dependent.

        Candidates are a basis row and the pre-images of the residual from that row and from the
        rows nearest to it in direction. A pre-image is nearest to the residual, but may be less
        useful than a basis row: after a few steps the residual oscillates, and its pre-images
        leave the data.
        """
        residual = self._residual(i)
        n_basis = len(self._squared_residuals)
        products = residual.products[0, :n_basis]
        gains = self._decreases(products, self._squared_residuals, self.vectors.diagonal)
        start = int(gains.argmax())
        if not gains[start] > 0:
            return None
        rows = self._search(residual, start, n_basis, _SEARCH_STEPS)
        _, squares = self._project(rows)
        row_products = residual.products_with(rows)[0]
        row_gains = self._decreases(row_products, squares, self.vectors.kernel.diagonal(rows))
        best = int(row_gains.argmax())
        return rows[best] if row_gains[best] > gains[start] else self.vectors.basis[start]

    def _project(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return ⟨q_k, Φ(z)⟩ of rows z, and the squared lengths of the parts orthogonal to q_k."""
        n, kernel = self.count, self.vectors.kernel
        squares = kernel.diagonal(rows).astype(np.float64)
        if not n:
            return np.zeros((0, len(rows))), squares
        projections = linalg.solve_triangular(
            self._factor[:n, :n], cross_gram(kernel, self.rows, rows), lower=True,
            check_finite=False,
        )  # fmt: skip
        return projections, squares - np.square(projections).sum(axis=0)

    def _residual(self, i: int) -> Subspace:
        """Return u_i − Σ_k C_ik Φ(z_k), expanded on the basis and the rows."""
        n, vectors, one = self.count, self.vectors, slice(i, i + 1)
        coefficients = np.hstack([vectors.coefficients[one], -self.coefficients()[one]])
        on_basis = vectors.products[one] - self._with_vectors[one, :n] @ self._with_basis[:n]
        # It is orthogonal to the rows.
        products = np.hstack([on_basis, np.zeros((1, n))])
        basis = np.vstack([vectors.basis, self.rows])
        gram = products @ coefficients.T
        return Subspace(vectors.kernel, basis, coefficients, products, gram)

    @staticmethod
    def _decreases(products: Floats, squared_residuals: Floats, diagonal: Floats) -> Floats:
        """Return the decrease of ‖u‖² by each row; zero for rows that are linearly dependent."""
        independent = squared_residuals > _DEPENDENT * np.abs(diagonal)
        gains = np.zeros(len(products))
        np.divide(products**2, squared_residuals, out=gains, where=independent)
        return gains

    @staticmethod
    def _search(vector: Subspace, start: int, n_starts: int, max_iter: int) -> Floats:
        """Find rows z with large ⟨u, Φ(z)⟩² / k(z, z), the part of ‖u‖² explained by βΦ(z).

        z is a pre-image of u/β. The searches start from the given basis row, and from two of the
        first ``n_starts``: the best with positive β and the best with negative β.
        """
        products, diagonal = vector.products[0, :n_starts], vector.diagonal[:n_starts]
        cosines = products / np.sqrt(np.where(diagonal > 0, diagonal, 1))
        starts = np.unique([start, cosines.argmax(), cosines.argmin()])
        scales = products[starts] / np.where(diagonal[starts] > 0, diagonal[starts], 1)
        # A vector may be too short for its direction to be computed.
        usable = np.abs(scales) >= np.finfo(scales.dtype).tiny
        if not usable.any():
            return vector.basis[[start]]
        method: PreimageMethod = Gradient(max_iter=max_iter, tol=1e-3)
        if isinstance(vector.kernel, RadialKernel):
            method = FixedPoint(max_iter=max_iter, tol=1e-3)
        return method.find(vector, 1 / scales[usable, None], vector.basis[starts[usable]]).rows
