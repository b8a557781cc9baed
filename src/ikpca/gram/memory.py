"""Memory budgets, and tiles, threads and caches that fit into them."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import psutil
from scipy import sparse

from ikpca.errors import invalid_parameter
from ikpca.gram.lazy_rows import LazyRows
from ikpca.gram.parallel import Workers
from ikpca.gram.sources import (
    TILE,
    CachedGram,
    CompactGram,
    ComputedGram,
    GramSource,
    PrecomputedGram,
    StoredGram,
)
from ikpca.kernels import Cosine, FeatureSplit, Gaussian, Kernel, Linear, Rows

#: Share of the machine's memory that a fit may use by default.
DEFAULT_MEMORY_FRACTION = 0.25
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
          "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}  # fmt: skip
#: Smallest side of a tile in any plan.
MIN_TILE_SIDE = TILE // 8
_TILE_SIDES = (TILE, TILE // 2, TILE // 4, MIN_TILE_SIDE)
#: Tiles that the side of a plan leaves memory for; the number of threads is limited accordingly.
_CONCURRENT_TILES = 4
#: Memory that no plan accounts for (BLAS buffers, temporaries, the allocator's rounding); it is
#: not available for caches.
_OVERHEAD_BYTES, _OVERHEAD_SHARE = 32 * 10**6, 0.1
#: Columns of the narrow matrices that tiles are multiplied with, counted as part of a tile.
_NARROW_COLUMNS = 64
#: Largest share of the memory left by the solver that a right operand may use.
_MAX_OPERAND_SHARE = 0.6


@dataclass(frozen=True)
class Budget:
    """Memory limit in bytes."""

    n_bytes: int
    #: True if the user set the limit; only then does the size of the tiles depend on it.
    explicit: bool
    #: Bytes that are in use before a plan is made.
    used: int = 0

    @property
    def available(self) -> int:
        """Bytes that a plan may use; negative if more is used than the limit allows."""
        return self.n_bytes - self.used

    def require(self, n_bytes: int, purpose: str, remedy: str) -> None:
        """Raise an error if the user's limit does not allow this many bytes more."""
        if self.explicit and n_bytes > self.available:
            needed = f"{purpose} needs at least {self.used + n_bytes} bytes"
            raise invalid_parameter("max_memory", self.n_bytes, needed, remedy)


def read_budget(max_memory: str | int | None) -> Budget:
    """Parse a memory limit: "500MB", "2GiB", a number, or None for a quarter of the machine.

    Examples
    --------
    >>> read_budget("500MB").n_bytes, read_budget(2_000_000).n_bytes
    (500000000, 2000000)
    """
    if max_memory is None:
        return Budget(int(DEFAULT_MEMORY_FRACTION * machine_memory()), explicit=False)
    remedy = "pass bytes, or a string such as '500MB' or '2GB'"
    if isinstance(max_memory, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?i?b?)\s*", max_memory.lower())
        if match is None or match[2] not in _UNITS or match[1].count(".") > 1 or match[1] == ".":
            raise invalid_parameter("max_memory", max_memory, "is not an amount of memory", remedy)
        n_bytes = int(float(match[1]) * _UNITS[match[2]])
    elif isinstance(max_memory, int | np.integer) and not isinstance(max_memory, bool):
        n_bytes = int(max_memory)
    else:
        raise invalid_parameter("max_memory", max_memory, "is not an amount of memory", remedy)
    if n_bytes <= 0:
        raise invalid_parameter("max_memory", max_memory, "must be positive", remedy)
    return Budget(n_bytes, explicit=True)


def machine_memory() -> int:
    """Return the memory of the machine, or of the container if it has a lower limit, in bytes."""
    total = int(psutil.virtual_memory().total)
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text("ascii").strip() if limit.exists() else "max"
    return min(total, int(text)) if text.isdigit() else total


def memory_map(X: Rows) -> mmap.mmap | None:
    """Return the memory map beneath an array of rows, or None."""
    if isinstance(X, LazyRows):
        X = getattr(X, "_array", None)
    while isinstance(X, np.ndarray):
        # Discarding pages of a private map would undo changes to them.
        if isinstance(X, np.memmap) and getattr(X, "mode", "c") == "c":
            return None
        X = X.base
    return X if isinstance(X, mmap.mmap) else None


def release_pages(X: Rows) -> None:
    """Let the system drop the pages of a memory map that were read, which it can read again."""
    mapped = memory_map(X)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


@dataclass(frozen=True)
class TilePlan:
    """Side of the tiles, number of threads, and bytes left for caching tiles."""

    side: int
    threads: int
    cache_bytes: int


