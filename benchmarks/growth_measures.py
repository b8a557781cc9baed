"""Growth of time and memory with the number of rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from benchmarks.contestants import Contestant, run_contestant

from ikpca.gram import ComputedGram, Workers, center_gram, tile_pairs
from ikpca.kernels import FeatureSplit, Floats, Gaussian


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


@dataclass(frozen=True)
class ProductRates:
    """Kernel entries per second.

    Parameters
    ----------
    product : float
        Of one K'V: tiles, their exp, their part of the product.
    rows : float
        Of the bare products of the same tiles, from the rows as they are: all N features.
    operands : float
        Of the bare products of the operands that the tiles are made of, which leave out features
        that never vary or hardly do.
    """

    product: float
    rows: float
    operands: float


def product_rates(
    X: Floats, gamma: float, columns: int, threads: int, repeats: int = 3
) -> ProductRates:
    """Measure all in turn, the best of each."""
    frame = FeatureSplit.of(X)
    source = ComputedGram(Gaussian(gamma), X, frame=frame)
    right = Gaussian(gamma).fold(X, frame)
    left = Gaussian(gamma).mirror(right.copy())
    pairs = list(tile_pairs(len(X), source.side, symmetric=True))
    V = np.random.default_rng(0).normal(size=(len(X), columns)).astype(X.dtype)
    with Workers(threads) as workers:

        def bare(above: Floats, beside: Floats, pair: tuple[slice, slice]) -> None:
            rows, across = pair
            shape = (rows.stop - rows.start, across.stop - across.start)
            np.matmul(above[rows], beside[across].T, out=workers.scratch(shape, X.dtype))

        gram, _ = center_gram(source, None, workers)
        tasks: dict[str, Callable[[], object]] = {
            "product": partial(gram.multiply, V),
            "rows": partial(workers.each, partial(bare, X, X), pairs),
            "operands": partial(workers.each, partial(bare, left.dense, right.dense), pairs),
        }
        taken = [{name: _seconds(task) for name, task in tasks.items()} for _ in range(repeats)]
    entries = sum((a.stop - a.start) * (b.stop - b.start) for a, b in pairs)
    return ProductRates(*(entries / min(one[name] for one in taken) for name in tasks))


def _seconds(task: Callable[[], object]) -> float:
    begun = time.perf_counter()
    task()
    return time.perf_counter() - begun
