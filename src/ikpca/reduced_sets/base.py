"""Base class of reductions, and least-squares approximations of vectors on fewer rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ikpca.errors import Number, invalid_parameter
from ikpca.gram import cross_gram
from ikpca.kernels import DifferentiableKernel, Floats, Indices, Kernel
from ikpca.solvers.landmarks import uniform_landmarks
from ikpca.subspace import Subspace

#: Rule of an option that all reductions have.
CANDIDATES_RULE = Number("must be a positive integer", "pass 4000", low=1, integer=True)
#: Ridge on a Gram matrix of unit diagonal, which bounds the coefficients, and the steps of
#: iterative refinement that remove most of its effect.
_RIDGE, _REFINEMENTS = 1e-12, 2
#: Rounding error of ‖µ‖², relative to k(x, x), in units of machine epsilon.
_MEAN_ROUNDING = 10
#: Eigenvalues of a Gram matrix below this fraction of the largest are rounding noise.
_DROP = 1e-12


class ReducedSet(NamedTuple):
    """Approximations u'_i of vectors u_i on fewer rows.

    Parameters
    ----------
    subspace : Subspace
        The vectors u'_i, with known inner products. Rows have the type of the original rows; all
        else is in double precision.
    squared_errors : ndarray of shape (q,)
        ‖u_i − u'_i‖², as accurate as ‖u_i‖²: in the precision of the original rows if only a sample
        of them are candidates, in double precision otherwise.
    squared_lengths : ndarray of shape (q,)
        ‖u_i‖².
    inner_products : ndarray of shape (q, s)
        ⟨u_i, Φ(z_k)⟩ of the original vectors and the new rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Subspace
    >>> from ikpca.reduced_sets import SelectedRows
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> reduced = SelectedRows().reduce(Subspace(Linear(), X, np.ones((1, 3))), 2)
    >>> reduced.subspace.basis.shape
    (2, 2)
    """

    subspace: Subspace
    squared_errors: Floats
    squared_lengths: Floats
    inner_products: Floats

    @property
    def relative_errors(self) -> Floats:
        """‖u_i − u'_i‖ / ‖u_i‖; zero for a zero vector, and for a mean of rounding errors."""
        ratios = np.zeros_like(self.squared_errors)
        nonzero = self.squared_lengths > 0
        rounding = _MEAN_ROUNDING * float(np.finfo(self.subspace.basis.dtype).eps)
        nonzero[-1] &= self.squared_lengths[-1] > rounding * np.abs(self.subspace.diagonal).mean()
        np.divide(self.squared_errors, self.squared_lengths, out=ratios, where=nonzero)
        return np.sqrt(ratios)

    def orthonormalize(self, singular_values: Floats) -> tuple[Subspace, Floats]:
        """Return orthonormal components and their singular values (Chin 2006, eqs. 22 to 25).

        With M_o the Gram matrix of the reduced components α', π = α' M_o^{-1/2} are the nearest
        orthonormal ones; eqs. 23 and 24 as printed give α' instead. S = πᵀA'ᵀAαΣ (eq. 25)
        represents the original covariance in the basis π, and its singular vectors rotate π to the
        components; all of S is used, not only its diagonal. Components keep the signs of the
        original ones. The mean, which is last, does not change. There are fewer components than
        before if the reduced ones are linearly dependent.
        """
        reduced = self.subspace
        T = _inverse_root(reduced.gram[:-1, :-1])
        S = (T @ reduced.coefficients[:-1] @ self.inner_products[:-1].T) * singular_values
        U, values, _ = linalg.svd(S, full_matrices=False)
        T = (U * np.where(np.einsum("ki,ki->i", U, S[:, : len(S)]) < 0, -1, 1)).T @ T
        full = linalg.block_diag(T, np.ones((1, 1)))
        gram = full @ reduced.gram @ full.T
        coefficients, products = full @ reduced.coefficients, full @ reduced.products
        gram = (gram + gram.T) / 2
        return Subspace(reduced.kernel, reduced.basis, coefficients, products, gram), values


