"""Reduced sets of iterated pre-images (Chin 2006, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import linalg

from ikpca.errors import invalid_parameter
from ikpca.gram import cross_gram
from ikpca.kernels import DifferentiableKernel, Floats, Indices, Kernel, RadialKernel
from ikpca.preimages import FixedPoint, Gradient, PreimageMethod, make_preimage_method
from ikpca.reduced_sets.base import (
    ReducedSet,
    ReductionProblem,
    check_row_count,
    check_size,
    check_tol,
    check_weights,
    least_squares_on,
    with_coefficients,
)
from ikpca.subspace import Expansion

#: Searches where images differ in length: the scale that a vector is sought at depends on the row
#: found, and the row on the scale.
_SCALINGS = 2


def find_peak(method: PreimageMethod, vector: Expansion, n_starts: int) -> Floats:
    """A row z with a large ⟨u, Φ(z)⟩² / k(z, z), the share of ‖u‖² that a multiple βΦ(z) explains.

    The vector is sought from two of the first ``n_starts`` basis rows, the best with positive and
    the best with negative β, as the pre-image of u/β.
    """
    products, own = vector.products[0, :n_starts], vector.diagonal[:n_starts]
    slopes = products / np.sqrt(np.where(own > 0, own, 1))
    begins = np.array([slopes.argmax(), slopes.argmin()])
    begins = begins[(products[begins] != 0) & (own[begins] > 0)]
    if not len(begins):
        return vector.basis[0]
    rows, heights, lengths = vector.basis[begins], products[begins], own[begins]
    for _ in range(1 if isinstance(vector.kernel, RadialKernel) else _SCALINGS):
        scales = heights / lengths
        coordinates = 1 / scales[:, None]
        found = method.find(vector, coordinates, rows)
        rows, lengths = found.rows, vector.kernel.diagonal(found.rows)
        # ⟨u, Φ(z)⟩ from ‖u/β − Φ(z)‖².
        twice = vector.squared_lengths(coordinates) + lengths - found.squared_distances
        heights = scales * twice / 2
    gains = np.divide(heights**2, lengths, out=np.zeros_like(heights), where=lengths > 0)
    return rows[gains.argmax()]


#: A row of which the others leave less than this share (of k(z, z)) has nothing new to say.
_DEPENDENT = 1e-11


class GrowingBasis:
    """Rows z_k, and the best approximations of vectors u_i on them.

    With LLᵀ the gram of the rows, the least-squares coefficients solve CL = Y, YLᵀ = ⟨u_i, Φ(z_k)⟩,
    and each new row takes the square of its entry of Y off the error: nothing is solved twice.

    Parameters
    ----------
    vectors : Expansion
        With inner products in double precision.
    size : int
        Rows there is room for.
    """

    def __init__(self, vectors: Expansion, size: int) -> None:
        number, n_basis = vectors.coefficients.shape
        self.vectors = vectors
        self.size = size
        self.count = 0
        self._rows = np.empty((size, vectors.basis.shape[1]))
        self._with_basis = np.empty((size, n_basis))
        self._values = np.empty((size, size))
        self._across = np.empty((number, size))
        self._factor = np.zeros((size, size))
        self._shares = np.empty((number, size))
        self.squared_errors = np.diagonal(vectors.gram).copy()

    @property
    def rows(self) -> Floats:
        """z_k."""
        return self._rows[: self.count]

    def add(self, row: Floats) -> bool:
        """Take in a row, unless it says nothing that the others do not."""
        n, kernel = self.count, self.vectors.kernel
        with_rows = cross_gram(kernel, row[None], self.rows)[0]
        own = float(kernel.diagonal(row[None])[0])
        reached = with_rows
        if n:
            factor = self._factor[:n, :n]
            reached = linalg.solve_triangular(factor, with_rows, lower=True, check_finite=False)
        rest = own - reached @ reached
        if not rest > _DEPENDENT * abs(own):
            return False
        self._factor[n, :n], self._factor[n, n] = reached, np.sqrt(rest)
        self._values[n, :n] = self._values[:n, n] = with_rows
        self._values[n, n] = own
        self._rows[n] = row
        self._with_basis[n] = cross_gram(kernel, row[None], self.vectors.basis)[0]
        self._across[:, n] = self.vectors.coefficients @ self._with_basis[n]
        share = (self._across[:, n] - self._shares[:, :n] @ reached) / np.sqrt(rest)
        self._shares[:, n] = share
        self.squared_errors -= share**2
        self.count = n + 1
        return True

    def coefficients(self) -> Floats:
        """C, for all vectors."""
        n = self.count
        if not n:
            return np.zeros((len(self._across), 0))
        return linalg.solve_triangular(
            self._factor[:n, :n], self._shares[:, :n].T, lower=True, trans=1, check_finite=False
        ).T

    def residual(self, i: int) -> Expansion:
        """u_i − Σ_k C_ik Φ(z_k), on the basis and the rows together."""
        n, vectors, one = self.count, self.vectors, slice(i, i + 1)
        C = self.coefficients()[one]
        on_basis = vectors.products[one] - C @ self._with_basis[:n]
        on_rows = self._across[one, :n] - C @ self._values[:n, :n]
        coefficients = np.hstack([vectors.coefficients[one], -C])
        products = np.hstack([on_basis, on_rows])
        basis = np.vstack([vectors.basis, self.rows])
        gram = products @ coefficients.T
        return Expansion(vectors.kernel, basis, coefficients, products, gram)


#: Coefficients are solved for afterwards, so rows need not be where they are to the last digit.
_FIXED_POINT, _GRADIENT = FixedPoint(max_iter=50, tol=1e-3), Gradient(max_iter=100, tol=1e-4)


@dataclass(frozen=True)
class IteratedPreimages:
    """Find a pre-image of what is left of a vector, take it off, and go on; as in the paper.

    Vectors have their turn by weight. Figure 1 of the paper has three schemes: (a) a vector uses
    its own pre-images only, (b) also those of the vectors before it, (c) in a second pass all of
    them, for which no error can rise.

    Parameters
    ----------
    per_vector : int or "auto"
        Pre-images sought for each vector; "auto" shares the rows there is room for.
    reuse : bool
        False is scheme (a).
    second_pass : bool
        False is scheme (b).
    tol : float
        A vector whose relative error is no more than this needs no further pre-image.
    method : "auto", name or PreimageMethod
        How they are sought; "auto" is a short form of the fixed point, or of the gradient for
        kernels that are not of a distance.
    most : int
        Rows that vectors are first brought down to, by a draw, where they have more.
    seed : int
        Of the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Gaussian
    >>> from ikpca.subspace import Expansion
    >>> from ikpca.reduced_sets import IteratedPreimages
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> mean = Expansion(Gaussian(0.1), X, np.full((1, 50), 0.02))
    >>> reduced = IteratedPreimages().reduce(mean, 10)
    >>> reduced.expansion.basis.shape, bool(reduced.relative_errors[0] < 0.05)
    ((10, 2), True)
    """

    per_vector: int | Literal["auto"] = "auto"
    reuse: bool = True
    second_pass: bool = True
    tol: float = 1e-6
    method: str | PreimageMethod = "auto"
    most: int = 4000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.per_vector != "auto":
            check_row_count("per_vector", self.per_vector, 1)
        check_tol(self.tol)

    def serves(self, kernel: Kernel) -> bool:
        """Kernels with a gradient or of a distance, unless the method given serves others."""
        if self.method == "auto":
            return isinstance(kernel, RadialKernel | DifferentiableKernel)
        return isinstance(self.method, str) or self.method.serves(kernel)

    def reduce(
        self,
        expansion: Expansion,
        size: int,
        weights: Floats | None = None,
        *,
        values: Floats | None = None,
    ) -> ReducedSet:
        """Find ``size`` pre-images, or as many as are needed."""
        method = self._method(expansion.kernel)
        size = check_size(expansion, size)
        weights = check_weights(expansion, weights)
        ground = ReductionProblem.of(expansion, values, max(self.most, 2 * size), self.seed)
        if ground.expansion.basis.shape[0] <= size:
            return ground.as_it_is()
        order = np.argsort(-weights, kind="stable")
        turns = _Turns(ground, size, self.per_vector, self.tol, method)
        rows, first = turns.shared(order) if self.reuse else turns.apart(order)
        if not len(rows):
            # All vectors are zero, and yet a library is not to be empty.
            rows, first = ground.candidates.basis[:1], np.zeros((len(order), 1))
        rows, kernel, vectors = ground.in_type(rows), expansion.kernel, ground.expansion
        Z = rows.astype(np.float64)
        new, across = cross_gram(kernel, Z, Z), ground.across_to(Z)
        if self.second_pass:
            return least_squares_on(vectors, rows, new, across, first)
        return with_coefficients(vectors, rows, new, across, first)

    def _method(self, kernel: Kernel) -> PreimageMethod:
        if self.method != "auto":
            return make_preimage_method(self.method, kernel)
        if not self.serves(kernel):
            raise invalid_parameter(
                "kernel",
                kernel,
                "has no pre-images, for want of a gradient",
                "choose ChosenSamples",
            )
        return _FIXED_POINT if isinstance(kernel, RadialKernel) else _GRADIENT


@dataclass(frozen=True)
class _Turns:
    """The first pass: rows, and the coefficients that each vector had at the end of its turn."""

    ground: ReductionProblem
    size: int
    per_vector: int | Literal["auto"]
    tol: float
    method: PreimageMethod

    def shared(self, order: Indices) -> tuple[Floats, Floats]:
        """Scheme (b): one library for all."""
        library = GrowingBasis(self.ground.candidates, self.size)
        coefficients = np.zeros((len(order), self.size))
        for turn, i in enumerate(order):
            self._turn(library, i, len(order) - turn)
            coefficients[i, : library.count] = library.coefficients()[i]
        return library.rows, coefficients[:, : library.count]

    def apart(self, order: Indices) -> tuple[Floats, Floats]:
        """Scheme (a): each its own."""
        rows, parts, room = [], [], self.size
        for turn, i in enumerate(order):
            library = GrowingBasis(_alone(self.ground.candidates, i), room)
            self._turn(library, 0, len(order) - turn)
            room -= library.count
            rows.append(library.rows)
            parts.append(library.coefficients())
        coefficients = np.empty((len(order), self.size - room))
        coefficients[order] = linalg.block_diag(*parts)
        return np.vstack(rows), coefficients

    def _turn(self, library: GrowingBasis, i: int, turns_left: int) -> None:
        """Pre-images for one vector: so many, or its share of the room that is left."""
        number = self.per_vector
        if number == "auto":
            number = (library.size - library.count) // turns_left
        enough = self.tol**2 * library.vectors.gram[i, i]
        n_starts = len(library.vectors.basis)
        for _ in range(number):
            if library.count == library.size or library.squared_errors[i] <= enough:
                break
            if not library.add(find_peak(self.method, library.residual(i), n_starts)):
                break


def _alone(vectors: Expansion, i: int) -> Expansion:
    one = slice(i, i + 1)
    products, gram = vectors.products[one], vectors.gram[one, one]
    return Expansion(vectors.kernel, vectors.basis, vectors.coefficients[one], products, gram)
