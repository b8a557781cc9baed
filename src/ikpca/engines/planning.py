"""A source of K and the threads for it, within a budget of memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ikpca.gram import (
    Budget,
    CachedGram,
    ComputedGram,
    GramSource,
    StoredGram,
    Workers,
    plan_tiles,
)
from ikpca.kernels import FoldingKernel, Kernel, Rows

__all__ = ["PlannedSource", "plan_source"]

#: Columns of the narrow matrices that tiles are multiplied with; their share of a tile's bytes.
_NARROW = 64


#: Of the memory that the solver leaves, at most so much for folded operands.
_FOLDED_SHARE = 0.6


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
    n_samples, n_features = X.shape
    item = X.dtype.itemsize
    folded = 0
    if isinstance(kernel, FoldingKernel) and isinstance(X, np.ndarray):
        folded = 2 * n_samples * (n_features + 2) * item

    def tile_bytes(side: int) -> int:
        narrow = 4 * side * _NARROW * item
        return side * side * item + kernel.scratch_bytes(side, side, n_features, item) + narrow

    # Folded operands are worth two copies of X, but not the last of the memory.
    fold = 0 < folded <= _FOLDED_SHARE * (budget.left - fixed)
    plan = plan_tiles(budget, fixed + fold * folded, tile_bytes, threads)
    source = ComputedGram(kernel, X, plan.side, fold=fold)
    return PlannedSource(source, plan.threads, plan.spare)
