"""Products K·V and the whole matrix, by tiles."""

from __future__ import annotations

import numpy as np

from ikpca.gram.source import GramSource
from ikpca.gram.tiles import tile_pairs
from ikpca.kernels import Floats

__all__ = ["multiply", "whole"]


def multiply(source: GramSource, V: Floats) -> Floats:
    """K·V for V of shape (l, columns); a symmetric K is read once above its diagonal."""
    product = np.zeros((source.n_samples, V.shape[1]), dtype=np.result_type(V, source.dtype))
    for rows, columns in tile_pairs(source.n_samples, symmetric=source.symmetric):
        tile = source.block(rows, columns)
        product[rows] += tile @ V[columns]
        if source.symmetric and rows != columns:
            product[columns] += tile.T @ V[rows]
    return product


def whole(source: GramSource) -> Floats:
    """K as one matrix, by tiles. For the dense reference and for small l."""
    K = np.empty((source.n_samples, source.n_samples), dtype=source.dtype)
    for rows, columns in tile_pairs(source.n_samples, symmetric=source.symmetric):
        K[rows, columns] = source.block(rows, columns)
        if source.symmetric and rows != columns:
            K[columns, rows] = K[rows, columns].T
    return K
