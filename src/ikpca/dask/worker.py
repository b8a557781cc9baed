"""Rows, coefficients and kernel products of one worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ikpca.dask.messages import Block, FetchRows, MemoryUse, PairTask, Transform, other_blocks
from ikpca.gram import SERIAL, CenteredStrip, ComputedGram, CountingGram, tile_slices
from ikpca.gram.sources import multiply_and_square
from ikpca.kernels import FeatureSplit, Floats, Indices, Kernel, MatmulKernel
from ikpca.solvers.coefficient_store import Columns

_Made: TypeAlias = tuple[Block, CenteredStrip]


class ShardColumns:
    """What a shard answers to the verbs of a coefficient store.

    Kernel rows of the block that comes next are made in a thread of their own: an answer travels,
    and a sweep runs elsewhere, while this worker computes.

    Parameters
    ----------
    X : ndarray of shape (rows here, n_features)
    source : ComputedGram
        Of those rows.
    rows, products : ndarray of shape (r or 2r, rows here)
    column_means : ndarray of shape (rows here,)
    """

    def __init__(
        self, X: Floats, source: ComputedGram, rows: Floats, products: Floats, column_means: Floats
    ) -> None:
        self._X = X
        self._source = source
        self._columns = Columns(rows, products, source.dtype)
        self._means = np.array(column_means)
        # In turn: one strip waits for its transform while the next one is made.
        self._buffers = [np.empty((0, len(X)), dtype=source.dtype) for _ in range(2)]
        self._projected: _Made | None = None
        self._announced: Future[_Made] | None = None
        #: Of the largest block that was here.
        self.visitor_bytes = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="strip")

    @property
    def strip_bytes(self) -> int:
        """Of both buffers."""
        return sum(buffer.nbytes for buffer in self._buffers)

    @property
    def column_bytes(self) -> int:
        """Of R and RK', and of their marks."""
        return 2 * (self._columns.rows().nbytes + self._columns.products.nbytes)

    def do(self, transforms: Sequence[Transform], verb: str, *arguments: Any) -> Any:
        """Catch up with transforms, then answer: one message for both."""
        for transform in transforms:
            self._transform(transform)
        return getattr(self, f"_do_{verb}")(*arguments)

    def _transform(self, transform: Transform) -> None:
        T, C = (part.astype(self._source.dtype) for part in (transform.T, transform.C))
        if C.shape[1] == 0:
            none = np.empty(0, dtype=np.intp)
            self._columns.transform(T, C, None, none, C)
            return
        if transform.block is not None:
            self._projected = self._make(transform.block)
        assert self._projected is not None
        block, strip = self._projected
        self._columns.transform(T, C, strip, block.columns, C[:, block.own])

    def _make(self, block: Block) -> _Made:
        """K'[P, here], in the buffer that was not used last."""
        n_rows = len(block.offsets)
        self._buffers.reverse()
        wanted = n_rows + 2 + len(self._columns)
        if len(self._buffers[0]) < wanted:
            self._buffers[0] = np.empty((wanted, len(self._X)), dtype=self._source.dtype)
        stacked = self._buffers[0][:wanted]
        fill = self._source.cross_filler(self._rows(block))
        for part in tile_slices(len(self._X), self._source.strip_width):
            fill(part, stacked[:n_rows, part])
        stacked[n_rows], stacked[n_rows + 1] = self._means, 1
        self.visitor_bytes = max(self.visitor_bytes, block.visitors.nbytes)
        # The visitors have done their part, and go.
        made = replace(block, visitors=block.visitors[:0].copy())
        return made, CenteredStrip(stacked, block.offsets, SERIAL)

    def _rows(self, block: Block) -> Floats:
        """All rows of a block, some from here."""
        rows = np.empty((len(block.offsets), self._X.shape[1]), dtype=self._X.dtype)
        rows[block.own] = self._X[block.columns]
        rows[other_blocks(block.own, len(rows))] = block.visitors
        return rows

    def _do_nothing(self) -> None:
        """The transforms were all."""

    def _do_project(
        self, block: Block | None, upcoming: Block | None, wanted: Indices
    ) -> tuple[Floats, Floats, Floats]:
        """(RK')[:, P] and K'[P, P] for the patterns here, and rows that will be asked for.

        No block stands for the one that was announced as upcoming.
        """
        announced, self._announced = self._announced, None
        made = None if announced is None else announced.result()
        self._projected = made if block is None else self._make(block)
        assert self._projected is not None
        here, strip = self._projected
        Y, G = self._columns.products[:, here.columns], strip.columns(here.columns)
        if upcoming is not None:
            self._announced = self._thread.submit(self._make, upcoming)
        return Y, G, self._X[wanted]

    def _do_gram(self, power: int) -> Floats:
        return self._columns.gram(power)

    def _do_defects(self, eigenvalues: Floats) -> tuple[Floats, Floats]:
        """Σ(AK' − λA)² and ΣA² of the leading rows, over the columns here."""
        A = self._columns.rows()[: len(eigenvalues)].astype(np.float64)
        defects = self._columns.products[: len(eigenvalues)] - eigenvalues[:, None] * A
        return np.square(defects).sum(axis=1), np.square(A).sum(axis=1)

    def _do_mark(self) -> tuple[Floats, Floats]:
        return self._columns.mark()

    def _do_rewind(self) -> None:
        self._columns.rewind()

    def _do_change(self, n_rows: int) -> float:
        return self._columns.change(n_rows)

    def _do_read(self) -> tuple[Floats, Floats]:
        return self._columns.rows(), self._columns.products


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
        split = None
        if fold is not None and isinstance(kernel, MatmulKernel):
            split = (
                FeatureSplit.from_rows(self._X)
                if fold == "apart"
                else FeatureSplit.from_rows(self._X).without_sparse()
            )
        self._source = ComputedGram(kernel, self._X, side, split=split)
        self._operands = 0 if split is None else split.operand_bytes(len(X))
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

    def held(self) -> MemoryUse:
        """Bytes, for those who want to know where memory goes."""
        columns = 0
        if self._columns is not None:
            columns = self._columns.column_bytes
            self._note("strips", self._columns.strip_bytes)
            self._note("visitors", self._columns.visitor_bytes)
        return MemoryUse(
            rows=self._X.nbytes, operands=self._operands, columns=columns, **self._most
        )

    def diagonal(self) -> Floats:
        """k(x, x) of the rows here."""
        return self._source.diagonal()

    def fill(self, rows: Floats, columns: slice) -> Floats:
        """K[rows, columns] for columns here."""
        out = np.empty((len(rows), columns.stop - columns.start), dtype=self._X.dtype)
        fill = self._source.cross_filler(rows)
        for part in tile_slices(out.shape[1], self._source.side):
            fill(_shifted(part, columns.start), out[:, part])
        return out

    # Landmark rows: only their combinations are kept, never K[L, :] itself.

    def reduce(self, landmarks: Floats, basis: Floats) -> Floats:
        """Keep basis · K[L, here]; its row sums."""
        self._reduced = np.empty((len(basis), len(self._X)), dtype=self._X.dtype)
        for part in tile_slices(len(self._X), self._source.side):
            np.matmul(basis, self.fill(landmarks, part), out=self._reduced[:, part])
        self._note("visitors", landmarks.nbytes)
        strip = len(landmarks) * self._source.side * self._X.dtype.itemsize
        self._note("strips", self._reduced.nbytes + strip)
        return self._reduced.sum(axis=1, dtype=np.float64)

    def centre(self, means: Floats) -> Floats:
        """Take the row means off; the product of what is left with its transpose."""
        self._reduced -= means[:, None]
        return (self._reduced @ self._reduced.T).astype(np.float64)

    def rotate(self, T: Floats) -> Floats:
        """T times what was kept, which is then forgotten."""
        reduced, self._reduced = self._reduced, self._reduced[:0]
        return T @ reduced

    # Products K·V.

    def multiply(
        self, V: Floats, visits: Sequence[PairTask], starts: Sequence[int], fetch: FetchRows
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
        fill = self._source.cross_filler(visitors)
        for part in tile_slices(columns.stop - columns.start, self._source.side):
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
