"""Reduced-set protocol, reduction problem, and least-squares coefficients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import linalg, sparse

from ikpca.errors import invalid_parameter
from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Indices, Kernel, Rows
from ikpca.solvers import uniform_landmarks
from ikpca.subspace import Subspace

#: Ridge on a Gram matrix of unit diagonal, which bounds the coefficients, and the steps of
#: iterative refinement that remove most of its effect.
_RIDGE, _REFINEMENTS = 1e-12, 2


@dataclass(frozen=True, eq=False)
class ReducedSet:
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
        """‖u_i − u'_i‖ / ‖u_i‖; zero for a zero vector."""
        ratios = np.zeros_like(self.squared_errors)
        nonzero = self.squared_lengths > 0
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
            k(x_i, x_j) of the basis in double precision, if known.
        """


@dataclass(frozen=True, eq=False)
class ReductionProblem:
    """Vectors to approximate, and candidate rows.

    Parameters
    ----------
    subspace : Subspace
        The vectors on all of their rows; without duplicate rows and in double precision if all rows
        are candidates.
    candidates : Subspace
        The vectors, or their approximations, on the candidate rows.
    values : ndarray of shape (c, c)
        Kernel values of the candidates.
    inner_products : ndarray of shape (q, c)
        Inner products of the vectors with the images of the candidates.
    dtype : dtype
        Type of the rows to return.
    """

    subspace: Subspace
    candidates: Subspace
    values: Floats
    inner_products: Floats
    dtype: np.dtype[Any]

    @classmethod
    def from_subspace(
        cls, subspace: Subspace, values: Floats | None, limit: int, seed: int = 0
    ) -> ReductionProblem:
        """Use all rows as candidates, or a sample of ``limit`` rows."""
        if subspace.basis.shape[0] > limit:
            return cls._from_sample(subspace, values, limit, seed)
        merged, values = merge_duplicates(in_double(subspace), values)
        kernel, basis, coefficients = merged.kernel, merged.basis, merged.coefficients
        if values is None:
            values = cross_gram(kernel, basis, basis)
        products = _check_finite(merged, coefficients @ values)
        known = Subspace(kernel, basis, coefficients, products, products @ coefficients.T)
        return cls(known, known, values, products, subspace.basis.dtype)

    @classmethod
    def _from_sample(
        cls, subspace: Subspace, values: Floats | None, limit: int, seed: int
    ) -> ReductionProblem:
        """Use a sample of the rows as candidates, without copying all rows."""
        chosen = uniform_landmarks(subspace.basis.shape[0], limit, seed)
        chosen = chosen[first_occurrences(subspace.basis[chosen])]
        rows = subspace.basis[chosen].astype(np.float64)
        if values is None:
            values = cross_gram(subspace.kernel, rows, rows)
        else:
            values = values[np.ix_(chosen, chosen)]
        products = _check_finite(subspace, subspace.products[:, chosen].astype(np.float64))
        approximation = least_squares_on(subspace, rows, values, products)
        return cls(subspace, approximation.subspace, values, products, subspace.basis.dtype)

    def identity(self) -> ReducedSet:
        """Return the vectors on all of their rows, without error."""
        vectors = self.subspace
        exact = make_reduced_set(
            vectors,
            self.to_dtype(vectors.basis),
            self.values,
            self.inner_products,
            vectors.coefficients,
        )
        return replace(exact, squared_errors=np.zeros_like(exact.squared_errors))

    def restrict(self, indices: Indices) -> ReducedSet:
        """Return the least-squares approximation on some of the candidates."""
        return least_squares_on(
            self.subspace,
            self.to_dtype(self.candidates.basis[indices]),
            self.values[np.ix_(indices, indices)],
            self.inner_products[:, indices],
        )

    def to_dtype(self, rows: Rows) -> Rows:
        """Convert rows to the type of the original rows."""
        return rows.astype(self.dtype, copy=False)


def _check_finite(vectors: Subspace, products: Floats) -> Floats:
    if not np.isfinite(products).all():
        raise invalid_parameter(
            "kernel",
            vectors.kernel,
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
    solution = least_squares(values, inner_products)
    found = make_reduced_set(vectors, rows, values, inner_products, solution)
    if previous is None:
        return found
    first = make_reduced_set(vectors, rows, values, inner_products, previous)
    better = first.squared_errors < found.squared_errors
    if not better.any():
        return found
    mixed = np.where(better[:, None], previous, found.subspace.coefficients)
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


def least_squares(gram: Floats, inner_products: Floats) -> Floats:
    """Return C of shape (q, s) that minimizes ‖u_i − Σ_k C_ik Φ(z_k)‖ for every vector.

    Parameters
    ----------
    gram : ndarray of shape (s, s)
        k(z_k, z_l); it may be singular or, for some kernels, indefinite.
    inner_products : ndarray of shape (q, s)
        ⟨u_i, Φ(z_k)⟩.
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
    found: Floats = linalg.cho_solve(factor, targets.T, check_finite=False).T
    for _ in range(_REFINEMENTS):
        residuals = targets - found @ scaled
        found = found + linalg.cho_solve(factor, residuals.T, check_finite=False).T
    return found * scales


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


