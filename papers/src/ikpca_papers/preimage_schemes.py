"""Schemes of Chin and Suter 2006, figure 1, and pre-images as in textbooks, for comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ikpca.kernels import Floats
from ikpca.reduced_sets import GrowingBasis, IteratedPreimages, ReducedSet, ReductionProblem
from ikpca.subspace import Subspace

#: Iterations of the search for the nearest pre-image.
_SEARCH_STEPS = 50


@dataclass(frozen=True)
class PreimageScheme(IteratedPreimages):
    """Iterated pre-images by one of the schemes of figure 1.

    A vector uses (a) only its own pre-images, (b) also those of the vectors before it, (c) in a
    second pass all of them, which is the scheme of the library.

    Parameters
    ----------
    per_vector, max_candidates, seed
        As for :class:`ikpca.reduced_sets.IteratedPreimages`.
    reuse : bool
        False is scheme (a).
    second_pass : bool
        False is scheme (b).
    nearest : bool
        True adds the pre-image nearest to the residual; False the row that leaves the smallest
        error.
    """

    reuse: bool = True
    second_pass: bool = True
    nearest: bool = False

    def _reduce(self, problem: ReductionProblem) -> ReducedSet:
        make_basis = _NearestBasis if self.nearest else GrowingBasis
        order = np.argsort(-problem.weights, kind="stable")
        rows, parts = problem.candidates.basis[:0], []
        basis = make_basis(problem.candidates, problem.size)
        coefficients = np.zeros((len(order), problem.size))
        for position, i in enumerate(order):
            if self.reuse:
                self._add_preimages(basis, i, len(order) - position)
                rows = basis.rows
                coefficients[i, : basis.count] = basis.coefficients()[i]
                continue
            basis = make_basis(_single_vector(problem.candidates, i), problem.size - len(rows))
            self._add_preimages(basis, 0, len(order) - position)
            rows = np.vstack([rows, basis.rows])
            parts.append(basis.coefficients())
        if not self.reuse:
            coefficients[order, : len(rows)] = linalg.block_diag(*parts)
        return problem.on_rows(rows, None if self.second_pass else coefficients[:, : len(rows)])


def _single_vector(vectors: Subspace, i: int) -> Subspace:
    one = slice(i, i + 1)
    products, gram = vectors.products[one], vectors.gram[one, one]
    return Subspace(vectors.kernel, vectors.basis, vectors.coefficients[one], products, gram)


class _NearestBasis(GrowingBasis):
    """Basis that grows by the pre-image nearest to a residual."""

    def best_row(self, i: int) -> Floats | None:
        """Find the pre-image nearest to the residual of u_i; None if all are linearly dependent."""
        residual = self._residual(i)
        diagonal = self.vectors.diagonal
        products = residual.products[0, : len(diagonal)]
        start = int(self._decreases(products, diagonal, diagonal).argmax())
        rows = self._search(residual, start, len(diagonal), _SEARCH_STEPS)
        products, diagonal = residual.products_with(rows)[0], self.vectors.kernel.diagonal(rows)
        cosines = self._decreases(products, diagonal, diagonal)
        cosines[self._decreases(products, self._project(rows)[1], diagonal) == 0] = 0
        best = int(cosines.argmax())
        return rows[best] if cosines[best] > 0 else None
