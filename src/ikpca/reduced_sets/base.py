"""Reduced-set protocol, the reduction problem and its least-squares coefficients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import linalg, sparse

from ikpca.errors import invalid_parameter
from ikpca.gram import cross_gram, tile_slices
from ikpca.kernels import Floats, Indices, Kernel, Rows
from ikpca.solvers import uniform_landmarks
from ikpca.subspace import Expansion


def check_row_count(name: str, value: Any, low: int) -> int:
    """Refuse what is no integer from ``low`` up."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < low:
        raise invalid_parameter(
            name, value, f"must be an integer of at least {low}", f"pass {max(low, 5)}"
        )
    return int(value)


def check_tol(tol: Any) -> None:
    """Refuse a relative error that is none."""
    number = isinstance(tol, Real) and not isinstance(tol, bool | np.bool_)
    if not number or not 0 <= float(tol) < 1:
        raise invalid_parameter("tol", tol, "must be a number from 0 to below 1", "pass 1e-4")


def check_size(expansion: Expansion, size: Any) -> int:
    """Refuse a size that independent vectors have no room on."""
    number = len(expansion.coefficients)
    whole = isinstance(size, Integral) and not isinstance(size, bool | np.bool_)
    if not whole or size < number:
        raise invalid_parameter(
            "size",
            size,
            f"{number} vectors need at least as many rows",
            f"pass an integer of {number} or more",
        )
    return int(size)


def check_weights(expansion: Expansion, weights: Floats | None) -> Floats:
    """One weight per vector, none of them negative; alike where nothing is said."""
    number = len(expansion.coefficients)
    if weights is None:
        return np.ones(number)
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (number,) or not (np.isfinite(found).all() and (found >= 0).all()):
        raise invalid_parameter(
            "weights",
            weights,
            f"must be {number} numbers that are not negative",
            "pass one for every vector",
        )
    return found


#: Ridge on a gram of unit diagonal, so that coefficients stay small enough to compute with, and
#: the steps that then take out most of what the ridge costs.
_RIDGE, _REFINEMENTS = 1e-12, 2


