"""A and AK' in shards on the workers of a Dask cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ikpca.engines.dask_gram import DaskGram
from ikpca.engines.peers import WorkerLost
from ikpca.engines.shard import Block, Transform
from ikpca.gram import CentredGram
from ikpca.hebbian import Floats, Indices

__all__ = ["DaskStore"]


class DaskStore:
    """The coefficient store over a cluster; a block of patterns is one message to every shard.

    With the rows of a block goes the transform of the block before it, and with the answer come the
    rows of the block after it. What was done since the mark is written down, and the mark itself is
    kept here: a shard that is lost is brought to where it was, and the others do not notice.

    Parameters
    ----------
    source : DaskGram
    gram : CentredGram
        Of the source.
    rows, products : ndarray of shape (r or 2r, l)
        R and RK' to begin with.
    """

    def __init__(self, source: DaskGram, gram: CentredGram, rows: Floats, products: Floats) -> None:
        self._source, self._cluster = source, source.cluster
        self._gram = gram
        self._offsets = gram.means.row_means - gram.dtype.type(gram.centring.grand_mean)
        self._mark = (np.array(rows, dtype=gram.dtype), np.array(products, dtype=gram.dtype))
        #: Since the mark: what all shards have done, and what they are yet to hear of.
        self._done: list[tuple[Floats, Indices, Floats]] = []
        self._unsaid: list[tuple[Floats, Indices, Floats]] = []
        self._grams: dict[int, Floats] = {}
        self._projected: Indices | None = None
        self._next: tuple[Indices, Floats] | None = None
        everyone = range(len(self._cluster.sizes))
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

    def project(self, patterns: Indices, upcoming: Indices | None = None) -> tuple[Floats, Floats]:
        """Send the rows of the patterns; every shard answers for those that are its own."""
        traffic = self._cluster.traffic
        before = replace(traffic)
        coming = self._cluster.split(patterns[:0] if upcoming is None else upcoming)
        blocks = self._blocks(patterns)
        calls = [(blocks[i], chosen) for i, (_, chosen) in enumerate(coming)]
        answers = self._tell("project", calls)
        self._projected = patterns
        Y = np.empty((len(self._mark[0]), len(patterns)))
        G = np.empty((len(patterns), len(patterns)))
        for block, (products, values, _) in zip(blocks, answers, strict=True):
            Y[:, block.own], G[:, block.own] = products, values
        if upcoming is not None:
            rows = np.empty((len(upcoming), self._cluster.n_features), dtype=self.dtype)
            for (own, _), (_, _, theirs) in zip(coming, answers, strict=True):
                rows[own] = theirs
            self._next = (upcoming, rows)
        self._source.entries += len(patterns) * self.n_samples
        traffic.blocks += 1
        traffic.block_messages += traffic.messages - before.messages
        traffic.block_bytes += traffic.bytes_out - before.bytes_out
        traffic.block_bytes += traffic.bytes_in - before.bytes_in
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
            product = np.sum(self._tell("gram", [(power,)]), axis=0)
            self._grams[power] = (product + product.T) / 2
        return self._grams[power]

    def residuals(self, eigenvalues: Floats) -> Floats:
        """Of the leading rows, from sums of squares over the shards."""
        values = np.asarray(eigenvalues, dtype=np.float64)
        parts = self._tell("defects", [(values,)])
        defects, lengths = (np.sqrt(np.sum(part, axis=0)) for part in zip(*parts, strict=True))
        scale = lengths * np.abs(values).max(initial=0.0)
        return np.divide(defects, scale, out=np.zeros_like(defects), where=scale > 0)

    def mark(self) -> None:
        """Remember R and RK', there and here."""
        rows, products = zip(*self._tell("mark", [()]), strict=True)
        self._mark = (np.hstack(rows), np.hstack(products))
        self._done = []

    def rewind(self) -> None:
        """Back to the mark."""
        self._unsaid, self._done, self._grams = [], [], {}
        self._tell("rewind", [()])

    def change(self, n_rows: int) -> float:
        """tr((A − A₀)K'(A − A₀)ᵀ)."""
        return max(float(np.sum(self._tell("change", [(n_rows,)]))), 0.0)

    def read(self) -> tuple[Floats, Floats]:
        """R and RK', fetched."""
        rows, products = zip(*self._tell("read", [()]), strict=True)
        return np.hstack(rows), np.hstack(products)

    def _tell(self, verb: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """What the shards have not heard yet, and a question, in one message."""
        if len(arguments) == 1:
            arguments = arguments * len(self._cluster.sizes)
        news = [Transform(T, C) for T, _, C in self._unsaid]
        answers = self._cluster.call("do", [(news, verb, *given) for given in arguments])
        self._done += self._unsaid
        self._unsaid = []
        return answers

    def _blocks(self, patterns: Indices) -> list[Block]:
        if self._next is not None and self._next[0] is patterns:
            rows = self._next[1]
        else:
            rows = self._cluster.rows(patterns)
        offsets = self._offsets[patterns]
        return [
            Block(rows, offsets, own, own_rows) for own, own_rows in self._cluster.split(patterns)
        ]

    def _beginning(self, i: int) -> tuple[Floats, Floats, Floats]:
        here = self._cluster.columns(i)
        rows, products = self._mark
        return rows[:, here], products[:, here], self._gram.centring.column_means[here]

    def _restore(self, i: int) -> None:
        """From the mark through all that was done since, for one shard.

        The block that was projected last comes back with its transform, or is projected again.
        """
        self._replay(i, "open", *self._beginning(i))
        for T, patterns, C in self._done:
            block = self._blocks(patterns)[i] if patterns.size else None
            self._replay(i, "do", [Transform(T, C, block)], "nothing")
        if any(patterns.size for _, patterns, _ in self._unsaid):
            # Their transforms count on the kernel rows of the projection.
            assert self._projected is not None
            block = self._blocks(self._projected)[i]
            self._replay(i, "do", [], "project", block, self._projected[:0])

    def _replay(self, i: int, method: str, *arguments: Any) -> None:
        answer = self._cluster.attempt(method, [arguments], [i])[0]
        if isinstance(answer, WorkerLost):
            raise answer
