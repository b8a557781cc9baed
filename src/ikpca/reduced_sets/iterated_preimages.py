"""Reduced sets of iterated pre-images (Chin 2006, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import linalg

from ikpca.errors import check_number, invalid_parameter
from ikpca.gram import cross_gram
from ikpca.kernels import DifferentiableKernel, Floats, Indices, Kernel, RadialKernel
from ikpca.preimages import FixedPoint, Gradient, PreimageMethod
from ikpca.reduced_sets.base import (
    ReducedSet,
    ReductionProblem,
    least_squares_on,
    make_reduced_set,
)
from ikpca.subspace import Subspace

#: Searches for a kernel with variable k(z, z): the scale of the target depends on the row found,
#: and the row on the scale.
_SCALINGS = 2
#: A row is dependent on the others if its residual is below this fraction of k(z, z).
_DEPENDENT = 1e-11
#: A low accuracy is enough, since the coefficients are solved for afterwards.
_FIXED_POINT, _GRADIENT = FixedPoint(max_iter=50, tol=1e-3), Gradient(max_iter=100, tol=1e-4)


@dataclass(frozen=True)
class IteratedPreimages:
    """Reduction that finds pre-images of the residuals one after the other, as in the paper.

    Vectors are processed in order of their weights. Figure 1 of the paper has three schemes: a
    vector uses (a) only its own pre-images, (b) also those of the vectors before it, (c) in a
    second pass all of them, which cannot increase an error.

    Parameters
    ----------
    per_vector : int or "auto"
        Pre-images per vector; "auto" divides ``size`` among the vectors.
    reuse : bool
        False is scheme (a).
    second_pass : bool
        False is scheme (b).
    tol : float
        Relative error below which a vector needs no further pre-images.
    most : int
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
    reuse: bool = True
    second_pass: bool = True
    tol: float = 1e-6
    most: int = 4000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.per_vector != "auto":
            check_number("per_vector", self.per_vector, "must be 'auto' or a positive integer",
                         "pass 'auto'", low=1, integer=True)  # fmt: skip
        check_number("tol", self.tol, "must be a number from 0 to 1", "pass 1e-4", low=0, high=1)

    def supports(self, kernel: Kernel) -> bool:
        """Return True for radial and differentiable kernels."""
        return isinstance(kernel, RadialKernel | DifferentiableKernel)

    def reduce(
        self,
        subspace: Subspace,
        size: int,
        weights: Floats | None = None,
        *,
        values: Floats | None = None,
    ) -> ReducedSet:
        """Find at most ``size`` pre-images."""
        if not self.supports(subspace.kernel):
            raise invalid_parameter(
                "kernel",
                subspace.kernel,
                "is neither radial nor differentiable and has no pre-images",
                "choose SelectedRows",
            )
        problem = ReductionProblem.create(subspace, size, weights, values, self.most, self.seed)
        if problem.fits:
            return problem.identity()
        order = np.argsort(-problem.weights, kind="stable")
        rows, first = (self._shared if self.reuse else self._separate)(problem, order)
        if not len(rows):
            # All vectors are zero, but the basis must not be empty.
            rows, first = problem.candidates.basis[:1], np.zeros((len(order), 1))
        finish = least_squares_on if self.second_pass else make_reduced_set
        return finish(*problem.on_rows(rows), first)

    def _shared(self, problem: ReductionProblem, order: Indices) -> tuple[Floats, Floats]:
        """Return rows and coefficients of scheme (b): one basis for all vectors."""
        basis = GrowingBasis(problem.candidates, problem.size)
        coefficients = np.zeros((len(order), problem.size))
        for position, i in enumerate(order):
            self._add_preimages(basis, i, len(order) - position)
            coefficients[i, : basis.count] = basis.coefficients()[i]
        return basis.rows, coefficients[:, : basis.count]

    def _separate(self, problem: ReductionProblem, order: Indices) -> tuple[Floats, Floats]:
        """Return rows and coefficients of scheme (a): one basis per vector."""
        rows, parts, capacity = [], [], problem.size
        for position, i in enumerate(order):
            basis = GrowingBasis(_single_vector(problem.candidates, i), capacity)
            self._add_preimages(basis, 0, len(order) - position)
            capacity -= basis.count
            rows.append(basis.rows)
            parts.append(basis.coefficients())
        coefficients = np.empty((len(order), problem.size - capacity))
        coefficients[order] = linalg.block_diag(*parts)
        return np.vstack(rows), coefficients

    def _add_preimages(self, basis: GrowingBasis, i: int, vectors_left: int) -> None:
        """Add pre-images of one vector: ``per_vector``, or an equal part of the free rows."""
        number = self.per_vector
        if number == "auto":
            number = (basis.size - basis.count) // vectors_left
        tolerance = self.tol**2 * basis.vectors.gram[i, i]
        for _ in range(number):
            if basis.count == basis.size or basis.squared_errors[i] <= tolerance:
                break
            if not basis.add(_best_preimage(basis.residual(i), len(basis.vectors.basis))):
                break


