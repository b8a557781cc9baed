"""Schemes of Chin and Suter 2006, figure 1, and pre-images as in textbooks, for comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from ikpca.kernels import Floats, Polynomial
from ikpca.reduced_sets import GrowingBasis, IteratedPreimages, ReducedSet, ReductionProblem
from ikpca.subspace import Subspace

#: Iterations of the search for the nearest pre-image.
_SEARCH_STEPS = 50
#: For fewer features all eigenvectors are as fast as one.
_FEW_FEATURES = 50


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
    in_box : bool
        Nearest pre-images are searched inside the box of the basis rows; False: anywhere.
    """

    reuse: bool = True
    second_pass: bool = True
    nearest: bool = False
    in_box: bool = True

    def _reduce(self, problem: ReductionProblem) -> ReducedSet:
        make_basis: Callable[[Subspace, int], GrowingBasis] = GrowingBasis
        if self.nearest:
            make_basis = partial(_NearestBasis, in_box=self.in_box)
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

    def __init__(self, vectors: Subspace, size: int, in_box: bool) -> None:
        super().__init__(vectors, size)
        self._box = (vectors.basis.min(axis=0), vectors.basis.max(axis=0)) if in_box else None

    def best_row(self, i: int) -> Floats | None:
        """Find the pre-image nearest to the residual of u_i; None if all are linearly dependent."""
        residual = self._residual(i)
        kernel = residual.kernel
        if isinstance(kernel, Polynomial) and (kernel.degree, kernel.coef0) == (2, 0):
            rows = _quadratic_preimage(residual)
        else:
            diagonal = self.vectors.diagonal
            products = residual.products[0, : len(diagonal)]
            start = int(self._decreases(products, diagonal, diagonal).argmax())
            rows = self._search(residual, start, len(diagonal), _SEARCH_STEPS)
            if self._box is not None:
                rows = np.clip(rows, *self._box)
        products, diagonal = residual.products_with(rows)[0], kernel.diagonal(rows)
        cosines = self._decreases(products, diagonal, diagonal)
        cosines[self._decreases(products, self._project(rows)[1], diagonal) == 0] = 0
        best = int(cosines.argmax())
        return rows[best] if cosines[best] > 0 else None


def _quadratic_preimage(vector: Subspace) -> Floats:
    """Return the nearest pre-image of u = Σ α_j Φ(x_j) for the kernel (x·y)².

    Its direction is the eigenvector of Σ α_j x_j x_jᵀ with the eigenvalue of largest magnitude,
    since ⟨u, Φ(z)⟩ = zᵀ (Σ α_j x_j x_jᵀ) z and ‖Φ(z)‖ = ‖z‖²; the coefficient has its sign. The
    length is free: that of the basis rows keeps the Gram matrix well scaled.
    """
    X, weights = vector.basis, vector.coefficients[0]
    size, length = X.shape[1], np.sqrt(np.square(X).sum(axis=1).mean())
    if size < _FEW_FEATURES:
        values, vectors = np.linalg.eigh((X.T * weights) @ X)
        return length * vectors[:, [np.abs(values).argmax()]].T

    def multiply(z: Floats) -> Floats:
        return X.T @ (weights * (X @ z.ravel()))

    operator = LinearOperator((size, size), matvec=multiply, dtype=np.float64)
    start = X[np.abs(weights).argmax()]
    return np.asarray(length * eigsh(operator, 1, v0=start, tol=1e-6)[1].T)
