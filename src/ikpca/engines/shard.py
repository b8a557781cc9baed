"""Some rows of X, and the columns of R and RK' that belong to them, on one worker of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ikpca.engines.columns import Columns
from ikpca.gram import SERIAL, CentredStrip, ComputedGram, CountingGram, tiles
from ikpca.gram.products import multiply_and_square
from ikpca.hebbian import Floats, Indices
from ikpca.kernels import Kernel

__all__ = ["Block", "FetchRows", "Shard", "Transform", "Visit"]

#: Rows of another shard, given its number and which of its rows.
FetchRows: TypeAlias = Callable[[int, slice], Floats]


@dataclass(frozen=True, eq=False)
class Block:
    """A block of patterns as a shard sees it.

    Parameters
    ----------
    rows : ndarray of shape (m, n_features)
    offsets : ndarray of shape (m,)
        Row means of K less the grand mean.
    own : ndarray of int
        Which of the m patterns are columns of the shard.
    columns : ndarray of int
        Which columns those are.
    """

    rows: Floats
    offsets: Floats
    own: Indices
    columns: Indices


@dataclass(frozen=True, eq=False)
class Transform:
    """R ← TR, then R[:, P] += C.

    Parameters
    ----------
    T, C : ndarray
    block : Block or None
        Of the patterns P; None where it is the block that was projected last, or C is empty.
    """

    T: Floats
    C: Floats
    block: Block | None = None


@dataclass(frozen=True)
class Visit:
    """Rows of another shard come to some columns of this one."""

    shard: int
    rows: slice
    columns: slice


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
    """

    def __init__(self, X: Floats, kernel: Kernel, start: int, side: int) -> None:
        self._X = np.ascontiguousarray(X)
        self._kernel = kernel
        self._start = start
        self._side = side
        self._scratch = np.empty((0, len(X)), dtype=X.dtype)
        self._reduced = self._partial = np.empty((0, 0), dtype=X.dtype)
        self._columns: Columns | None = None
        self._means = np.empty(0, dtype=X.dtype)
        self._projected: tuple[Block, CentredStrip] | None = None
        self._most_visitors = 0

    async def rows(self, chosen: slice | Indices) -> Floats:
        """Some of the rows here."""
        return self._X[chosen]

    async def partial(self) -> Floats:
        """What the last product left here."""
        return self._partial

    def largest_visit(self) -> int:
        """The most rows of other shards that were here at a time."""
        return self._most_visitors

    def diagonal(self) -> Floats:
        """k(x, x) of the rows here."""
        return np.concatenate([self._kernel.diagonal(self._X[part]) for part in self._tiles()])

    def fill(self, rows: Floats, columns: slice) -> Floats:
        """K[rows, columns] for columns here."""
        own = self._X[columns]
        out = np.empty((len(rows), len(own)), dtype=self._X.dtype)
        for part in tiles(len(own), self._side):
            self._kernel.fill(rows, own[part], out[:, part])
        return out

    # Landmark rows: only their combinations are kept, never K[L, :] itself.

    def reduce(self, landmarks: Floats, basis: Floats) -> Floats:
        """Keep basis · K[L, here]; its row sums."""
        self._note_visitors(landmarks)
        self._reduced = np.empty((len(basis), len(self._X)), dtype=self._X.dtype)
        for part in self._tiles():
            np.matmul(basis, self.fill(landmarks, part), out=self._reduced[:, part])
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
        source = CountingGram(ComputedGram(self._kernel, self._X, self._side))
        partial = np.zeros((len(V), V.shape[1]), dtype=np.result_type(V, self._X))
        partial[here], squared = multiply_and_square(source, V[here])
        entries, n_bytes = source.entries, 0
        for visit in visits:
            visitors = fetch(visit.shard, visit.rows)
            self._note_visitors(visitors)
            first = starts[visit.shard] + visit.rows.start
            there = slice(first, first + len(visitors))
            for columns in tiles(visit.columns.stop - visit.columns.start, self._side):
                own = _shifted(columns, visit.columns.start)
                among_all = _shifted(own, self._start)
                tile = SERIAL.scratch((len(visitors), own.stop - own.start), self._X.dtype)
                self._kernel.fill(visitors, self._X[own], tile)
                partial[there] += tile @ V[among_all]
                partial[among_all] += tile.T @ V[there]
                squared += 2 * float(np.vdot(tile, tile))
                entries += tile.size
            n_bytes += visitors.nbytes
        self._partial = partial
        return squared, entries, n_bytes

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
        self._columns = Columns(rows, products, self._X.dtype)
        self._means = np.array(column_means)
        self._projected = None

    def do(self, transforms: Sequence[Transform], verb: str, *arguments: Any) -> Any:
        """Catch up with transforms, then answer: one message for both."""
        assert self._columns is not None
        for transform in transforms:
            self._transform(transform, self._columns)
        return getattr(self, f"_do_{verb}")(self._columns, *arguments)

    def _transform(self, transform: Transform, columns: Columns) -> None:
        T, C = (part.astype(self._X.dtype) for part in (transform.T, transform.C))
        if C.shape[1] == 0:
            none = np.empty(0, dtype=np.intp)
            columns.transform(T, C, None, none, C)
            return
        if transform.block is not None:
            self._projected = (transform.block, self._strip(transform.block, len(columns)))
        assert self._projected is not None
        block, strip = self._projected
        columns.transform(T, C, strip, block.columns, C[:, block.own])

    def _strip(self, block: Block, room: int) -> CentredStrip:
        n_rows = len(block.rows)
        self._note_visitors(block.rows)
        if len(self._scratch) < n_rows + 2 + room:
            self._scratch = np.empty((n_rows + 2 + room, len(self._X)), dtype=self._X.dtype)
        stacked = self._scratch[: n_rows + 2 + room]
        for part in self._tiles():
            self._kernel.fill(block.rows, self._X[part], stacked[:n_rows, part])
        stacked[n_rows], stacked[n_rows + 1] = self._means, 1
        return CentredStrip(stacked, block.offsets, SERIAL)

    def _do_nothing(self, columns: Columns) -> None:
        """The transforms were all."""

    def _do_project(
        self, columns: Columns, block: Block, upcoming: Indices
    ) -> tuple[Floats, Floats, Floats]:
        """(RK')[:, P] and K'[P, P] for the patterns here, and the rows that come next."""
        strip = self._strip(block, len(columns))
        self._projected = (block, strip)
        Y, G = columns.products[:, block.columns], strip.columns(block.columns)
        return Y.astype(np.float64), G.astype(np.float64), self._X[upcoming]

    def _do_gram(self, columns: Columns, power: int) -> Floats:
        return columns.gram(power)

    def _do_defects(self, columns: Columns, eigenvalues: Floats) -> tuple[Floats, Floats]:
        """Σ(AK' − λA)² and ΣA² of the leading rows, over the columns here."""
        A = columns.rows()[: len(eigenvalues)].astype(np.float64)
        defects = columns.products[: len(eigenvalues)] - eigenvalues[:, None] * A
        return np.square(defects).sum(axis=1), np.square(A).sum(axis=1)

    def _do_mark(self, columns: Columns) -> tuple[Floats, Floats]:
        return columns.mark()

    def _do_rewind(self, columns: Columns) -> None:
        columns.rewind()

    def _do_change(self, columns: Columns, n_rows: int) -> float:
        return columns.change(n_rows)

    def _do_read(self, columns: Columns) -> tuple[Floats, Floats]:
        return columns.rows(), columns.products

    def _tiles(self) -> Any:
        return tiles(len(self._X), self._side)

    def _note_visitors(self, rows: Floats) -> None:
        self._most_visitors = max(self._most_visitors, len(rows))


def _shifted(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)
