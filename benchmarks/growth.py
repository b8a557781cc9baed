"""Growth of time and memory with the rows; speed of K'V against bare matrix products.

MNIST is read from the folder named by IKPCA_DATA; without it the rows are scikit-learn's digits
repeated with noise.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contestants import Contestant, best_seconds, fit_ikpca, run_contestant
from ikpca.gram import ComputedGram, center_gram
from ikpca.gram.resources import Workers
from ikpca.gram.sources import tile_pairs
from ikpca.kernels import FeatureSplit, Floats, Gaussian
from ikpca.plotting import LINE_STYLES, MUTED_COLOR, TEXT_COLOR
from ikpca_papers.figures.curves import style_axes
from ikpca_papers.large import large_rows
from ikpca_papers.metrics import exponent

_COMPONENTS = 16
#: Columns of V.
_COLUMNS = 32


@dataclass(frozen=True)
class GrowthRow:
    """Seconds of the pass that evaluates all of K, and peak memory of the whole fit."""

    rows: int
    seconds_per_pass: float
    peak_bytes: int | None


def measure_growth(
    load: Callable[[int], Floats], sizes: Sequence[int], gamma: float, threads: int, budget: str
) -> list[GrowthRow]:
    """Fit krylov at every size within one memory budget, each in its own process."""
    contestant = Contestant("krylov", fit_ikpca, {"tol": 2e-3, "max_memory": budget})
    rows = []
    for size in sizes:
        fit = run_contestant(contestant, partial(load, size), gamma, _COMPONENTS, threads)
        rows.append(GrowthRow(size, fit.first_pass, fit.peak_bytes))
    return rows


@dataclass(frozen=True)
class ProductRates:
    """Kernel entries per second.

    Parameters
    ----------
    product : float
        One K'V: tiles, their exp, and their part of the product.
    rows : float
        Bare matrix products of the same tiles on the raw rows, with all N features.
    operands : float
        Bare matrix products of the operands of the tiles, without the features that are constant
        or rarely differ from a constant.
    """

    product: float
    rows: float
    operands: float


def product_rates(
    X: Floats, gamma: float, columns: int, threads: int, repeats: int = 3
) -> ProductRates:
    """Measure the three in turn and keep the best of each."""
    split = FeatureSplit.from_rows(X)
    source = ComputedGram(Gaussian(gamma), X, split=split)
    right = Gaussian(gamma).right_operand(X, split)
    left = Gaussian(gamma).left_from_right(right.copy())
    pairs = list(tile_pairs(len(X), source.side))
    V = np.random.default_rng(0).normal(size=(len(X), columns)).astype(X.dtype)
    with Workers(threads) as workers:

        def multiply_tile(A: Floats, B: Floats, pair: tuple[slice, slice]) -> None:
            rows, columns = pair
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            np.matmul(A[rows], B[columns].T, out=workers.scratch(shape, X.dtype))

        gram, _ = center_gram(source, None, workers)
        tasks: dict[str, Callable[[], object]] = {
            "product": partial(gram.multiply, V),
            "rows": partial(workers.each, partial(multiply_tile, X, X), pairs),
            "operands": partial(
                workers.each, partial(multiply_tile, left.dense, right.dense), pairs
            ),
        }
        seconds = [
            {name: best_seconds(task, 1) for name, task in tasks.items()} for _ in range(repeats)
        ]
    entries = sum((a.stop - a.start) * (b.stop - b.start) for a, b in pairs)
    return ProductRates(*(entries / min(one[name] for one in seconds) for name in tasks))


def growth_plot(rows: Sequence[GrowthRow], subtitle: str) -> Figure:
    """Plot seconds per pass and peak memory against the rows, with fitted exponents."""
    figure = Figure(figsize=(8.0, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    sizes = [row.rows for row in rows]
    _plot_power_law(left, sizes, [row.seconds_per_pass for row in rows], "Seconds per pass over K")
    peaks = [row.peak_bytes / 1e6 for row in rows if row.peak_bytes]
    if len(peaks) == len(rows):
        _plot_power_law(right, sizes, peaks, "Peak memory above the data, MB")
    style_axes(left, "Growth with the rows", subtitle)
    style_axes(right, "")
    return figure


def _plot_power_law(axes: Axes, sizes: Sequence[int], values: Sequence[float], label: str) -> None:
    slope = exponent(sizes, values)
    factor = np.exp(np.mean(np.log(values)) - slope * np.mean(np.log(sizes)))
    line = [factor * size**slope for size in sizes]
    axes.plot(sizes, line, color=MUTED_COLOR, linestyle="dashed", linewidth=1)
    axes.plot(sizes, values, color=LINE_STYLES[0][0], marker="o", linestyle="none")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(list(sizes), [f"{size:,}" for size in sizes], fontsize=8)
    axes.set_yticks([])
    axes.minorticks_off()
    background = {"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none"}
    for size, value in zip(sizes, values, strict=True):
        axes.annotate(f"{value:.3g}", (size, value), xytext=(0, 7), textcoords="offset points",
                      ha="right", fontsize=8, color=TEXT_COLOR, bbox=background)  # fmt: skip
    axes.margins(x=0.12, y=0.15)
    axes.set_xlabel("Rows $l$")
    axes.set_ylabel(label)
    axes.text(
        0.05,
        0.9,
        f"exponent {slope:.2f}",
        fontweight="bold",
        transform=axes.transAxes,
        color=TEXT_COLOR,
    )


def run_product(name: str, X: Floats, gamma: float, threads: int) -> dict[str, float]:
    """Print the rates of K'V and return its ratios to the bare products."""
    rates = product_rates(X, gamma, _COLUMNS, threads)
    ratios = {
        "product over bare tiles": rates.product / rates.rows,
        "product over bare operands": rates.product / rates.operands,
    }
    split = FeatureSplit.from_rows(X)
    print(f"{name}, l = {len(X):,}, N = {X.shape[1]}, {_COLUMNS} columns, {X.dtype}, "
          f"{threads} threads")  # fmt: skip
    print(f"features: {split.dense.sum()} dense, {split.sparse.sum()} sparse, "
          f"{(~(split.dense | split.sparse)).sum()} constant")  # fmt: skip
    print("million entries of K per second:")
    print(f"  K'V                                   {rates.product / 1e6:.0f}")
    print(f"  bare products of the same tiles       {rates.rows / 1e6:.0f}")
    print(f"  bare products of the tiles' operands  {rates.operands / 1e6:.0f}")
    for label, ratio in ratios.items():
        print(f"{label}: {ratio:.2f}")
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/scale"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[5000, 10000, 20000, 40000])
    parser.add_argument("--product-rows", type=int, default=20000)
    parser.add_argument("--budget", default="600MB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    arguments = parser.parse_args()
    name, gamma, rows_of = large_rows(arguments.data)
    threads = arguments.threads
    ratios = run_product(name, rows_of(arguments.product_rows), gamma, threads)
    title = f"{name}, {_COMPONENTS} components, max_memory={arguments.budget!r}, {threads} threads"
    print(f"\n{title}\n| rows | seconds per pass | peak MB |\n| ---: | ---: | ---: |")
    rows = measure_growth(rows_of, arguments.sizes, gamma, threads, arguments.budget)
    for row in rows:
        print(f"| {row.rows:,} | {row.seconds_per_pass:.2f} | {(row.peak_bytes or 0) / 1e6:.0f} |")
    sizes = [row.rows for row in rows]
    exponents = {
        "seconds per pass": exponent(sizes, [row.seconds_per_pass for row in rows]),
        "peak memory": exponent(sizes, [float(row.peak_bytes or 1) for row in rows]),
    }
    for label, value in exponents.items():
        print(f"{label}: exponent {value:.2f}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    result = {
        "data": name,
        "threads": threads,
        "budget": arguments.budget,
        "exponents": exponents,
        **ratios,
        "table": [asdict(row) for row in rows],
    }
    (arguments.out / "growth.json").write_text(json.dumps(result, indent=1) + "\n")
    growth_plot(rows, title).savefig(arguments.out / "growth.png", dpi=160)


if __name__ == "__main__":
    main()
