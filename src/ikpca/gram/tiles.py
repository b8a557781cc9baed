"""The one tile iterator; no slice arithmetic anywhere else."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["TILE", "tile_pairs", "tiles"]

#: Side of a square tile: large enough for full matrix-product speed, 8 MB in float64.
TILE = 1024


def tiles(length: int, size: int = TILE) -> Iterator[slice]:
    """Cut 0..length into consecutive slices of at most ``size``.

    Examples
    --------
    >>> list(tiles(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


def tile_pairs(length: int, size: int = TILE, *, symmetric: bool) -> Iterator[tuple[slice, slice]]:
    """Pairs of slices that cover an l×l matrix, or its upper triangle of tiles."""
    for rows in tiles(length, size):
        for columns in tiles(length, size):
            if not symmetric or columns.start >= rows.start:
                yield rows, columns
