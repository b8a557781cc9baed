"""Tiles of a matrix, and retries with smaller tiles after a MemoryError."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from ikpca.errors import OutOfMemory

#: Side of a square tile: large enough for full matrix-product speed, 8 MB in float64.
TILE = 1024
#: Smallest side of the tiles that diagonal tiles are divided into; smaller ones cost more calls
#: than they save.
_MIN_DIAGONAL_SIDE = 256
#: Tiles of this side are not divided after a MemoryError: they are not what takes the memory.
_MIN_RETRY_SIDE = 16
Result = TypeVar("Result")


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


class MemoryErrorRetry:
    """Retry of work on tiles in smaller tiles after a MemoryError.

    Later tiles are divided at once.

    Attributes
    ----------
    side : int or None
        Largest side of tiles that are still tried; None if there was no MemoryError.
    """

    def __init__(self) -> None:
        self.side: int | None = None

    @property
    def message(self) -> str:
        """Description of the retries; empty if there were none."""
        if self.side is None:
            return ""
        return f"memory ran out; continued with tiles of at most {self.side} rows"

    def run_tile(
        self,
        work: Callable[[tuple[slice, slice]], Result],
        pair: tuple[slice, slice],
        *,
        symmetric: bool,
    ) -> list[Result]:
        """Return the results of ``work`` on a tile, or on all tiles that it is divided into.

        Parameters
        ----------
        work : callable
            Takes a pair of slices. For a tile on the diagonal of a symmetric matrix it has to
            process both halves.
        pair : tuple of slice
            Rows and columns of the tile.
        symmetric : bool
            True if the matrix is symmetric.
        """
        side = max(part.stop - part.start for part in pair)
        if self.side is None or side <= self.side:
            try:
                return [work(pair)]
            except MemoryError as error:
                if side <= _MIN_RETRY_SIDE:
                    raise OutOfMemory(
                        f"There is no memory left for a tile of {side} rows: close other programs, "
                        "pass max_memory, or use fewer rows or components."
                    ) from error
                self.side = min(side // 2, self.side or side)
        parts = quarters(*pair, symmetric=symmetric)
        return [
            result for part in parts for result in self.run_tile(work, part, symmetric=symmetric)
        ]

    def run_columns(self, work: Callable[[slice], Result], columns: slice) -> list[Result]:
        """Return the results of ``work`` on columns, or on all parts they are divided into."""
        return self.run_tile(lambda pair: work(pair[1]), (slice(0, 1), columns), symmetric=False)


def quarters(rows: slice, columns: slice, *, symmetric: bool) -> Iterator[tuple[slice, slice]]:
    """Yield the quarters of a tile; of a symmetric tile on the diagonal, only the upper ones.

    Examples
    --------
    >>> len(list(quarters(slice(0, 8), slice(8, 16), symmetric=True)))
    4
    >>> len(list(quarters(slice(0, 8), slice(0, 8), symmetric=True)))
    3
    """
    for row_half in _halves(rows):
        for column_half in _halves(columns):
            if not symmetric or rows != columns or column_half.start >= row_half.start:
                yield row_half, column_half


def _halves(part: slice) -> Iterator[slice]:
    middle = (part.start + part.stop + 1) // 2
    yield slice(part.start, middle)
    if middle < part.stop:
        yield slice(middle, part.stop)


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