class Reduction(ABC):
    """Method that approximates vectors in feature space on fewer rows.

    Examples
    --------
    >>> from ikpca.kernels import Cosine
    >>> from ikpca.reduced_sets import SelectedRows, Reduction
    >>> isinstance(SelectedRows(), Reduction)
    True
    >>> SelectedRows().supports(Cosine())
    True
    """

    #: Maximum number of candidate rows, and seed of their sample.
    max_candidates: int = 4000
    seed: int = 0

    def supports(self, kernel: Kernel) -> bool:
        """Return True if the reduction works with the kernel; by default, one with a gradient."""
        return isinstance(kernel, DifferentiableKernel)

    def reduce(self, subspace: Subspace, size: int, weights: Floats | None = None) -> ReducedSet:
        """Approximate the vectors of a subspace on fewer rows.

        Parameters
        ----------
        subspace : Subspace
            The vectors.
        size : int
            Maximum number of rows; at least the number of vectors.
        weights : ndarray of shape (q,), optional
            Weights of the errors, such as the singular values; equal by default.

        Returns
        -------
        ReducedSet
        """
        if not self.supports(subspace.kernel):
            raise invalid_parameter(
                "kernel", subspace.kernel, "has no gradient for pre-images", "choose SelectedRows"
            )
        n_vectors = len(subspace.coefficients)
        rule = f"{n_vectors} vectors need at least as many rows"
        remedy = f"pass an integer of {n_vectors} or more"
        Number(rule, remedy, low=n_vectors, integer=True).check("size", size)
        weights = _check_weights(n_vectors, weights)
        max_candidates = max(self.max_candidates, 2 * int(size))
        problem = ReductionProblem.of(subspace, int(size), weights, max_candidates, self.seed)
        vectors = problem.vectors
        if vectors.basis.shape[0] > size:
            return self._reduce(problem)
        rows = vectors.basis.astype(subspace.basis.dtype, copy=False)
        exact = make_reduced_set(
            vectors, rows, problem.values, vectors.products, vectors.coefficients
        )
        return exact._replace(squared_errors=np.zeros(n_vectors))

    @abstractmethod
    def _reduce(self, problem: ReductionProblem) -> ReducedSet:
        """Approximate the vectors of a problem with more rows than allowed."""


@dataclass(frozen=True, eq=False)
class ReductionProblem:
    """Vectors to approximate on ``size`` rows with weighted errors, and candidate rows."""

    #: The vectors; in double precision and without duplicate rows, if all rows are candidates.
    vectors: Subspace
    #: The vectors, or their approximations, on the candidate rows.
    candidates: Subspace
    #: Kernel values of the candidates.
    values: Floats
    size: int
    weights: Floats
    #: Type of the rows to return.
    dtype: np.dtype[np.generic]

    @classmethod
    def of(
        cls, vectors: Subspace, size: int, weights: Floats, max_candidates: int, seed: int
    ) -> ReductionProblem:
        """Use all rows as candidates, or a sample of them; equal rows are merged."""
        kernel, n_rows, dtype = vectors.kernel, vectors.basis.shape[0], vectors.basis.dtype
        chosen: Indices = np.arange(n_rows)
        if n_rows > max_candidates:
            chosen = uniform_landmarks(n_rows, max_candidates, seed)
        basis = vectors.basis[chosen].astype(np.float64)
        # Adding zero makes zeros of both signs equal.
        _, first, groups = np.unique(basis + 0.0, axis=0, return_index=True, return_inverse=True)
        if len(first) == len(basis):
            first = groups = np.arange(len(basis))
        basis = basis[first]
        values = cross_gram(kernel, basis, basis)
        if n_rows > max_candidates:
            products = vectors.products[:, chosen[first]].astype(np.float64)
            coefficients = _least_squares(values, products)
            candidates = make_reduced_set(vectors, basis, values, products, coefficients).subspace
        else:
            coefficients = np.zeros((len(vectors.coefficients), len(first)))
            np.add.at(coefficients.T, groups.ravel(), vectors.coefficients.T)
            products = coefficients @ values
            vectors = candidates = Subspace(
                kernel, basis, coefficients, products, products @ coefficients.T
            )
        if not np.isfinite(products).all():
            raise invalid_parameter(
                "kernel",
                kernel,
                "is not finite on these rows",
                "scale the rows or choose another kernel",
            )
        return cls(vectors, candidates, values, size, weights, dtype)

    def on_rows(self, rows: Floats, coefficients: Floats | None = None) -> ReducedSet:
        """Return the vectors on new rows, by least squares unless coefficients are given."""
        rows = rows.astype(self.dtype, copy=False)
        Z = rows.astype(np.float64)
        values, products = cross_gram(self.vectors.kernel, Z, Z), self.vectors.products_with(Z)
        if coefficients is None:
            coefficients = _least_squares(values, products)
        return make_reduced_set(self.vectors, rows, values, products, coefficients)


