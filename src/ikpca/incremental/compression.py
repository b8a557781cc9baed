"""A library that stays within its limit: reduced sets in a stream (Chin 2006, section 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ikpca.incremental.state import State
from ikpca.incremental.values import LibraryValues
from ikpca.kernels import Floats
from ikpca.reduced_sets import Reduction, reorthonormalise
from ikpca.spectra import deterministic_signs

__all__ = ["Compression"]


@dataclass(frozen=True)
class Compression:
    """When the library is reduced, and to how many rows.

    Parameters
    ----------
    reduction : Reduction
    limit : int
        Rows of the library that are not to be exceeded after a step.
    room : int
        Rows that come between two reductions, at least. Batches of fewer rows leave the library
        smaller by as much, or each of them would cost a reduction.
    orthonormal : bool
        False leaves components as the reduced set has them and Σ as it was (an ablation: without
        section 5.3 errors add up).
    """

    reduction: Reduction
    limit: int
    room: int = 1
    orthonormal: bool = True

    def after_batch(self, state: State, count: int) -> tuple[State, Floats | None]:
        """The state within the limit after a batch of ``count`` rows, and errors if it was not."""
        if state.library.shape[0] <= self.limit:
            return state, None
        least = state.n_components + 1
        return self.reduced(state, max(self.limit - max(0, self.room - count), least))

    def reduced(self, state: State, size: int) -> tuple[State, Floats]:
        """The state on fewer rows, and the relative error of each component and of the mean."""
        original = state.subspace()
        # ‖δu_i‖ moves Σ² σ_i² ‖δu_i‖², ‖δµ‖ moves n ‖δµ‖²: what errors weigh in the scatter.
        weights = np.append(state.singular_values, np.sqrt(state.n_samples))
        values = None if state.values is None else state.values.matrix()
        reduced = self.reduction.reduce(original.expansion, size, weights, values=values)
        expansion, singular_values = reduced.expansion, state.singular_values
        signs = np.ones(len(expansion.coefficients))
        if self.orthonormal and state.n_components:
            expansion, singular_values = reorthonormalise(
                original, expansion, singular_values, across=reduced.across
            )
            # A component keeps the sign of the one that it goes on from.
            overlaps = expansion.coefficients[:-1] @ reduced.across[:-1].T
            signs = np.append(deterministic_signs(overlaps), 1)
        compressed = replace(
            state,
            library=expansion.basis,
            vectors=expansion.coefficients * signs[:, None],
            products=expansion.products * signs[:, None],
            singular_values=singular_values,
            values=LibraryValues((reduced.values,)),
        )
        return compressed, reduced.relative_errors
