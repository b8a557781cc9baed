"""Columns of R and RK' on a worker, and the kernel rows that change them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from ikpca.engines.columns import Columns
from ikpca.engines.messages import Block, Transform, others
from ikpca.gram import SERIAL, CentredStrip, ComputedGram, tiles
from ikpca.hebbian import Floats, Indices

__all__ = ["ShardColumns"]

_Made: TypeAlias = tuple[Block, CentredStrip]


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
        fill = self._source.meet(self._rows(block))
        for part in tiles(len(self._X), self._source.tile):
            fill(part, stacked[:n_rows, part])
        stacked[n_rows], stacked[n_rows + 1] = self._means, 1
        self.visitor_bytes = max(self.visitor_bytes, block.visitors.nbytes)
        # The visitors have done their part, and go.
        made = replace(block, visitors=block.visitors[:0].copy())
        return made, CentredStrip(stacked, block.offsets, SERIAL)

    def _rows(self, block: Block) -> Floats:
        """All rows of a block, some from here."""
        rows = np.empty((len(block.offsets), self._X.shape[1]), dtype=self._X.dtype)
        rows[block.own] = self._X[block.columns]
        rows[others(block.own, len(rows))] = block.visitors
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