def _single_vector(vectors: Subspace, i: int) -> Subspace:
    one = slice(i, i + 1)
    products, gram = vectors.products[one], vectors.gram[one, one]
    return Subspace(vectors.kernel, vectors.basis, vectors.coefficients[one], products, gram)


class GrowingBasis:
    """Rows z_k added one by one, and least-squares approximations of vectors u_i on them.

    With LLᵀ the Gram matrix of the rows, the coefficients C solve CL = Y, YLᵀ = ⟨u_i, Φ(z_k)⟩. Each
    new row reduces the squared error by the square of its entry of Y, and needs no new
    factorization.
    """

    def __init__(self, vectors: Subspace, size: int) -> None:
        number, n_basis = vectors.coefficients.shape
        self.vectors = vectors
        self.size = size
        self.count = 0
        self._rows = np.empty((size, vectors.basis.shape[1]))
        self._with_basis = np.empty((size, n_basis))
        self._values = np.empty((size, size))
        self._inner_products = np.empty((number, size))
        self._factor = np.zeros((size, size))
        self._orthogonal = np.empty((number, size))
        self.squared_errors = np.diagonal(vectors.gram).copy()

    @property
    def rows(self) -> Floats:
        """Rows z_k added so far."""
        return self._rows[: self.count]

    def add(self, row: Floats) -> bool:
        """Add a row, unless it is linearly dependent on the others; return True if it was added."""
        n, kernel = self.count, self.vectors.kernel
        with_rows = cross_gram(kernel, row[None], self.rows)[0]
        diagonal = float(kernel.diagonal(row[None])[0])
        projection = with_rows
        if n:
            factor = self._factor[:n, :n]
            projection = linalg.solve_triangular(factor, with_rows, lower=True, check_finite=False)
        residual = diagonal - projection @ projection
        if not residual > _DEPENDENT * abs(diagonal):
            return False
        self._factor[n, :n], self._factor[n, n] = projection, np.sqrt(residual)
        self._values[n, :n] = self._values[:n, n] = with_rows
        self._values[n, n] = diagonal
        self._rows[n] = row
        self._with_basis[n] = cross_gram(kernel, row[None], self.vectors.basis)[0]
        self._inner_products[:, n] = self.vectors.coefficients @ self._with_basis[n]
        column = self._inner_products[:, n] - self._orthogonal[:, :n] @ projection
        column = column / np.sqrt(residual)
        self._orthogonal[:, n] = column
        self.squared_errors -= column**2
        self.count = n + 1
        return True

    def coefficients(self) -> Floats:
        """Return C for all vectors."""
        n = self.count
        if not n:
            return np.zeros((len(self._inner_products), 0))
        return linalg.solve_triangular(
            self._factor[:n, :n], self._orthogonal[:, :n].T, lower=True, trans=1, check_finite=False
        ).T

    def residual(self, i: int) -> Subspace:
        """Return u_i − Σ_k C_ik Φ(z_k), expanded on the basis and the rows."""
        n, vectors, one = self.count, self.vectors, slice(i, i + 1)
        C = self.coefficients()[one]
        on_basis = vectors.products[one] - C @ self._with_basis[:n]
        on_rows = self._inner_products[one, :n] - C @ self._values[:n, :n]
        coefficients = np.hstack([vectors.coefficients[one], -C])
        products = np.hstack([on_basis, on_rows])
        basis = np.vstack([vectors.basis, self.rows])
        gram = products @ coefficients.T
        return Subspace(vectors.kernel, basis, coefficients, products, gram)


def _best_preimage(vector: Subspace, n_starts: int) -> Floats:
    """Find a row z with large ⟨u, Φ(z)⟩² / k(z, z), the part of ‖u‖² explained by βΦ(z).

    z is a pre-image of u/β. The search starts from two of the first ``n_starts`` basis rows: the
    best with positive β and the best with negative β.
    """
    products, diagonal = vector.products[0, :n_starts], vector.diagonal[:n_starts]
    cosines = products / np.sqrt(np.where(diagonal > 0, diagonal, 1))
    starts = np.array([cosines.argmax(), cosines.argmin()])
    starts = starts[(products[starts] != 0) & (diagonal[starts] > 0)]
    if not len(starts):
        return vector.basis[0]
    rows, products, lengths = vector.basis[starts], products[starts], diagonal[starts]
    radial = isinstance(vector.kernel, RadialKernel)
    method: PreimageMethod = _FIXED_POINT if radial else _GRADIENT
    for _ in range(1 if radial else _SCALINGS):
        scales = products / lengths
        if np.abs(scales).min() < np.finfo(scales.dtype).tiny:
            # The vector is too short for its direction to be computed.
            break
        coordinates = 1 / scales[:, None]
        found = method.find(vector, coordinates, rows)
        rows, lengths = found.rows, vector.kernel.diagonal(found.rows)
        # ⟨u, Φ(z)⟩ from ‖u/β − Φ(z)‖².
        twice = vector.squared_norms(coordinates) + lengths - found.squared_distances
        products = scales * twice / 2
    explained = np.divide(products**2, lengths, out=np.zeros_like(products), where=lengths > 0)
    return rows[explained.argmax()]
