"""The kernel matrix as tiles: computed or given, centred, counted. Array kinds end here."""

from ikpca.gram.budget import (
    COMPILER_BYTES,
    DEFAULT_SHARE,
    LEAST_SIDE,
    TILES_AT_ONCE,
    Budget,
    TilePlan,
    plan_tiles,
    read_budget,
)
from ikpca.gram.cached import CachedGram
from ikpca.gram.centring import (
    NOT_FINITE,
    CentredGram,
    Centring,
    GramMeans,
    centre_columns,
    centred,
    counted,
)
from ikpca.gram.computed import ComputedGram, cross_gram
from ikpca.gram.counting import CountingGram
from ikpca.gram.files import LazyRows, open_rows
from ikpca.gram.normalised import NormalisedGram
from ikpca.gram.precomputed import PrecomputedGram
from ikpca.gram.products import multiply, whole
from ikpca.gram.source import DistantSource, GramSource, Indices, LandmarkRows
from ikpca.gram.stored import StoredGram
from ikpca.gram.strips import CentredStrip
from ikpca.gram.tiles import TILE, tile_pairs, tiles
from ikpca.gram.workers import SERIAL, Workers

__all__ = [
    "COMPILER_BYTES",
    "DEFAULT_SHARE",
    "LEAST_SIDE",
    "NOT_FINITE",
    "SERIAL",
    "TILE",
    "TILES_AT_ONCE",
    "Budget",
    "CachedGram",
    "CentredGram",
    "CentredStrip",
    "Centring",
    "ComputedGram",
    "CountingGram",
    "DistantSource",
    "GramMeans",
    "GramSource",
    "Indices",
    "LandmarkRows",
    "LazyRows",
    "NormalisedGram",
    "PrecomputedGram",
    "StoredGram",
    "TilePlan",
    "Workers",
    "centre_columns",
    "centred",
    "counted",
    "cross_gram",
    "multiply",
    "open_rows",
    "plan_tiles",
    "read_budget",
    "tile_pairs",
    "tiles",
    "whole",
]