def plan_tiles(
    budget: Budget,
    fixed: int,
    tile_bytes: Callable[[int], int],
    threads: int,
    side: int | None = None,
) -> TilePlan:
    """Choose the side of the tiles and the number of threads for a budget.

    The side depends only on an explicit budget, not on the machine or the number of threads, and
    so do the results. A run that is resumed keeps its side.

    Parameters
    ----------
    budget : Budget
    fixed : int
        Bytes that do not depend on the tiles: vectors, a copy of X.
    tile_bytes : callable
        Returns the bytes of a tile of a given side, including scratch.
    threads : int
        Largest number of threads.
    side : int, optional
        Side that the earlier run has chosen.
    """
    available = budget.available - fixed
    if side is not None:
        remedy = "raise it, or fit again without resuming"
        budget.require(fixed + tile_bytes(side), "resuming this fit", remedy)
    elif budget.explicit:
        fitting = (
            side for side in _TILE_SIDES if _CONCURRENT_TILES * tile_bytes(side) <= available
        )
        side = next(fitting, MIN_TILE_SIDE)
        remedy = "raise it, ask for fewer components, or pass copy_X=False or another eigen_solver"
        budget.require(fixed + tile_bytes(side), "this fit", remedy)
    else:
        side = TILE
    usable = max(1, min(threads, available // max(tile_bytes(side), 1)))
    overhead = _OVERHEAD_BYTES + int(_OVERHEAD_SHARE * budget.n_bytes)
    return TilePlan(side, usable, max(0, available - usable * tile_bytes(side) - overhead))


def cache_source(
    source: GramSource,
    form: Literal["tiles", "compact", "matrix"],
    max_bytes: int,
    workers: Workers,
) -> GramSource:
    """Cache tiles, for products; or the whole matrix if it fits, for rows in random order."""
    if form != "matrix":
        return (CachedGram if form == "tiles" else CompactGram)(source, max_bytes)
    matrix_bytes = source.n_samples**2 * source.dtype.itemsize
    return StoredGram(source, workers) if matrix_bytes <= max_bytes else source


def plan_source(
    kernel: Kernel | None,
    X: Rows,
    budget: Budget,
    fixed: int,
    threads: int,
    side: int | None = None,
) -> tuple[ComputedGram | PrecomputedGram, TilePlan]:
    """Plan the tiles of the kernel matrix of rows, or of a matrix X; see ``plan_tiles``."""
    available = budget.available - fixed
    has_features = isinstance(kernel, Linear | Cosine) and isinstance(X, np.ndarray)
    if has_features and X.nbytes <= _MAX_OPERAND_SHARE * available:
        # They are computed once for all tiles.
        fixed += X.nbytes
        kernel, X = Linear(), kernel.shifted_features(X)
    split, operand, tile_bytes = None, 0, partial(_tile_bytes, kernel, X, None)
    if isinstance(kernel, Gaussian) and isinstance(X, np.ndarray):
        candidate = FeatureSplit.from_rows(X)
        needed, tile = candidate.operand_bytes(len(X)), partial(_tile_bytes, kernel, X, candidate)
        small_enough = needed <= _MAX_OPERAND_SHARE * available
        if small_enough and needed + tile(side or MIN_TILE_SIDE) <= available:
            split, operand, tile_bytes = candidate, needed, tile
    plan = plan_tiles(budget, fixed + operand, tile_bytes, threads, side)
    if kernel is None:
        return PrecomputedGram(X, side=plan.side), plan
    return ComputedGram(kernel, X, plan.side, split=split), plan


def _tile_bytes(kernel: Kernel | None, X: Rows, split: FeatureSplit | None, side: int) -> int:
    item, width = X.dtype.itemsize, int(X.shape[1] if split is None else split.dense.sum())
    n_bytes = side * side * item + 4 * side * _NARROW_COLUMNS * item
    if split is not None and split.nnz:
        # The product of sparse features and its factor in two orders, in double precision at most.
        n_bytes += 8 * side * (side + 2 * int(split.sparse.sum()))
    if sparse.issparse(X):
        # A product of CSR rows is CSR before it is dense; its factors are copied, one transposed.
        index, width = X.indices.itemsize, -(-X.nnz // X.shape[0])
        n_bytes += side * side * (2 * item + index) + 4 * side * width * (item + index)
        n_bytes += int(X.shape[1]) * index
    if kernel is None:
        # Entries of a stored matrix are copied before they are written.
        return n_bytes + side * side * item
    # Rows from disk, and rows in random order, are copied.
    copies = 2 * side * width * item if split is None else 0
    return n_bytes + copies + kernel.scratch_bytes(side, side, width, item)
