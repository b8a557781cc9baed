"""How much memory a fit may take, and the tiles that follow from it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ikpca.errors import refuse
from ikpca.gram.tiles import TILE

__all__ = [
    "COMPILER_BYTES",
    "DEFAULT_SHARE",
    "LEAST_SIDE",
    "TILES_AT_ONCE",
    "Budget",
    "TilePlan",
    "plan_tiles",
    "read_budget",
]

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
_UNSEEN_BYTES, _UNSEEN_SHARE = 32 * 10**6, 0.1


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
            raise refuse("max_memory", max_memory, "is no amount of memory", remedy)
        n_bytes = int(float(found[1]) * _UNITS[found[2]])
    elif isinstance(max_memory, int | np.integer) and not isinstance(max_memory, bool):
        n_bytes = int(max_memory)
    else:
        raise refuse("max_memory", max_memory, "is no amount of memory", remedy)
    if n_bytes <= 0:
        raise refuse("max_memory", max_memory, "must be positive", remedy)
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
        raise refuse("max_memory", budget.n_bytes, f"this fit needs at least {needed} bytes",
                     "raise it, ask for fewer components, or pass copy_X=False")  # fmt: skip
    usable = max(1, min(threads, room // max(tile_bytes(side), 1)))
    unseen = _UNSEEN_BYTES + int(_UNSEEN_SHARE * budget.n_bytes)
    return TilePlan(side, usable, max(0, room - usable * tile_bytes(side) - unseen))
