"""Reduced-set protocol, reduction problem, and least-squares coefficients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy import linalg

from ikpca.errors import Number, invalid_parameter
from ikpca.gram import cross_gram
from ikpca.kernels import DifferentiableKernel, Floats, Indices, Kernel, Rows
from ikpca.solvers.landmarks import uniform_landmarks
from ikpca.subspace import Subspace

#: Rules of options that several reductions have.
TOL_RULE = Number("must be a number from 0 to 1", "pass 1e-4", low=0, high=1)
CANDIDATES_RULE = Number("must be a positive integer", "pass 4000", low=1, integer=True)
#: Ridge on a Gram matrix of unit diagonal, which bounds the coefficients, and the steps of
#: iterative refinement that remove most of its effect.
_RIDGE, _REFINEMENTS = 1e-12, 2

#: Rounding error of ‖µ‖², relative to k(x, x), in units of machine epsilon.
_MEAN_ROUNDING = 10


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
    values : ndarray of shape (s, s)
        k(z_k, z_l).

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
    values: Floats

    @property
    def relative_errors(self) -> Floats:
        """‖u_i − u'_i‖ / ‖u_i‖; zero for a zero vector, and for a mean of rounding errors."""
        ratios = np.zeros_like(self.squared_errors)
        nonzero = self.squared_lengths > 0
        rounding = _MEAN_ROUNDING * float(np.finfo(self.subspace.basis.dtype).eps)
        nonzero[-1] &= self.squared_lengths[-1] > rounding * np.abs(np.diag(self.values)).mean()
        np.divide(self.squared_errors, self.squared_lengths, out=ratios, where=nonzero)
        return np.sqrt(ratios)


@runtime_checkable
class Reduction(Protocol):
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

    def supports(self, kernel: Kernel) -> bool:
        """Return True if the reduction works with the kernel."""

    def reduce(
        self,
        subspace: Subspace,
        size: int,
        weights: Floats | None = None,
        *,
        values: Floats | None = None,
    ) -> ReducedSet:
        """Approximate the vectors of a subspace on fewer rows.

        Parameters
        ----------
        subspace : Subspace
            The vectors.
        size : int
            Maximum number of rows; at least the number of vectors.
        weights : ndarray of shape (q,), optional
            Weights of the errors, such as the singular values; equal by default.
        values : ndarray of shape (m, m), optional
            k(x_i, x_j) of the basis in double precision; computed by default.
        """


class RowReduction(ABC):
    """Common part of the reductions: validation, and problems that need no reduction."""

    max_candidates: int
    seed: int

    def supports(self, kernel: Kernel) -> bool:
        """Return True for kernels with a gradient."""
        return isinstance(kernel, DifferentiableKernel)

    def reduce(
        self,
        subspace: Subspace,
        size: int,
        weights: Floats | None = None,
        *,
        values: Floats | None = None,
    ) -> ReducedSet:
        """Approximate the vectors of a subspace on at most ``size`` rows."""
        if not self.supports(subspace.kernel):
            raise invalid_parameter(
                "kernel", subspace.kernel, "has no gradient for pre-images", "choose SelectedRows"
            )
        problem = ReductionProblem.create(
            subspace, size, weights, values, self.max_candidates, self.seed
        )
        return problem.identity() if problem.fits else self._reduce(problem)

    @abstractmethod
    def _reduce(self, problem: ReductionProblem) -> ReducedSet:
        """Approximate the vectors of a problem with more rows than allowed."""


@dataclass(frozen=True, eq=False)
class ReductionProblem:
    """Vectors to approximate on ``size`` rows with weighted errors, and candidate rows.

    Without duplicate rows and in double precision, if all rows are candidates.
    """

    subspace: Subspace
    #: The vectors, or their approximations, on the candidate rows.
    candidates: Subspace
    #: Kernel values of the candidates, and inner products of the vectors with their images.
    values: Floats
    inner_products: Floats
    #: Type of the rows to return.
    dtype: np.dtype[np.generic]
    size: int
    weights: Floats

    @classmethod
    def create(
        cls,
        subspace: Subspace,
        size: int,
        weights: Floats | None,
        values: Floats | None,
        max_candidates: int,
        seed: int,
    ) -> ReductionProblem:
        """Use all rows as candidates, or a sample of at least twice the size."""
        n_vectors = len(subspace.coefficients)
        rule = f"{n_vectors} vectors need at least as many rows"
        remedy = f"pass an integer of {n_vectors} or more"
        Number(rule, remedy, low=n_vectors, integer=True).check("size", size)
        weights = _check_weights(n_vectors, weights)
        max_candidates = max(max_candidates, 2 * int(size))
        sampled = subspace.basis.shape[0] > max_candidates
        parts = (
            _sample(subspace, values, max_candidates, seed) if sampled else _merge(subspace, values)
        )
        return cls(*parts, subspace.basis.dtype, int(size), weights)

    @property
    def fits(self) -> bool:
        """True if no reduction is needed."""
        return self.subspace.basis.shape[0] <= self.size

    def identity(self) -> ReducedSet:
        """Return the vectors on all of their rows, without error."""
        vectors, rows = self.subspace, self._to_dtype(self.subspace.basis)
        exact = make_reduced_set(
            vectors, rows, self.values, self.inner_products, vectors.coefficients
        )
        return exact._replace(squared_errors=np.zeros_like(exact.squared_errors))

    def restrict(self, indices: Indices) -> ReducedSet:
        """Return the least-squares approximation on some of the candidates."""
        return least_squares_on(
            self.subspace,
            self._to_dtype(self.candidates.basis[indices]),
            self.values[np.ix_(indices, indices)],
            self.inner_products[:, indices],
        )

    def on_rows(self, rows: Floats) -> tuple[Subspace, Floats, Floats, Floats]:
        """Return the vectors, new rows, their kernel values and inner products."""
        rows = self._to_dtype(rows)
        Z = rows.astype(np.float64)
        values = cross_gram(self.subspace.kernel, Z, Z)
        return self.subspace, rows, values, self.subspace.products_with(Z)

    def _to_dtype(self, rows: Rows) -> Rows:
        return rows.astype(self.dtype, copy=False)


