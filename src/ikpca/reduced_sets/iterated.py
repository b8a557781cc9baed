"""A reduced set of iterated pre-images (Chin 2006, section 5.2), one vector after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import linalg

from ikpca.errors import refuse
from ikpca.gram import Indices, cross_gram
from ikpca.kernels import DifferentiableKernel, Floats, Kernel, RadialKernel
from ikpca.preimages import Expansion, FixedPoint, Gradient, PreimageMethod, choose_method
from ikpca.reduced_sets.checking import check_count, check_size, check_tol, check_weights
from ikpca.reduced_sets.ground import Ground
from ikpca.reduced_sets.growth import Library
from ikpca.reduced_sets.peaks import find_peak
from ikpca.reduced_sets.reduction import ReducedSet, nearest_on, with_coefficients

__all__ = ["IteratedPreimages"]

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
    >>> from ikpca.preimages import Expansion
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
            check_count("per_vector", self.per_vector, 1)
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
        ground = Ground.of(expansion, values, max(self.most, 2 * size), self.seed)
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
            return nearest_on(vectors, rows, new, across, first)
        return with_coefficients(vectors, rows, new, across, first)

    def _method(self, kernel: Kernel) -> PreimageMethod:
        if self.method != "auto":
            return choose_method(self.method, kernel)
        if not self.serves(kernel):
            raise refuse("kernel", kernel, "has no pre-images, for want of a gradient",
                         "choose ChosenSamples")  # fmt: skip
        return _FIXED_POINT if isinstance(kernel, RadialKernel) else _GRADIENT


@dataclass(frozen=True)
class _Turns:
    """The first pass: rows, and the coefficients that each vector had at the end of its turn."""

    ground: Ground
    size: int
    per_vector: int | Literal["auto"]
    tol: float
    method: PreimageMethod

    def shared(self, order: Indices) -> tuple[Floats, Floats]:
        """Scheme (b): one library for all."""
        library = Library(self.ground.candidates, self.size)
        coefficients = np.zeros((len(order), self.size))
        for turn, i in enumerate(order):
            self._turn(library, i, len(order) - turn)
            coefficients[i, : library.count] = library.coefficients()[i]
        return library.rows, coefficients[:, : library.count]

    def apart(self, order: Indices) -> tuple[Floats, Floats]:
        """Scheme (a): each its own."""
        rows, parts, room = [], [], self.size
        for turn, i in enumerate(order):
            library = Library(_alone(self.ground.candidates, i), room)
            self._turn(library, 0, len(order) - turn)
            room -= library.count
            rows.append(library.rows)
            parts.append(library.coefficients())
        coefficients = np.empty((len(order), self.size - room))
        coefficients[order] = linalg.block_diag(*parts)
        return np.vstack(rows), coefficients

    def _turn(self, library: Library, i: int, turns_left: int) -> None:
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
