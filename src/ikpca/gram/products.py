"""Products K·V and the whole matrix, by tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

import numpy as np

from ikpca.gram.source import DistantSource, GramSource
from ikpca.gram.tiles import tile_pairs
from ikpca.gram.workers import SERIAL, Workers
from ikpca.kernels import Floats

__all__ = ["multiply", "multiply_and_square", "whole"]

Result = TypeVar("Result")
_Pair: TypeAlias = tuple[slice, slice]


def multiply(source: GramSource, V: Floats, workers: Workers = SERIAL) -> Floats:
    """K·V for V of shape (l, columns); a symmetric K is read once above its diagonal.

    Parts are added in the order of tiles, so that the result does not depend on the threads.
    """
    return multiply_and_square(source, V, workers, square=False)[0]


def multiply_and_square(
    source: GramSource, V: Floats, workers: Workers = SERIAL, *, square: bool = True
) -> tuple[Floats, float]:
    """K·V, and ‖K‖²_F from the tiles that go by."""
    if isinstance(source, DistantSource):
        return source.product(V, square=square)
    product = np.zeros((source.n_samples, V.shape[1]), dtype=np.result_type(V, source.dtype))
    squared = 0.0

    def parts(pair: _Pair) -> tuple[_Pair, Floats, Floats | None, float]:
        rows, columns = pair
        tile = _tile(source, pair, workers)
        mirrored = source.symmetric and rows != columns
        norm = float(np.vdot(tile, tile)) if square else 0.0
        # The other way round, tile.T @ V[rows], takes a fifth longer.
        return pair, tile @ V[columns], (V[rows].T @ tile).T if mirrored else None, norm

    for pieces in workers.map(_sparing(parts, source, workers), _pairs(source)):
        for (rows, columns), across, mirrored, norm in pieces:
            product[rows] += across
            squared += norm
            if mirrored is not None:
                product[columns] += mirrored
                squared += norm
    return product, squared


def whole(source: GramSource, workers: Workers = SERIAL) -> Floats:
    """K as one matrix, by tiles. For the dense reference and for small l."""
    K = np.empty((source.n_samples, source.n_samples), dtype=source.dtype)

    def fill(pair: _Pair) -> None:
        rows, columns = pair
        K[rows, columns] = _tile(source, pair, workers)
        if source.symmetric and rows != columns:
            K[columns, rows] = K[rows, columns].T

    workers.each(_sparing(fill, source, workers), _pairs(source))
    return K


def _sparing(
    work: Callable[[_Pair], Result], source: GramSource, workers: Workers
) -> Callable[[_Pair], list[Result]]:
    """Work on tiles that is done in pieces where memory gives out."""
    return lambda pair: workers.shortage.in_tiles(work, pair, symmetric=source.symmetric)


def _pairs(source: GramSource) -> Iterator[_Pair]:
    return tile_pairs(source.n_samples, source.side, symmetric=source.symmetric)


def _tile(source: GramSource, pair: _Pair, workers: Workers) -> Floats:
    rows, columns = pair
    held = source.held(rows, columns)
    if held is not None:
        return held
    shape = (rows.stop - rows.start, columns.stop - columns.start)
    tile = workers.scratch(shape, source.dtype)
    source.fill(rows, columns, tile)
    return tile
