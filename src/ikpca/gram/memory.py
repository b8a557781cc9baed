"""Memory budgets, and the tiles, threads and cache that fit them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ikpca.errors import invalid_parameter
from ikpca.gram.parallel import Workers
from ikpca.gram.sources import CachedGram, ComputedGram, GramSource, StoredGram
from ikpca.gram.tiles import TILE
from ikpca.kernels import FeatureSplit, Kernel, MatmulKernel, Rows

#: Share of the machine's memory that a fit may take unless told otherwise.
DEFAULT_SHARE = 0.25
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
          "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}  # fmt: skip
#: No plan has smaller tiles.
LEAST_SIDE = TILE // 8
_SIDES = (TILE, TILE // 2, TILE // 4, LEAST_SIDE)
#: Tiles that a plan makes room for; more threads than fit take turns.
TILES_AT_ONCE = 4

#: What starting the compiler takes, for features that are multiplied apart.
COMPILER_BYTES = 130 * 10**6

#: What no plan sees (BLAS buffers, temporaries, the allocator's rounding) is left out of what may
#: be kept.
_OVERHEAD_BYTES, _OVERHEAD_SHARE = 32 * 10**6, 0.1


@dataclass(frozen=True)
class Budget:
    """Bytes, and whether a user named them: only then may they shape the tiles.

    Parameters
    ----------
    n_bytes : int
    explicit : bool
    taken : int
        Of the bytes, those that are in use before a plan is made.
    """

    n_bytes: int
    explicit: bool
    taken: int = 0

    @property
    def left(self) -> int:
        """Bytes that a plan may give away; below zero where more is taken than there is."""
        return self.n_bytes - self.taken


def read_budget(max_memory: Any) -> Budget:
    """Bytes from "500MB", "2GiB", a number, or None for a quarter of the machine.

    Examples
    --------
    >>> read_budget("500MB").n_bytes, read_budget(2_000_000).n_bytes
    (500000000, 2000000)
    """
    if max_memory is None:
        return Budget(int(DEFAULT_SHARE * machine_memory()), explicit=False)
    remedy = "pass bytes, or a text such as '500MB' or '2GB'"
    if isinstance(max_memory, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?i?b?)\s*", max_memory.lower())
        if found is None or found[2] not in _UNITS or found[1].count(".") > 1 or found[1] == ".":
            raise invalid_parameter("max_memory", max_memory, "is no amount of memory", remedy)
        n_bytes = int(float(found[1]) * _UNITS[found[2]])
    elif isinstance(max_memory, int | np.integer) and not isinstance(max_memory, bool):
        n_bytes = int(max_memory)
    else:
        raise invalid_parameter("max_memory", max_memory, "is no amount of memory", remedy)
    if n_bytes <= 0:
        raise invalid_parameter("max_memory", max_memory, "must be positive", remedy)
    return Budget(n_bytes, explicit=True)


def machine_memory() -> int:
    """Bytes of this machine, or of the container that limits it."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.exists() else "max"
    return min(total, int(text)) if text.isdigit() else total


@dataclass(frozen=True)
class TilePlan:
    """Sides of tiles, threads that may hold one each, and bytes left for keeping tiles."""

    side: int
    threads: int
    spare: int


def plan_tiles(
    budget: Budget, fixed: int, tile_bytes: Callable[[int], int], threads: int
) -> TilePlan:
    """Fit tiles into a budget.

    The side depends on the explicit budget alone, never on the machine or the threads, so that
    results do not either.

    Parameters
    ----------
    budget : Budget
    fixed : int
        Bytes that the fit takes whatever the tiles are: vectors, a copy of X.
    tile_bytes : callable
        Bytes that a tile of a given side takes, scratch included.
    threads : int
        How many would like to work.
    """
    room = budget.left - fixed
    if not budget.explicit:
        side = TILE
    else:
        fitting = [side for side in _SIDES if TILES_AT_ONCE * tile_bytes(side) <= room]
        side = fitting[0] if fitting else _SIDES[-1]
    if budget.explicit and tile_bytes(side) > room:
        needed = budget.taken + fixed + tile_bytes(side)
        raise invalid_parameter(
            "max_memory",
            budget.n_bytes,
            f"this fit needs at least {needed} bytes",
            "raise it, ask for fewer components, or pass copy_X=False",
        )
    usable = max(1, min(threads, room // max(tile_bytes(side), 1)))
    unseen = _OVERHEAD_BYTES + int(_OVERHEAD_SHARE * budget.n_bytes)
    return TilePlan(side, usable, max(0, room - usable * tile_bytes(side) - unseen))


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


def _frames(kernel: Kernel, X: Rows) -> Iterator[FeatureSplit | None]:
    """Ways to fold, the quickest first."""
    if isinstance(kernel, MatmulKernel) and isinstance(X, np.ndarray):
        apart = FeatureSplit.of(X)
        yield apart
        yield apart.together()
    yield None


def _operand_bytes(frame: FeatureSplit | None, X: Rows) -> int:
    """Of the operand, and of the compiler where some features are multiplied apart."""
    if frame is None:
        return 0
    return frame.operand_bytes(X.shape[0]) + (COMPILER_BYTES if frame.n_rare else 0)


def _tile_bytes(kernel: Kernel, X: Rows, frame: FeatureSplit | None, side: int) -> int:
    item, width = X.dtype.itemsize, int(X.shape[1] if frame is None else frame.varying.sum())
    narrow = 4 * side * _NARROW * item
    return side * side * item + kernel.scratch_bytes(side, side, width, item) + narrow


def _fits(frame: FeatureSplit, operand: int, tile_bytes: Callable[[int], int], room: int) -> bool:
    """An operand is worth a copy of X and smaller tiles; the compiler is not worth those."""
    if frame.n_rare:
        return operand + TILES_AT_ONCE * tile_bytes(TILE) <= room
    return operand <= _FOLDED_SHARE * room and operand + tile_bytes(LEAST_SIDE) <= room
