"""How time and memory grow with the rows, and how close a product comes to its bare tiles."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ikpca.experiments.scale import Contestant, run_contestant
from ikpca.gram import ComputedGram, Workers, centred, tile_pairs
from ikpca.hebbian import Floats
from ikpca.kernels import Gaussian

__all__ = ["GrowthRow", "exponent", "growth", "product_rate"]


@dataclass(frozen=True)
class GrowthRow:
    """One size: the pass that evaluates all of K, and the peak of the whole fit."""

    rows: int
    seconds_per_pass: float
    peak_bytes: int | None


def growth(
    load: Callable[[int], Floats], sizes: Sequence[int], gamma: float, threads: int, budget: str
) -> list[GrowthRow]:
    """Fit krylov at every size within one budget, each in a process of its own."""
    contestant = Contestant("krylov", "_ours", {"tol": 2e-3, "max_memory": budget})
    found = []
    for size in sizes:
        fit = run_contestant(contestant, partial(load, size), gamma, 16, threads)
        found.append(GrowthRow(size, fit.first_pass, fit.peak_bytes))
    return found


def exponent(rows: Sequence[int], values: Sequence[float]) -> float:
    """The slope of values over rows in logarithms.

    Examples
    --------
    >>> round(exponent([10, 100, 1000], [3.0, 300.0, 30000.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(rows), np.log(values), 1)[0])


def product_rate(
    X: Floats, gamma: float, columns: int, threads: int, repeats: int = 3
) -> tuple[float, float]:
    """Kernel entries per second of one K'V, and of the bare products of the same tiles.

    Both in turn, the best of each; the bare products do all that a tile needs but its exp and its
    part of K'V.
    """
    kernel = Gaussian(gamma)
    source = ComputedGram(kernel, X, fold=True)
    left, right = kernel.fold(X)
    pairs = list(tile_pairs(len(X), source.side, symmetric=True))
    V = np.random.default_rng(0).normal(size=(len(X), columns)).astype(X.dtype)
    with Workers(threads) as workers:

        def bare(pair: tuple[slice, slice]) -> None:
            rows, across = pair
            shape = (rows.stop - rows.start, across.stop - across.start)
            np.matmul(left[rows], right[across].T, out=workers.scratch(shape, X.dtype))

        gram, _ = centred(source, None, workers)
        ours, theirs = [], []
        for _ in range(repeats):
            ours.append(_seconds(partial(gram.multiply, V)))
            theirs.append(_seconds(partial(workers.each, bare, pairs)))
    entries = sum((a.stop - a.start) * (b.stop - b.start) for a, b in pairs)
    return entries / min(ours), entries / min(theirs)


def _seconds(task: Callable[[], object]) -> float:
    begun = time.perf_counter()
    task()
    return time.perf_counter() - begun
