"""A library that stays within its limit: reduced sets in a stream (Chin 2006, section 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ikpca.gram import cross_gram
from ikpca.incremental.state import State
from ikpca.incremental.values import LibraryValues
from ikpca.kernels import Floats
from ikpca.preimages import Expansion
from ikpca.reduced_sets import Reduction, Subspace

__all__ = ["Compression"]


@dataclass(frozen=True)
class Compression:
    """When the library is reduced, and to how many rows.

    Parameters
    ----------
    reduction : Reduction
    limit : int
        Rows of the library that are not to be exceeded after a step.
    size : int
        Rows after a reduction: room for batches until the next one.
    orthonormal : bool
        False leaves components as the reduced set has them and Σ as it was (an ablation: without
        section 5.3 errors add up).
    """

    reduction: Reduction
    limit: int
    size: int
    orthonormal: bool = True

    def apply(self, state: State) -> tuple[State, Floats]:
        """The state on fewer rows, and the relative error of each component and of the mean."""
        original = state.subspace()
        # ‖δu_i‖ moves Σ² σ_i² ‖δu_i‖², ‖δµ‖ moves n ‖δµ‖²: what errors weigh in the scatter.
        weights = np.append(state.singular_values, np.sqrt(state.n_samples))
        values = None if state.values is None else state.values.matrix()
        reduced = self.reduction.reduce(original.expansion, self.size, weights, values=values)
        expansion, singular_values = reduced.expansion, state.singular_values
        if self.orthonormal:
            expansion, singular_values = reorthonormalise(original, expansion, singular_values)
        compressed = replace(
            state,
            library=expansion.basis,
            vectors=expansion.coefficients,
            products=expansion.products,
            singular_values=singular_values,
            values=LibraryValues((reduced.values,)),
        )
        return compressed, reduced.relative_errors


def reorthonormalise(
    original: Subspace, reduced: Expansion, singular_values: Floats
) -> tuple[Expansion, Floats]:
    K = reduced.gram[:-1, :-1]
    lam, V = np.linalg.eigh(K)
    keep = lam > 1e-12 * lam[-1]
    pi = (V[:, keep] / np.sqrt(lam[keep])).T @ reduced.coefficients[:-1]
    across = (
        pi
        @ cross_gram(reduced.kernel, reduced.basis.astype(float), original.library.astype(float))
        @ original.components.T
    )
    S = across * singular_values
    U, s, _ = np.linalg.svd(S, full_matrices=False)
    sg = np.sign(np.sum(U.T * (across.T[: U.shape[1]]), axis=1))
    sg[sg == 0] = 1
    pi = (U * sg).T @ pi
    co = np.vstack([pi, reduced.coefficients[-1:]])
    K = cross_gram(reduced.kernel, reduced.basis.astype(float), reduced.basis.astype(float))
    return Expansion(reduced.kernel, reduced.basis, co, co @ K, None), s