def least_squares(gram: Floats, across: Floats) -> Floats:
    """C of shape (q, s) that minimises ‖u_i − Σ_k C_ik Φ(z_k)‖ for every vector.

    Parameters
    ----------
    gram : ndarray of shape (s, s)
        k(z_k, z_l); it may be singular, and for a kernel that is no inner product indefinite.
    across : ndarray of shape (q, s)
        ⟨u_i, Φ(z_k)⟩.
    """
    scales = unit_diagonal(gram)
    scaled = gram if (scales == 1).all() else gram * scales * scales[:, None]
    targets = across * scales
    ridged = scaled.copy()
    ridged.flat[:: len(ridged) + 1] += _RIDGE * len(ridged)
    try:
        factor = linalg.cho_factor(ridged, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        return _on_positive_directions(scaled, targets) * scales
    found: Floats = linalg.cho_solve(factor, targets.T, check_finite=False).T
    for _ in range(_REFINEMENTS):
        rest = targets - found @ scaled
        found = found + linalg.cho_solve(factor, rest.T, check_finite=False).T
    return found * scales


def unit_diagonal(gram: Floats) -> Floats:
    """Factors that bring k(z, z) to one, and leave rows without an image as they are."""
    diagonal = np.sqrt(np.abs(np.diagonal(gram)))
    return 1 / np.where(diagonal > 0, diagonal, 1)


def _on_positive_directions(gram: Floats, targets: Floats) -> Floats:
    """Only where the gram is that of vectors with lengths."""
    values, vectors = linalg.eigh(gram, check_finite=False)
    there = values > _RIDGE * len(gram) * max(values[-1], 0)
    kept = vectors[:, there]
    return ((targets @ kept) / values[there]) @ kept.T


def in_double(expansion: Expansion) -> Expansion:
    """The same vectors; what is known of them in single precision is not."""
    if expansion.basis.dtype == expansion.coefficients.dtype == np.float64:
        return expansion
    return Expansion(
        expansion.kernel,
        expansion.basis.astype(np.float64),
        expansion.coefficients.astype(np.float64),
    )


def first_occurrences(rows: Rows) -> Indices:
    """Indices of rows that are not there before."""
    return _copies(rows)[0]


def merge_duplicates(
    expansion: Expansion, values: Floats | None
) -> tuple[Expansion, Floats | None]:
    """Every row once, with the coefficients of its copies added; known kernel values likewise."""
    first, groups = _copies(expansion.basis)
    if len(first) == expansion.basis.shape[0]:
        return expansion, values
    sums = np.zeros((len(expansion.coefficients), len(first)))
    np.add.at(sums.T, groups, expansion.coefficients.T)
    products = expansion.known_products
    apart = Expansion(
        expansion.kernel,
        expansion.basis[first],
        sums,
        None if products is None else products[:, first],
        expansion.known_gram,
    )
    return apart, None if values is None else values[np.ix_(first, first)]


def _copies(rows: Rows) -> tuple[Indices, Indices]:
    """Index of the first of each kind of rows, and for every row which kind it is."""
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
        tidy = sparse.csr_array(rows, copy=True)
        tidy.sum_duplicates()
        tidy.eliminate_zeros()
        ends = zip(tidy.indptr[:-1], tidy.indptr[1:], strict=True)
        return [tidy.indices[i:j].tobytes() + tidy.data[i:j].tobytes() for i, j in ends]
    # Adding zero makes zeros of both signs alike.
    return [row.tobytes() for row in np.ascontiguousarray(rows) + 0.0]


@dataclass(frozen=True, eq=False)
class ReducedSet:
    """Vectors u'_i near u_i, on fewer rows.

    Parameters
    ----------
    expansion : Expansion
        The vectors u'_i, with their inner products known. Rows are of the type that the original
        ones have; all else is in double precision.
    squared_errors : ndarray of shape (q,)
        ‖u_i − u'_i‖², as exact as ‖u_i‖² is known: in the precision of the original rows where they
        are too many to be compared with each other, in double precision otherwise.
    squared_lengths : ndarray of shape (q,)
        ‖u_i‖².
    across : ndarray of shape (q, s)
        ⟨u_i, Φ(z_k)⟩: the original vectors and the new rows.
    values : ndarray of shape (s, s)
        k(z_k, z_l).

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Linear
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.reduced_sets import SelectedRows
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> reduced = ChosenSamples().reduce(Expansion(Linear(), X, np.ones((1, 3))), 2)
    >>> reduced.expansion.basis.shape
    (2, 2)
    """

    expansion: Expansion
    squared_errors: Floats
    squared_lengths: Floats
    across: Floats
    values: Floats

    @property
    def relative_errors(self) -> Floats:
        """‖u_i − u'_i‖ / ‖u_i‖, and zero for a vector that is zero."""
        shares = np.zeros_like(self.squared_errors)
        there = self.squared_lengths > 0
        np.divide(self.squared_errors, self.squared_lengths, out=shares, where=there)
        return np.sqrt(shares)


@runtime_checkable
class Reduction(Protocol):
    """Puts vectors of feature space on fewer rows.

    Examples
    --------
    >>> from ikpca.kernels import Cosine
    >>> from ikpca.reduced_sets import SelectedRows, Reduction
    >>> isinstance(ChosenSamples(), Reduction)
    True
    >>> ChosenSamples().serves(Cosine())
    True
    """

    def serves(self, kernel: Kernel) -> bool:
        """Whether the kernel has what the reduction needs."""

    def reduce(
        self,
        expansion: Expansion,
        size: int,
        weights: Floats | None = None,
        *,
        values: Floats | None = None,
    ) -> ReducedSet:
        """Find vectors near those of the expansion.

        Parameters
        ----------
        expansion : Expansion
            The vectors.
        size : int
            Rows that the new expansion has at most; not fewer than the vectors.
        weights : ndarray of shape (q,), optional
            How much an error of each vector matters, such as the singular values; alike by default.
        values : ndarray of shape (m, m), optional
            k(x_i, x_j) of the basis in double precision, where they are known.
        """


def least_squares_on(
    vectors: Expansion,
    rows: Floats,
    values: Floats,
    across: Floats,
    earlier: Floats | None = None,
) -> ReducedSet:
    """All vectors on the given rows, by least squares.

    ``earlier`` coefficients are kept for the vectors that they are nearer to: rounding in a gram
    that is nearly singular may not turn a second pass into a loss.
    """
    found = with_coefficients(vectors, rows, values, across, least_squares(values, across))
    if earlier is None:
        return found
    first = with_coefficients(vectors, rows, values, across, earlier)
    nearer = first.squared_errors < found.squared_errors
    if not nearer.any():
        return found
    mixed = np.where(nearer[:, None], earlier, found.expansion.coefficients)
    return with_coefficients(vectors, rows, values, across, mixed)


def with_coefficients(
    vectors: Expansion, rows: Floats, values: Floats, across: Floats, coefficients: Floats
) -> ReducedSet:
    """Vectors with given coefficients on given rows, and all that is known about them."""
    lengths = np.maximum(np.diagonal(vectors.gram).astype(np.float64), 0)
    products = coefficients @ values
    gram = products @ coefficients.T
    reduced = Expansion(vectors.kernel, rows, coefficients, products, (gram + gram.T) / 2)
    # Rounding may not make an error negative, nor may a kernel that is no inner product.
    mixed = np.einsum("ik,ik->i", coefficients, across)
    errors = np.maximum(lengths - 2 * mixed + np.diagonal(gram), 0)
    return ReducedSet(reduced, errors, lengths, across, values)


@dataclass(frozen=True, eq=False)
class ReductionProblem:
    """Vectors, and candidates among their rows.

    Parameters
    ----------
    expansion : Expansion
        The vectors on all of their rows; each row once and in double precision, where they all are
        candidates.
    candidates : Expansion
        The same vectors, as near as they come, on the rows to choose from.
    values : ndarray of shape (c, c)
        Kernel values of the candidates.
    across : ndarray of shape (q, c)
        Inner products of the vectors with the candidates' images.
    dtype : dtype
        Of the rows that are wanted.
    """

    expansion: Expansion
    candidates: Expansion
    values: Floats
    across: Floats
    dtype: np.dtype[Any]

    @classmethod
    def of(
        cls, expansion: Expansion, values: Floats | None, limit: int, seed: int = 0
    ) -> ReductionProblem:
        """Take all rows as candidates, or ``limit`` of them where there are more."""
        if expansion.basis.shape[0] > limit:
            return cls._drawn(expansion, values, limit, seed)
        apart, values = merge_duplicates(in_double(expansion), values)
        if values is None:
            values = cross_gram(apart.kernel, apart.basis, apart.basis)
        products = _finite(apart, apart.coefficients @ values)
        whole = Expansion(
            apart.kernel, apart.basis, apart.coefficients, products, products @ apart.coefficients.T
        )
        return cls(whole, whole, values, products, expansion.basis.dtype)

    @classmethod
    def _drawn(
        cls, expansion: Expansion, values: Floats | None, limit: int, seed: int
    ) -> ReductionProblem:
        """Rows are many: no copies are made of them, and what is known of the vectors is taken."""
        chosen = uniform_landmarks(expansion.basis.shape[0], limit, seed)
        chosen = chosen[first_occurrences(expansion.basis[chosen])]
        rows = expansion.basis[chosen].astype(np.float64)
        if values is None:
            values = cross_gram(expansion.kernel, rows, rows)
        else:
            values = values[np.ix_(chosen, chosen)]
        across = _finite(expansion, expansion.products[:, chosen].astype(np.float64))
        near = least_squares_on(expansion, rows, values, across)
        return cls(expansion, near.expansion, values, across, expansion.basis.dtype)

    def as_it_is(self) -> ReducedSet:
        """The vectors on the rows they have: no error."""
        vectors = self.expansion
        exact = with_coefficients(
            vectors, self.in_type(vectors.basis), self.values, self.across, vectors.coefficients
        )
        return replace(exact, squared_errors=np.zeros_like(exact.squared_errors))

    def across_to(self, rows: Floats) -> Floats:
        """⟨u_i, Φ(z_k)⟩ for any rows, with the vectors as they were given."""
        vectors = self.expansion
        parts = [
            vectors.coefficients[:, strip] @ cross_gram(vectors.kernel, vectors.basis[strip], rows)
            for strip in tile_slices(vectors.basis.shape[0])
        ]
        return np.sum(parts, axis=0)

    def in_type(self, rows: Rows) -> Rows:
        """Rows as they are to be returned; those of the basis come back as they were."""
        return rows.astype(self.dtype, copy=False)


def _finite(vectors: Expansion, products: Floats) -> Floats:
    if not np.isfinite(products).all():
        raise invalid_parameter(
            "kernel",
            vectors.kernel,
            "has values on these rows that are not finite",
            "scale the rows, or choose another kernel",
        )
    return products