def _merge(subspace: Subspace, values: Floats | None) -> tuple[Subspace, Subspace, Floats, Floats]:
    """Use all rows as candidates; duplicate rows are merged and their coefficients added."""
    kernel, basis = subspace.kernel, subspace.basis.astype(np.float64, copy=False)
    coefficients: Floats = subspace.coefficients.astype(np.float64, copy=False)
    first, groups = _group_duplicates(basis)
    if len(first) < len(groups):
        sums = np.zeros((len(coefficients), len(first)))
        np.add.at(sums.T, groups, coefficients.T)
        basis, coefficients = basis[first], sums
        values = None if values is None else values[np.ix_(first, first)]
    if values is None:
        values = cross_gram(kernel, basis, basis)
    products = _check_finite(kernel, coefficients @ values)
    merged = Subspace(kernel, basis, coefficients, products, products @ coefficients.T)
    return merged, merged, values, products


def _sample(
    subspace: Subspace, values: Floats | None, max_candidates: int, seed: int
) -> tuple[Subspace, Subspace, Floats, Floats]:
    """Use a sample of the rows as candidates, without copying all rows."""
    chosen = uniform_landmarks(subspace.basis.shape[0], max_candidates, seed)
    chosen = chosen[_group_duplicates(subspace.basis[chosen])[0]]
    rows = subspace.basis[chosen].astype(np.float64)
    if values is None:
        values = cross_gram(subspace.kernel, rows, rows)
    else:
        values = values[np.ix_(chosen, chosen)]
    products = _check_finite(subspace.kernel, subspace.products[:, chosen].astype(np.float64))
    approximation = least_squares_on(subspace, rows, values, products)
    return subspace, approximation.subspace, values, products


def _group_duplicates(rows: Floats) -> tuple[Indices, Indices]:
    """Return the first index of each group of equal rows, and the group of every row."""
    numbers: dict[bytes, int] = {}
    # Adding zero makes zeros of both signs equal.
    keys = (row.tobytes() for row in np.ascontiguousarray(rows) + 0.0)
    groups = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)
    return np.unique(groups, return_index=True)[1], groups


def _check_finite(kernel: Kernel, products: Floats) -> Floats:
    if not np.isfinite(products).all():
        raise invalid_parameter(
            "kernel",
            kernel,
            "is not finite on these rows",
            "scale the rows or choose another kernel",
        )
    return products


def least_squares_on(
    vectors: Subspace,
    rows: Floats,
    values: Floats,
    inner_products: Floats,
    previous: Floats | None = None,
) -> ReducedSet:
    """Approximate all vectors on the given rows by least squares.

    ``previous`` coefficients are kept for the vectors for which they have a smaller error: with a
    nearly singular Gram matrix, rounding may make the new ones worse.
    """
    solution = _least_squares(values, inner_products)
    reduced = make_reduced_set(vectors, rows, values, inner_products, solution)
    if previous is None:
        return reduced
    first = make_reduced_set(vectors, rows, values, inner_products, previous)
    better = first.squared_errors < reduced.squared_errors
    if not better.any():
        return reduced
    mixed = np.where(better[:, None], previous, reduced.subspace.coefficients)
    return make_reduced_set(vectors, rows, values, inner_products, mixed)


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
    return ReducedSet(reduced, errors, lengths, inner_products, values)


def _least_squares(gram: Floats, inner_products: Floats) -> Floats:
    """Return C of shape (q, s) that minimizes ‖u_i − Σ_k C_ik Φ(z_k)‖ for every vector.

    The Gram matrix k(z_k, z_l) may be singular or, for some kernels, indefinite.
    """
    scales = unit_diagonal(gram)
    scaled = gram if (scales == 1).all() else gram * scales * scales[:, None]
    targets = inner_products * scales
    ridged = scaled.copy()
    ridged.flat[:: len(ridged) + 1] += _RIDGE * len(ridged)
    try:
        factor = linalg.cho_factor(ridged, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return _on_positive_directions(scaled, targets) * scales
    solution: Floats = linalg.cho_solve(factor, targets.T, check_finite=False).T
    for _ in range(_REFINEMENTS):
        residuals = targets - solution @ scaled
        solution = solution + linalg.cho_solve(factor, residuals.T, check_finite=False).T
    return solution * scales


def unit_diagonal(gram: Floats) -> Floats:
    """Return factors that scale k(z, z) to one; 1 for rows with k(z, z) = 0."""
    diagonal = np.sqrt(np.abs(np.diagonal(gram)))
    return 1 / np.where(diagonal > 0, diagonal, 1)


def _on_positive_directions(gram: Floats, targets: Floats) -> Floats:
    """Solve on the eigenvectors of the Gram matrix with positive eigenvalues."""
    values, vectors = linalg.eigh(gram, check_finite=False)
    positive = values > _RIDGE * len(gram) * max(values[-1], 0)
    kept = vectors[:, positive]
    return ((targets @ kept) / values[positive]) @ kept.T


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
