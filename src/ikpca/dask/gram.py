"""Kernel matrix of rows that are distributed over a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ikpca.dask.cluster import Cluster, PeerLost, PeerWorkers, WorkerLost
from ikpca.dask.messages import PairTask
from ikpca.gram import LandmarkRows, cross_gram
from ikpca.kernels import Floats, Indices, Kernel


def assign_pairs(sizes: Sequence[int], side: int) -> list[list[PairTask]]:
    """Who works on which pair of shards: every shard on its next ones, in a circle.

    With an even number of shards two face each other; there, either takes half of the pair.
    """
    number = len(sizes)
    plan: list[list[PairTask]] = [[] for _ in sizes]

    def invite(host: int, guest: int, rows: slice, columns: slice) -> None:
        for start in range(rows.start, rows.stop, side):
            part = slice(start, min(start + side, rows.stop))
            plan[host].append(PairTask(guest, part, columns))

    for host in range(number):
        for step in range(1, (number - 1) // 2 + 1):
            guest = (host + step) % number
            invite(host, guest, slice(0, sizes[guest]), slice(0, sizes[host]))
    if number % 2 == 0:
        for host in range(number // 2):
            guest = host + number // 2
            middle = sizes[guest] // 2
            invite(host, guest, slice(0, middle), slice(0, sizes[host]))
            invite(guest, host, slice(0, sizes[host]), slice(middle, sizes[guest]))
    return plan


def tree_levels(number: int) -> Iterator[list[tuple[int, int]]]:
    """Pairs (a, b), level by level, of which a takes in b; in the end all is in 0.

    Examples
    --------
    >>> list(tree_levels(5))
    [[(0, 1), (2, 3)], [(0, 2)], [(0, 4)]]
    """
    step = 1
    while step < number:
        yield [(a, a + step) for a in range(0, number - step, 2 * step)]
        step *= 2


Result = TypeVar("Result")
_PAUSE = 0.2


class DaskGram:
    """A source of K whose tiles are made, multiplied and summed on workers.

    Parameters
    ----------
    cluster : Cluster
    kernel : Kernel
    """

    symmetric = True

    def __init__(self, cluster: Cluster, kernel: Kernel) -> None:
        self.cluster = cluster
        self.kernel = kernel
        self.entries = 0

    @property
    def n_samples(self) -> int:
        """The order of K."""
        return self.cluster.n_samples

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the rows."""
        return self.cluster.dtype

    @property
    def side(self) -> int:
        """Of the tiles."""
        return self.cluster.side

    @property
    def strip_width(self) -> int:
        """All of a row: every shard cuts its own part."""
        return self.n_samples

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Fetch K[rows, columns] from the shards that have the columns."""
        if isinstance(rows, slice):
            rows = np.arange(rows.start, rows.stop)
        chosen = self.cluster.rows(rows)
        places, arguments = [], []
        for i in range(len(self.cluster.sizes)):
            here = self.cluster.columns(i)
            first, last = max(here.start, columns.start), min(here.stop, columns.stop)
            if first < last:
                places.append((i, slice(first - columns.start, last - columns.start)))
                arguments.append((chosen, slice(first - here.start, last - here.start)))
        found = self.cluster.call("fill", arguments, [i for i, _ in places])
        for (_, part), values in zip(places, found, strict=True):
            out[:, part] = values
        self.entries += out.size

    def stored_tile(self, rows: slice, columns: slice) -> Floats | None:
        """Nothing is stored."""
        return None

    def diagonal(self) -> Floats:
        """k(x, x), fetched once."""
        return self._diagonal

    @cached_property
    def _diagonal(self) -> Floats:
        self.entries += self.n_samples
        return np.concatenate(self.cluster.call("diagonal", [()] * len(self.cluster.sizes)))

    def product(self, V: Floats, *, square: bool) -> tuple[Floats, float]:
        """K·V, and ‖K‖²_F, which costs nothing here.

        A product has no state: where a worker is lost, it is begun again.
        """
        return _retry_lost_workers(lambda: self._product(V))

    def _product(self, V: Floats) -> tuple[Floats, float]:
        cluster = self.cluster
        number = len(cluster.sizes)
        peers = PeerWorkers([cluster.address(i) for i in range(number)])
        plan = assign_pairs(cluster.sizes, cluster.side)
        starts = cluster.starts.tolist()
        done = cluster.gather(
            "multiply", [(V, plan[i], starts, peers.rows) for i in range(number)], range(number)
        )
        for pairs in tree_levels(number):
            calls = [(peers.partial(b),) for _, b in pairs]
            moved = cluster.gather("absorb", calls, [a for a, _ in pairs])
            cluster.traffic.bytes_between += sum(moved)
        product = cluster.gather("collect", [()], [0])[0]
        self.entries += sum(entries for _, entries, _ in done)
        cluster.traffic.bytes_between += sum(n_bytes for _, _, n_bytes in done)
        return np.array(product), sum(squared for squared, _, _ in done)

    def landmark_rows(self, indices: Indices) -> LandmarkRows:
        """Rows L themselves are few and come here; K[L, :] is made and reduced on the workers."""
        return _DistributedLandmarkRows(self, indices)


class _DistributedLandmarkRows:
    """Combinations of landmark rows, kept on the workers; a lost one begins again for all."""

    def __init__(self, gram: DaskGram, indices: Indices) -> None:
        self._gram, self._cluster = gram, gram.cluster
        self._everyone = range(len(self._cluster.sizes))
        self._rows = self._cluster.rows(indices)
        self._basis = np.empty((0, len(indices)), dtype=gram.dtype)
        self._whole = False

    def landmark_gram(self) -> Floats:
        """Made here, of rows that are here."""
        return cross_gram(self._gram.kernel, self._rows, self._rows).astype(np.float64)

    def reduce(self, basis: Floats) -> Floats:
        """Every shard keeps its part."""
        self._basis = basis
        return _retry_lost_workers(self._reduce)

    def rotate(self, T: Floats) -> Floats:
        """Fetched from every shard."""

        def turn() -> Floats:
            if not self._whole:
                self._reduce()
            self._whole = False
            return np.hstack(self._ask("rotate", T))

        return _retry_lost_workers(turn)

    def _reduce(self) -> Floats:
        sums = self._ask("reduce", self._rows, self._basis)
        self._gram.entries += len(self._rows) * self._gram.n_samples
        means = (np.sum(sums, axis=0) / self._gram.n_samples).astype(self._gram.dtype)
        total: Floats = np.sum(self._ask("centre", means), axis=0)
        self._whole = True
        return (total + total.T) / 2

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        return self._cluster.gather(method, [arguments] * len(self._everyone), self._everyone)


def _retry_lost_workers(function: Callable[[], Result]) -> Result:
    """Again, for as long as the cluster agrees to build lost shards again."""
    while True:
        try:
            return function()
        except PeerLost:
            # Whoever is gone is about to be noticed.
            time.sleep(_PAUSE)
        except WorkerLost:
            continue
