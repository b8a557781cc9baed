"""The kernel matrix as tiles: computed or given, centred, counted. Array kinds end here."""

from ikpca.gram.centring import CentredGram, Centring, centre_columns, centred
from ikpca.gram.computed import ComputedGram, cross_gram
from ikpca.gram.counting import CountingGram
from ikpca.gram.precomputed import PrecomputedGram
from ikpca.gram.products import multiply, whole
from ikpca.gram.source import GramSource, Indices
from ikpca.gram.stored import StoredGram
from ikpca.gram.strips import CentredStrip
from ikpca.gram.tiles import TILE, tile_pairs, tiles
from ikpca.gram.workers import SERIAL, Workers

__all__ = [
    "SERIAL",
    "TILE",
    "CentredGram",
    "CentredStrip",
    "Centring",
    "ComputedGram",
    "CountingGram",
    "GramSource",
    "Indices",
    "PrecomputedGram",
    "StoredGram",
    "Workers",
    "centre_columns",
    "centred",
    "cross_gram",
    "multiply",
    "tile_pairs",
    "tiles",
    "whole",
]
