"""Kernel matrix in tiles: computed or precomputed, centered, within a memory budget."""

from ikpca.gram.centering import CenteredGram, center_gram

# Model files and checkpoints name this class.
from ikpca.gram.centering import Centering as Centering
from ikpca.gram.lazy_rows import open_rows
from ikpca.gram.resources import Budget, read_budget
from ikpca.gram.sources import (
    ComputedGram,
    GramSource,
    PrecomputedGram,
    cross_gram,
    full_matrix,
    multiply,
    multiply_and_square,
    tile_slices,
)

__all__ = [
    "Budget",
    "CenteredGram",
    "ComputedGram",
    "GramSource",
    "PrecomputedGram",
    "center_gram",
    "cross_gram",
    "full_matrix",
    "multiply",
    "multiply_and_square",
    "open_rows",
    "read_budget",
    "tile_slices",
]
