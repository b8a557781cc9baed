"""Some rows of X, and the columns of R and RK' that belong to them, on one worker of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from ikpca.engines.messages import FetchRows, Held, Transform, Visit
from ikpca.engines.shard_columns import ShardColumns
from ikpca.gram import SERIAL, ComputedGram, CountingGram, tiles
from ikpca.gram.products import multiply_and_square
from ikpca.hebbian import Floats, Indices
from ikpca.kernels import FoldingKernel, Frame, Kernel

__all__ = ["Fold", "Shard"]

Fold: TypeAlias = Literal["apart", "together"]


class Shard:
    """Lives on a worker as an actor. It holds its rows, and a block of others at a time.

    Methods that are coroutines answer at once, also while a thread computes here.

    Parameters
    ----------
    X : ndarray of shape (rows here, n_features)
    kernel : Kernel
    start : int
        Number of the first row among all.
    side : int
        Of the tiles.
    fold : {"apart", "together"} or None
        Keep the operand of a folding kernel: a copy of X, for nearly the speed of products.
        Features that hardly vary are multiplied apart, by compiled code, or with the others.
    """

    def __init__(self, X: Floats, kernel: Kernel, start: int, side: int, fold: Fold | None) -> None:
        self._X = np.ascontiguousarray(X)
        frame = None
        if fold is not None and isinstance(kernel, FoldingKernel):
            frame = Frame.of(self._X) if fold == "apart" else Frame.of(self._X).together()
        self._source = ComputedGram(kernel, self._X, side, frame=frame)
        self._operands = 0 if frame is None else frame.operand_bytes(len(X))
        self._start = start
        self._reduced = self._partial = np.empty((0, 0), dtype=X.dtype)
        self._columns: ShardColumns | None = None
        self._most = dict.fromkeys(("visitors", "strips", "vectors", "tiles"), 0)

    async def rows(self, chosen: slice | Indices) -> Floats:
        """Some of the rows here."""
        return self._X[chosen]

    async def partial(self) -> Floats:
        """What the last product left here."""
        return self._partial

    def held(self) -> Held:
        """Bytes, for those who want to know where memory goes."""
        columns = 0
        if self._columns is not None:
            columns = self._columns.column_bytes
            self._note("strips", self._columns.strip_bytes)
            self._note("visitors", self._columns.visitor_bytes)
        return Held(rows=self._X.nbytes, operands=self._operands, columns=columns, **self._most)

    def diagonal(self) -> Floats:
        """k(x, x) of the rows here."""
        return self._source.diagonal()

    def fill(self, rows: Floats, columns: slice) -> Floats:
        """K[rows, columns] for columns here."""
        out = np.empty((len(rows), columns.stop - columns.start), dtype=self._X.dtype)
        fill = self._source.meet(rows)
        for part in tiles(out.shape[1], self._source.side):
            fill(_shifted(part, columns.start), out[:, part])
        return out

    # Landmark rows: only their combinations are kept, never K[L, :] itself.

    def reduce(self, landmarks: Floats, basis: Floats) -> Floats:
        """Keep basis · K[L, here]; its row sums."""
        self._reduced = np.empty((len(basis), len(self._X)), dtype=self._X.dtype)
        for part in tiles(len(self._X), self._source.side):
            np.matmul(basis, self.fill(landmarks, part), out=self._reduced[:, part])
        self._note("visitors", landmarks.nbytes)
        strip = len(landmarks) * self._source.side * self._X.dtype.itemsize
        self._note("strips", self._reduced.nbytes + strip)
        return self._reduced.sum(axis=1, dtype=np.float64)

    def centre(self, means: Floats) -> Floats:
        """Take the row means off; the product of what is left with its transpose."""
        self._reduced -= means[:, None]
        return (self._reduced @ self._reduced.T).astype(np.float64)

    def turned(self, T: Floats) -> Floats:
        """T times what was kept, which is then forgotten."""
        reduced, self._reduced = self._reduced, self._reduced[:0]
        return T @ reduced

    # Products K·V.

    def multiply(
        self, V: Floats, visits: Sequence[Visit], starts: Sequence[int], fetch: FetchRows
    ) -> tuple[float, int, int]:
        """Keep this shard's share of K·V; ‖·‖² of its tiles, entries, bytes that were fetched.

        Every pair of shards is one shard's business, and every tile serves both of its sides.
        """
        here = slice(self._start, self._start + len(self._X))
        source = CountingGram(self._source)
        partial = np.zeros((len(V), V.shape[1]), dtype=np.result_type(V, self._X))
        # Visitors are under way while there is other work.
        asked = [fetch(visit.shard, visit.rows) for visit in visits[:1]]
        partial[here], squared = multiply_and_square(source, V[here])
        entries, n_bytes = source.entries, 0
        for number, visit in enumerate(visits):
            visitors = asked.pop()()
            asked += [fetch(later.shard, later.rows) for later in visits[number + 1 : number + 2]]
            first = starts[visit.shard] + visit.rows.start
            squared += 2 * self._receive(visitors, first, visit.columns, V, partial)
            entries += len(visitors) * (visit.columns.stop - visit.columns.start)
            n_bytes += visitors.nbytes
            # These, and those that arrive meanwhile.
            self._note("visitors", 2 * visitors.nbytes)
        self._note("vectors", V.nbytes + 2 * partial.nbytes)
        self._note("tiles", self._source.side**2 * self._X.dtype.itemsize)
        self._partial = partial
        return squared, entries, n_bytes

    def _receive(
        self, visitors: Floats, first: int, columns: slice, V: Floats, partial: Floats
    ) -> float:
        """Tiles of some visitors with columns here, for both sides; ‖·‖² of the tiles."""
        there, squared = slice(first, first + len(visitors)), 0.0
        fill = self._source.meet(visitors)
        for part in tiles(columns.stop - columns.start, self._source.side):
            own = _shifted(part, columns.start)
            among_all = _shifted(own, self._start)
            tile = SERIAL.scratch((len(visitors), own.stop - own.start), self._X.dtype)
            fill(own, tile)
            partial[there] += tile @ V[among_all]
            partial[among_all] += (V[there].T @ tile).T
            squared += float(np.vdot(tile, tile))
        return squared

    def absorb(self, other: Callable[[], Floats]) -> int:
        """Add what another shard has; bytes that were fetched."""
        theirs = other()
        self._partial = self._partial + theirs
        return int(theirs.nbytes)

    def collect(self) -> Floats:
        """The sum, which is then forgotten."""
        found, self._partial = self._partial, self._partial[:0]
        return found

    # Columns of R and RK'.

    def open(self, rows: Floats, products: Floats, column_means: Floats) -> None:
        """Begin with some columns."""
        self._columns = ShardColumns(self._X, self._source, rows, products, column_means)

    def do(self, transforms: Sequence[Transform], verb: str, *arguments: Any) -> Any:
        """What a store asks of its columns."""
        assert self._columns is not None
        return self._columns.do(transforms, verb, *arguments)

    def _note(self, kind: str, n_bytes: int) -> None:
        self._most[kind] = max(self._most[kind], n_bytes)


def _shifted(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)
