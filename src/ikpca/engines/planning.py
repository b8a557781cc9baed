"""A source of K and the threads for it, within a budget of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from ikpca.gram import (
    COMPILER_BYTES,
    LEAST_SIDE,
    TILE,
    TILES_AT_ONCE,
    Budget,
    CachedGram,
    ComputedGram,
    GramSource,
    StoredGram,
    Workers,
    plan_tiles,
)
from ikpca.kernels import FoldingKernel, Frame, Kernel, Rows

__all__ = ["PlannedSource", "plan_source"]

#: Columns of the narrow matrices that tiles are multiplied with; their share of a tile's bytes.
_NARROW = 64


#: Of the memory that the solver leaves, at most so much for a folded operand.
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
    room = budget.left - fixed
    for frame in _frames(kernel, X):
        operand, tile_bytes = _operand_bytes(frame, X), partial(_tile_bytes, kernel, X, frame)
        if frame is None or _fits(frame, operand, tile_bytes, room):
            break
    plan = plan_tiles(budget, fixed + operand, tile_bytes, threads)
    source = ComputedGram(kernel, X, plan.side, frame=frame)
    return PlannedSource(source, plan.threads, plan.spare)


def _frames(kernel: Kernel, X: Rows) -> Iterator[Frame | None]:
    """Ways to fold, the quickest first."""
    if isinstance(kernel, FoldingKernel) and isinstance(X, np.ndarray):
        apart = Frame.of(X)
        yield apart
        yield apart.together()
    yield None


def _operand_bytes(frame: Frame | None, X: Rows) -> int:
    """Of the operand, and of the compiler where some features are multiplied apart."""
    if frame is None:
        return 0
    return frame.operand_bytes(X.shape[0]) + (COMPILER_BYTES if frame.n_rare else 0)


def _tile_bytes(kernel: Kernel, X: Rows, frame: Frame | None, side: int) -> int:
    item, width = X.dtype.itemsize, int(X.shape[1] if frame is None else frame.varying.sum())
    narrow = 4 * side * _NARROW * item
    return side * side * item + kernel.scratch_bytes(side, side, width, item) + narrow


def _fits(frame: Frame, operand: int, tile_bytes: Callable[[int], int], room: int) -> bool:
    """An operand is worth a copy of X and smaller tiles; the compiler is not worth those."""
    if frame.n_rare:
        return operand + TILES_AT_ONCE * tile_bytes(TILE) <= room
    return operand <= _FOLDED_SHARE * room and operand + tile_bytes(LEAST_SIDE) <= room
