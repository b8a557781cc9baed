"""Components that are no longer orthonormal, as rounding adds up over a long stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg

from ikpca.errors import InvalidInput
from ikpca.incremental.state import State
from ikpca.preimages import Expansion

__all__ = ["kept_orthonormal"]

#: max |UᵀU − I| that an update may leave; streams of any length stay far below it.
_DEFECT = 1e-4


def kept_orthonormal(state: State) -> tuple[State, str]:
    """The state, orthonormal; and, where it was not, what was done about it.

    Inner products, which an update only carries along, are computed afresh from the kernel.
    """
    defect = _defect(state)
    if defect <= _DEFECT:
        return state, ""
    rows = state.library.astype(np.float64, copy=False)
    products = Expansion(state.kernel, rows, state.vectors).products
    gram = state.vectors[:-1] @ products[:-1].T
    if not np.isfinite(gram).all():
        raise InvalidInput(
            "The components of the stream overflowed: nothing was learned from this X; scale the "
            "rows, and begin anew with fit."
        )
    values, vectors = linalg.eigh((gram + gram.T) / 2)
    if values[0] <= _DEFECT * values[-1]:
        raise InvalidInput(
            "The components of the stream have become linearly dependent, which cannot be mended: "
            "nothing was learned from this X; begin anew with fit, with fewer components."
        )
    turn = linalg.block_diag((vectors / np.sqrt(values)) @ vectors.T, np.ones((1, 1)))
    mended = replace(state, vectors=turn @ state.vectors, products=turn @ products)
    return mended, (
        f"components had lost their orthonormality (by {defect:.1e}) and were made orthonormal "
        f"again (to {_defect(mended):.1e})"
    )


def _defect(state: State) -> float:
    r = state.n_components
    defect = float(np.abs(state.gram[:r, :r] - np.eye(r)).max(initial=0.0))
    return defect if np.isfinite(defect) else np.inf
