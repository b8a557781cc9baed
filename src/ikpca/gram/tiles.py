"""Tiles of a matrix."""

from __future__ import annotations

from collections.abc import Iterator

#: Side of a square tile: large enough for full matrix-product speed, 8 MB in float64.
TILE = 1024
#: Smallest side of the tiles that diagonal tiles are divided into; smaller ones cost more calls
#: than they save.
_MIN_DIAGONAL_SIDE = 256


def tile_slices(length: int, size: int = TILE) -> Iterator[slice]:
    """Divide 0..length into consecutive slices of at most ``size``.

    Examples
    --------
    >>> list(tile_slices(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


def tile_pairs(length: int, size: int = TILE, *, symmetric: bool) -> Iterator[tuple[slice, slice]]:
    """Yield pairs of slices that cover an l×l matrix, or its upper triangle.

    Tiles on the diagonal of a symmetric matrix are divided further, as half of each is redundant.

    Examples
    --------
    >>> len(list(tile_pairs(2048, 1024, symmetric=False)))
    4
    >>> sum(a.stop - a.start for a, b in tile_pairs(1024, 1024, symmetric=True) if a == b)
    1024
    """
    for rows in tile_slices(length, size):
        for columns in tile_slices(length, size):
            if not symmetric or columns.start > rows.start:
                yield rows, columns
            elif columns.start == rows.start:
                yield from _diagonal_pairs(rows)


def _diagonal_pairs(part: slice) -> Iterator[tuple[slice, slice]]:
    """Yield tiles that cover the upper triangle of a square tile on the diagonal."""
    length = part.stop - part.start
    if length < 2 * _MIN_DIAGONAL_SIDE:
        yield part, part
        return
    middle = part.start + length // 2
    first, second = slice(part.start, middle), slice(middle, part.stop)
    yield from _diagonal_pairs(first)
    yield first, second
    yield from _diagonal_pairs(second)
