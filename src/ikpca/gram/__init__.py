"""Kernel matrix in tiles: computed or precomputed, centered, within a memory budget."""

from ikpca.gram.centering import (
    NOT_FINITE,
    CenteredGram,
    Centering,
    GramMeans,
    center_columns,
    center_gram,
)
from ikpca.gram.lazy_rows import LazyRows, memory_map, open_rows, release_pages
from ikpca.gram.memory import (
    DEFAULT_MEMORY_FRACTION,
    MIN_TILE_SIDE,
    Budget,
    cache_source,
    plan_source,
    plan_tiles,
    read_budget,
)
from ikpca.gram.parallel import SERIAL, THREAD_POOLS, Workers, limit_blas
from ikpca.gram.sources import (
    CachedGram,
    CompactGram,
    ComputedGram,
    DistributedSource,
    GramSource,
    PrecomputedGram,
    StoredGram,
    cross_gram,
    full_matrix,
    multiply,
)
from ikpca.gram.tiles import TILE, tile_pairs, tile_slices

__all__ = [
    "DEFAULT_MEMORY_FRACTION",
    "MIN_TILE_SIDE",
    "NOT_FINITE",
    "SERIAL",
    "THREAD_POOLS",
    "TILE",
    "Budget",
    "CachedGram",
    "CenteredGram",
    "Centering",
    "CompactGram",
    "ComputedGram",
    "DistributedSource",
    "GramMeans",
    "GramSource",
    "LazyRows",
    "PrecomputedGram",
    "StoredGram",
    "Workers",
    "cache_source",
    "center_columns",
    "center_gram",
    "cross_gram",
    "full_matrix",
    "limit_blas",
    "memory_map",
    "multiply",
    "open_rows",
    "plan_source",
    "plan_tiles",
    "read_budget",
    "release_pages",
    "tile_pairs",
    "tile_slices",
]
