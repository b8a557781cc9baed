"""Memory that gives out in the middle of a tile: smaller tiles are tried, and told of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ikpca.errors import OutOfMemory
from ikpca.gram.tiles import quarters

__all__ = ["Shortage"]

Result = TypeVar("Result")

#: Tiles of this side are not cut further: what does not fit then is not the tile.
_LEAST_SIDE = 16


class Shortage:
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
                if side <= _LEAST_SIDE:
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
