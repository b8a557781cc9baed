"""A source of K and the threads for it, within a budget of memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ikpca.gram import (
    COMPILER_BYTES,
    Budget,
    CachedGram,
    ComputedGram,
    GramSource,
    StoredGram,
    Workers,
    plan_tiles,
)
from ikpca.kernels import Floats, FoldingKernel, Frame, Kernel, Rows

__all__ = ["PlannedSource", "plan_source"]

#: Columns of the narrow matrices that tiles are multiplied with; their share of a tile's bytes.
_NARROW = 64


#: Of the memory that the solver leaves, at most so much for a folded operand.
_FOLDED_SHARE = 0.6
#: And with the compiler beside it.
_TAKEN_SHARE = 0.9


@dataclass(frozen=True)
class PlannedSource:
    """The computed source, how many threads may work on it, and bytes left for keeping tiles."""

    source: ComputedGram
    threads: int
    spare: int

    def keeping(self, form: Literal["tiles", "matrix"], workers: Workers) -> GramSource:
        """Keep what memory allows: tiles for products, the whole matrix for rows at random."""
        whole = self.source.n_samples**2 * self.source.dtype.itemsize
        if form == "tiles":
            return CachedGram(self.source, self.spare)
        return StoredGram(self.source, workers) if whole <= self.spare else self.source


def plan_source(kernel: Kernel, X: Rows, budget: Budget, fixed: int, threads: int) -> PlannedSource:
    """Plan tiles for rows that are in memory already.

    Parameters
    ----------
    kernel : Kernel
    X : rows
    budget : Budget
    fixed : int
        Bytes that the solver takes whatever the tiles are, a copy of X included.
    threads : int
        How many would like to work.
    """
    n_features, item = int(X.shape[1]), X.dtype.itemsize
    frame, folded = None, 0
    if isinstance(kernel, FoldingKernel) and isinstance(X, np.ndarray):
        frame, folded = _frame(X, budget.left - fixed)

    def tile_bytes(side: int) -> int:
        narrow = 4 * side * _NARROW * item
        # Of folded operands, only the left one is made for the tile.
        scratch = kernel.scratch_bytes(side, side if frame is None else 0, n_features, item)
        return side * side * item + scratch + narrow

    plan = plan_tiles(budget, fixed + folded, tile_bytes, threads)
    source = ComputedGram(kernel, X, plan.side, frame=frame)
    return PlannedSource(source, plan.threads, plan.spare)


def _frame(X: Floats, room: int) -> tuple[Frame | None, int]:
    """The frame of X for an operand that leaves room for tiles, if any does, and its bytes.

    It is worth a copy of X, but not the last of the memory.
    """
    apart = Frame.of(X)
    for frame in (apart, apart.together()):
        operand = frame.operand_bytes(len(X))
        taken = operand + (COMPILER_BYTES if frame.n_rare else 0)
        if operand <= _FOLDED_SHARE * room and taken <= _TAKEN_SHARE * room:
            return frame, taken
    return None, 0