def in_double(subspace: Subspace) -> Subspace:
    """Convert to double precision; known products in single precision are discarded."""
    if subspace.basis.dtype == subspace.coefficients.dtype == np.float64:
        return subspace
    return Subspace(
        subspace.kernel,
        subspace.basis.astype(np.float64),
        subspace.coefficients.astype(np.float64),
    )


def first_occurrences(rows: Rows) -> Indices:
    """Return the indices of rows that do not occur earlier."""
    return _group_duplicates(rows)[0]


def merge_duplicates(subspace: Subspace, values: Floats | None) -> tuple[Subspace, Floats | None]:
    """Merge duplicate rows and add their coefficients; select known kernel values likewise."""
    first, groups = _group_duplicates(subspace.basis)
    if len(first) == subspace.basis.shape[0]:
        return subspace, values
    sums = np.zeros((len(subspace.coefficients), len(first)))
    np.add.at(sums.T, groups, subspace.coefficients.T)
    products = subspace.known_products
    merged = replace(
        subspace,
        basis=subspace.basis[first],
        coefficients=sums,
        known_products=None if products is None else products[:, first],
    )
    return merged, None if values is None else values[np.ix_(first, first)]


def _group_duplicates(rows: Rows) -> tuple[Indices, Indices]:
    """Return the first index of each group of equal rows, and the group of every row."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    groups = np.empty(rows.shape[0], dtype=np.intp)
    for j, key in enumerate(_keys(rows)):
        group = seen.setdefault(key, len(seen))
        if group == len(first):
            first.append(j)
        groups[j] = group
    return np.array(first, dtype=np.intp), groups


def _keys(rows: Rows) -> list[bytes]:
    if sparse.issparse(rows):
        csr = sparse.csr_array(rows, copy=True)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        ends = zip(csr.indptr[:-1], csr.indptr[1:], strict=True)
        return [csr.indices[i:j].tobytes() + csr.data[i:j].tobytes() for i, j in ends]
    # Adding zero makes zeros of both signs equal.
    return [row.tobytes() for row in np.ascontiguousarray(rows) + 0.0]


def check_row_count(name: str, value: Any, low: int) -> int:
    """Raise an error unless the value is an integer of at least ``low``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < low:
        raise invalid_parameter(
            name, value, f"must be an integer of at least {low}", f"pass {max(low, 5)}"
        )
    return int(value)


def check_tol(tol: Any) -> None:
    """Raise an error unless the tolerance is a number from 0 to below 1."""
    number = isinstance(tol, Real) and not isinstance(tol, bool | np.bool_)
    if not number or not 0 <= float(tol) < 1:
        raise invalid_parameter("tol", tol, "must be a number from 0 to below 1", "pass 1e-4")


def check_size(subspace: Subspace, size: Any) -> int:
    """Raise an error for a size smaller than the number of vectors."""
    number = len(subspace.coefficients)
    integer = isinstance(size, Integral) and not isinstance(size, bool | np.bool_)
    if not integer or size < number:
        raise invalid_parameter(
            "size",
            size,
            f"{number} vectors need at least as many rows",
            f"pass an integer of {number} or more",
        )
    return int(size)


def check_weights(subspace: Subspace, weights: Floats | None) -> Floats:
    """Return one non-negative weight per vector; equal weights by default."""
    number = len(subspace.coefficients)
    if weights is None:
        return np.ones(number)
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (number,) or not (np.isfinite(found).all() and (found >= 0).all()):
        raise invalid_parameter(
            "weights",
            weights,
            f"must be {number} non-negative numbers",
            "pass one per vector",
        )
    return found
