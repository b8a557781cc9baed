"""Tiles of a matrix, and smaller tiles after a MemoryError."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from ikpca.errors import OutOfMemory

#: Side of a square tile: large enough for full matrix-product speed, 8 MB in float64.
TILE = 1024
#: Below this, what a smaller tile saves is lost in calls.
_LEAST_SIDE = 256


def tile_slices(length: int, size: int = TILE) -> Iterator[slice]:
    """Cut 0..length into consecutive slices of at most ``size``.

    Examples
    --------
    >>> list(tiles(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


def tile_pairs(length: int, size: int = TILE, *, symmetric: bool) -> Iterator[tuple[slice, slice]]:
    """Pairs of slices that cover an l×l matrix, or its upper triangle.

    Tiles on the diagonal of a symmetric matrix are cut further, as half of each would be for
    nothing.

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


def quarters(rows: slice, columns: slice, *, symmetric: bool) -> Iterator[tuple[slice, slice]]:
    """The pieces of a tile that is cut in the middle, both ways.

    Examples
    --------
    >>> len(list(quarters(slice(0, 8), slice(8, 16), symmetric=True)))
    4
    >>> len(list(quarters(slice(0, 8), slice(0, 8), symmetric=True)))
    3
    """
    for above in _halves(rows):
        for beside in _halves(columns):
            if not symmetric or rows != columns or beside.start >= above.start:
                yield above, beside


def _halves(part: slice) -> Iterator[slice]:
    middle = (part.start + part.stop + 1) // 2
    yield slice(part.start, middle)
    if middle < part.stop:
        yield slice(middle, part.stop)


def _diagonal_pairs(part: slice) -> Iterator[tuple[slice, slice]]:
    """The upper triangle of a square on the diagonal, halved as long as it pays."""
    length = part.stop - part.start
    if length < 2 * _LEAST_SIDE:
        yield part, part
        return
    middle = part.start + length // 2
    first, second = slice(part.start, middle), slice(middle, part.stop)
    yield from _diagonal_pairs(first)
    yield first, second
    yield from _diagonal_pairs(second)


Result = TypeVar("Result")

#: Tiles of this side are not cut further: what does not fit then is not the tile.
_SMALLEST_RETRY = 16


class MemoryErrorRetry:
    """Works on tiles, on quarters of them where memory gives out, and from then on on those.

    Attributes
    ----------
    side : int or None
        Of the largest tiles that are still tried; None as long as there is memory for all.
    """

    def __init__(self) -> None:
        self.side: int | None = None

    @property
    def note(self) -> str:
        """Empty, or what was done about it."""
        if self.side is None:
            return ""
        return f"memory gave out, and went on in tiles of {self.side} rows or fewer"

    def in_tiles(
        self,
        work: Callable[[tuple[slice, slice]], Result],
        pair: tuple[slice, slice],
        *,
        symmetric: bool,
    ) -> list[Result]:
        """Results of ``work`` on a tile, or on all pieces of it.

        Of a tile on the diagonal of a symmetric matrix, ``work`` makes the lower half by itself.
        """
        side = max(part.stop - part.start for part in pair)
        if self.side is None or side <= self.side:
            try:
                return [work(pair)]
            except MemoryError as error:
                if side <= _SMALLEST_RETRY:
                    raise OutOfMemory(
                        f"There is no memory left, not even for a tile of {side} rows: close other "
                        "programs, pass max_memory, or ask for fewer rows or components."
                    ) from error
                self.side = min(side // 2, self.side or side)
        pieces = quarters(*pair, symmetric=symmetric)
        return [
            result for piece in pieces for result in self.in_tiles(work, piece, symmetric=symmetric)
        ]

    def in_strips(self, work: Callable[[slice], Result], part: slice) -> list[Result]:
        """Results of ``work`` on columns, or on halves of them."""
        return self.in_tiles(lambda pair: work(pair[1]), (slice(0, 1), part), symmetric=False)
