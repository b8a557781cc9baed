"""Coefficients distributed over a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ikpca.dask.cluster import WorkerLost
from ikpca.dask.gram import DaskGram
from ikpca.dask.messages import Block, Transform, other_blocks
from ikpca.gram import CenteredGram
from ikpca.kernels import Floats, Indices


class DaskStore:
    """The coefficient store over a cluster; a block of patterns is one message to every shard.

    With the question for a block go the transform of the block before it and the rows of the block
    after it, which shards then work on while the answer travels; with the answer come the rows of
    the block after that. What was done since the mark is written down, and the mark itself is kept
    here: a shard that is lost is brought to where it was, and the others do not notice.

    Parameters
    ----------
    source : DaskGram
    gram : CenteredGram
        Of the source.
    rows, products : ndarray of shape (r or 2r, l)
        R and RK' to begin with.
    """

    def __init__(
        self, source: DaskGram, gram: CenteredGram, rows: Floats, products: Floats
    ) -> None:
        self._source, self._cluster = source, source.cluster
        self._gram = gram
        self._offsets = gram.means.row_means - gram.dtype.type(gram.centering.grand_mean)
        self._mark = (np.array(rows, dtype=gram.dtype), np.array(products, dtype=gram.dtype))
        #: Since the mark: what all shards have done, and what they are yet to hear of.
        self._done: list[tuple[Floats, Indices, Floats]] = []
        self._unsaid: list[tuple[Floats, Indices, Floats]] = []
        self._grams: dict[int, Floats] = {}
        #: The block that was asked for last, and the one that shards are working on ahead.
        self._projected: Indices | None = None
        self._announced: Indices | None = None
        self._rows: list[tuple[Indices, Floats]] = []
        everyone = range(len(self._cluster.sizes))
        self._alone = len(everyone) == 1
        self._cluster.call("open", [self._beginning(i) for i in everyone])
        self._cluster.restore = self._restore

    @property
    def n_samples(self) -> int:
        """The number of columns."""
        return self._gram.n_samples

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the kernel matrix."""
        return self._gram.dtype

    @property
    def entries(self) -> int:
        """Entries of K evaluated so far."""
        return self._gram.entries

    @property
    def mean_diagonal(self) -> float:
        """κ, known since the centring."""
        return self._gram.mean_diagonal

    @property
    def squared_norm(self) -> float:
        """Known since the centring, too."""
        return self._gram.squared_norm_estimate

    @property
    def recovery(self) -> str:
        """Workers take the tiles that their memory allows; what is lost is counted elsewhere."""
        return ""

    def project(self, patterns: Indices, upcoming: Sequence[Indices] = ()) -> tuple[Floats, Floats]:
        """Every shard answers for the patterns that are its own, and begins with the next block."""
        before = replace(self._cluster.traffic)
        # The block itself, unless it was announced; the next one; and whose rows come back.
        block = None if patterns is self._announced else patterns
        following, later = (upcoming[i] if i < len(upcoming) else None for i in range(2))
        self._fetch([part for part in (block, following) if part is not None])
        wanted = self._cluster.split(patterns[:0] if later is None or self._alone else later)
        now, ahead = self._blocks(block), self._blocks(following)
        answers = self._send(
            "project", [(now[i], ahead[i], rows) for i, (_, rows) in enumerate(wanted)]
        )
        self._projected, self._announced = patterns, following
        if later is not None and not self._alone:
            self._keep_rows(later, wanted, [rows for _, _, rows in answers])
        self._source.entries += len(patterns) * self.n_samples
        self._cluster.traffic.add_block(before)
        return self._joined(patterns, answers)

    def _joined(self, patterns: Indices, answers: list[Any]) -> tuple[Floats, Floats]:
        """Y and G, of the columns that shards have of them."""
        Y = np.empty((len(self._mark[0]), len(patterns)))
        G = np.empty((len(patterns), len(patterns)))
        for (own, _), (products, values, _) in zip(
            self._cluster.split(patterns), answers, strict=True
        ):
            Y[:, own], G[:, own] = products, values
        return Y, G

    def transform(self, T: Floats, patterns: Indices, C: Floats) -> None:
        """Remembered here until there is something to ask."""
        if patterns.size and patterns is not self._projected:
            self.project(patterns)
        self._unsaid.append((T.copy(), patterns, C.copy()))
        self._grams = {}

    def gram(self, power: int) -> Floats:
        """R Rᵀ, R K'Rᵀ or RK'(RK')ᵀ; asked for more than once between transforms."""
        if power not in self._grams:
            product = np.sum(self._send("gram", [(power,)]), axis=0)
            self._grams[power] = (product + product.T) / 2
        return self._grams[power]

    def residuals(self, eigenvalues: Floats) -> Floats:
        """Of the leading rows, from sums of squares over the shards."""
        values = np.asarray(eigenvalues, dtype=np.float64)
        parts = self._send("defects", [(values,)])
        defects, lengths = (np.sqrt(np.sum(part, axis=0)) for part in zip(*parts, strict=True))
        scale = lengths * np.abs(values).max(initial=0.0)
        return np.divide(defects, scale, out=np.zeros_like(defects), where=scale > 0)

    def mark(self) -> None:
        """Remember R and RK', there and here."""
        rows, products = zip(*self._send("mark", [()]), strict=True)
        self._mark = (np.hstack(rows), np.hstack(products))
        self._done = []

    def rewind(self) -> None:
        """Back to the mark."""
        self._unsaid, self._done, self._grams = [], [], {}
        self._projected = self._announced = None
        self._send("rewind", [()])

    def change(self, n_rows: int) -> float:
        """tr((A − A₀)K'(A − A₀)ᵀ)."""
        return max(float(np.sum(self._send("change", [(n_rows,)]))), 0.0)

    def read(self) -> tuple[Floats, Floats]:
        """R and RK', fetched."""
        rows, products = zip(*self._send("read", [()]), strict=True)
        return np.hstack(rows), np.hstack(products)

    def _send(self, verb: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """What the shards have not heard yet, and a question, in one message."""
        if len(arguments) == 1:
            arguments = arguments * len(self._cluster.sizes)
        news = [Transform(T, C) for T, _, C in self._unsaid]
        answers = self._cluster.call("do", [(news, verb, *given) for given in arguments])
        self._done += self._unsaid
        self._unsaid = []
        return answers

    def _fetch(self, blocks: list[Indices]) -> None:
        """Rows of these blocks, if they are not here yet, in one message to every shard.

        Those of the last block stay, too: a shard that is lost has to hear of it again.
        """
        needed = [*blocks, self._projected, self._announced]
        self._rows = [pair for pair in self._rows if any(pair[0] is block for block in needed)]
        missing = [block for block in blocks if self._rows_here(block) is None]
        if missing and not self._alone:
            together = self._cluster.rows(np.concatenate(missing))
            ends = np.cumsum([len(block) for block in missing])[:-1]
            self._rows += zip(missing, np.split(together, ends), strict=True)

    def _rows_here(self, block: Indices) -> Floats | None:
        return next((rows for known, rows in self._rows if known is block), None)

    def _keep_rows(
        self, block: Indices, parts: list[tuple[Indices, Indices]], found: list[Floats]
    ) -> None:
        rows = np.empty((len(block), self._cluster.n_features), dtype=self.dtype)
        for (own, _), theirs in zip(parts, found, strict=True):
            rows[own] = theirs
        self._rows.append((block, rows))

    def _blocks(self, patterns: Indices | None) -> Sequence[Block | None]:
        """What every shard has to know of a block; nothing, of no block."""
        if patterns is None:
            return [None] * len(self._cluster.sizes)
        rows, offsets = self._rows_of(patterns), self._offsets[patterns]
        return [
            Block(rows[other_blocks(own, len(rows))], offsets, own, own_rows)
            for own, own_rows in self._cluster.split(patterns)
        ]

    def _rows_of(self, patterns: Indices) -> Floats:
        """From here, or fetched; a single shard has them all and needs none."""
        known = self._rows_here(patterns)
        if known is not None:
            return known
        if self._alone:
            return np.empty((len(patterns), self._cluster.n_features), dtype=self.dtype)
        return self._cluster.rows(patterns)

    def _beginning(self, i: int) -> tuple[Floats, Floats, Floats]:
        here = self._cluster.columns(i)
        rows, products = self._mark
        return rows[:, here], products[:, here], self._gram.centering.column_means[here]

    def _restore(self, i: int) -> None:
        """From the mark through all that was done since, for one shard.

        The block that was projected last is projected again: its transform may be yet to come.
        """
        self._replay(i, "open", *self._beginning(i))
        for T, patterns, C in self._done:
            block = self._blocks(patterns)[i] if patterns.size else None
            self._replay(i, "do", [Transform(T, C, block)], "nothing")
        if self._projected is not None:
            blocks = (self._blocks(self._projected)[i], self._blocks(self._announced)[i])
            self._replay(i, "do", [], "project", *blocks, self._projected[:0])

    def _replay(self, i: int, method: str, *arguments: Any) -> None:
        answer = self._cluster.attempt(method, [arguments], [i])[0]
        if isinstance(answer, WorkerLost):
            raise answer