def make_reduced_set(
    vectors: Subspace, rows: Floats, values: Floats, inner_products: Floats, coefficients: Floats
) -> ReducedSet:
    """Return the reduced set with the given rows and coefficients."""
    lengths = np.maximum(np.diagonal(vectors.gram).astype(np.float64), 0)
    products = coefficients @ values
    gram = products @ coefficients.T
    reduced = Subspace(vectors.kernel, rows, coefficients, products, (gram + gram.T) / 2)
    # Rounding, or an indefinite kernel, could make an error negative.
    mixed = np.einsum("ik,ik->i", coefficients, inner_products)
    errors = np.maximum(lengths - 2 * mixed + np.diagonal(gram), 0)
    return ReducedSet(reduced, errors, lengths, inner_products)


def _least_squares(gram: Floats, inner_products: Floats) -> Floats:
    """Return C of shape (q, s) that minimizes ‖u_i − Σ_k C_ik Φ(z_k)‖ for every vector.

    The Gram matrix k(z_k, z_l) may be singular or, for some kernels, indefinite.
    """
    scales = unit_diagonal(gram)
    scaled = gram * scales * scales[:, None]
    targets = inner_products * scales
    ridged = scaled.copy()
    ridged.flat[:: len(ridged) + 1] += _RIDGE * len(ridged)
    try:
        factor = linalg.cho_factor(ridged, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(scaled, check_finite=False)
        positive = values > _RIDGE * len(scaled) * max(values[-1], 0)
        kept = vectors[:, positive]
        return ((targets @ kept) / values[positive]) @ kept.T * scales
    solution: Floats = linalg.cho_solve(factor, targets.T, check_finite=False).T
    for _ in range(_REFINEMENTS):
        residuals = targets - solution @ scaled
        solution = solution + linalg.cho_solve(factor, residuals.T, check_finite=False).T
    return solution * scales


def unit_diagonal(gram: Floats) -> Floats:
    """Return factors that scale k(z, z) to one; 1 for rows with k(z, z) = 0."""
    diagonal = np.sqrt(np.abs(np.diagonal(gram)))
    return 1 / np.where(diagonal > 0, diagonal, 1)


def _inverse_root(gram: Floats) -> Floats:
    """Return M^{-1/2} on the eigenvectors of M with nonzero eigenvalues."""
    values, vectors = linalg.eigh(gram)
    positive = values > _DROP * max(values[-1], 0)
    root = (vectors[:, positive] / np.sqrt(values[positive])).T
    return vectors @ root if positive.all() else root


def _check_weights(n_vectors: int, weights: Floats | None) -> Floats:
    """Return one non-negative weight per vector; equal weights by default."""
    if weights is None:
        return np.ones(n_vectors)
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n_vectors,) or not (np.isfinite(values).all() and (values >= 0).all()):
        raise invalid_parameter(
            "weights", weights, f"must be {n_vectors} non-negative numbers", "pass one per vector"
        )
    return values
