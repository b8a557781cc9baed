"""New samples as the components see them, before anything is learned from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ikpca.errors import InvalidInput
from ikpca.gram import cross_gram
from ikpca.incremental.state import State
from ikpca.kernels import Floats, Rows

__all__ = ["Meeting", "meet"]


@dataclass(frozen=True, eq=False)
class Meeting:
    """A state, a batch of rows, and all kernel values that an update with them takes.

    Parameters
    ----------
    state : State
    rows : rows of shape (c, N)
    across : ndarray of shape (m, c)
        Kernel values of the library with the batch.
    own : ndarray of shape (c, c)
        Those of the batch.
    """

    state: State
    rows: Rows
    across: Floats
    own: Floats

    @cached_property
    def seen(self) -> Floats:
        """⟨u_i, Φ(b_j)⟩, and ⟨µ, Φ(b_j)⟩ last: (r + 1)×c."""
        return self.state.vectors @ self.across

    @cached_property
    def gram(self) -> Floats:
        """Inner products of u_1 … u_r, µ, Φ(b_1) … Φ(b_c): what the whole update happens in."""
        return np.block([[self.state.gram, self.seen], [self.seen.T, self.own]])

    def novelty(self, n_components: int) -> Floats:
        """‖Φ(b) − µ − P(Φ(b) − µ)‖², P on the leading components; NaN where nothing was known."""
        if not self.state.n_samples:
            return np.full(len(self.own), np.nan)
        known = self.state.gram
        y = self.seen[:-1] - known[:-1, -1:]
        lengths = np.diagonal(self.own) - 2 * self.seen[-1] + known[-1, -1]
        return np.maximum(lengths - np.square(y[:n_components]).sum(axis=0), 0)


def meet(state: State, rows: Rows) -> Meeting:
    """Compute the kernel values of a batch with the library and with itself, in double."""
    batch = rows.astype(np.float64, copy=False)
    library = state.library.astype(np.float64, copy=False)
    across = np.zeros((0, rows.shape[0]))
    if library.shape[0]:
        across = cross_gram(state.kernel, library, batch)
    own = cross_gram(state.kernel, batch, batch)
    _check_finite(own, across)
    return Meeting(state, rows, across, (own + own.T) / 2)


def _check_finite(own: Floats, across: Floats) -> None:
    """Refuse rows so large that their images have no length: one of them would spoil the state."""
    bad = ~(np.isfinite(own).all(axis=0) & np.isfinite(across).all(axis=0))
    if bad.any():
        listed = ", ".join(map(str, np.flatnonzero(bad)[:5]))
        raise InvalidInput(
            f"The kernel values of rows {listed} of the batch are not finite: the update needs "
            "them; scale the rows, or leave these out."
        )
