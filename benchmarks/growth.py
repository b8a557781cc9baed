"""How a fit grows with the rows, and how close K'V comes to the bare products of its tiles.

MNIST comes from the folder named by IKPCA_DATA; where that is absent, rows are scikit-learn's
digits repeated with noise.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path

from benchmarks.growth_measures import growth, product_rates
from benchmarks.scale_figures import growth_plot

from ikpca.kernels import FeatureSplit
from ikpca_papers.large import large_rows
from ikpca_papers.measures import exponent


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
    X = rows_of(arguments.product_rows)
    rates = product_rates(X, gamma, 32, threads)
    ratios = {
        "product over bare tiles": rates.product / rates.rows,
        "product over bare operands": rates.product / rates.operands,
    }
    frame = FeatureSplit.of(X)
    print(f"{name}, l = {len(X):,}, N = {X.shape[1]}, 32 columns, float32, {threads} threads")
    print(f"features: {frame.varying.sum()} vary, {frame.rare.sum()} hardly do, ", end="")
    print(f"{frame.constant.sum()} never")
    print("million entries of K per second:")
    print(f"  K'V                                   {rates.product / 1e6:.0f}")
    print(f"  bare products of the same tiles       {rates.rows / 1e6:.0f}")
    print(f"  of the operands they are made of      {rates.operands / 1e6:.0f}")
    for what, ratio in ratios.items():
        print(f"{what}: {ratio:.2f}")
    print()
    title = f"{name}, 16 components, max_memory={arguments.budget!r}, {threads} threads"
    print(title)
    print("| rows | seconds per pass | peak MB |\n| ---: | ---: | ---: |")
    rows = growth(rows_of, arguments.sizes, gamma, threads, arguments.budget)
    for row in rows:
        print(f"| {row.rows:,} | {row.seconds_per_pass:.2f} | {(row.peak_bytes or 0) / 1e6:.0f} |")
    sizes = [row.rows for row in rows]
    exponents = {
        "seconds per pass": exponent(sizes, [row.seconds_per_pass for row in rows]),
        "peak memory": exponent(sizes, [float(row.peak_bytes or 1) for row in rows]),
    }
    for what, value in exponents.items():
        print(f"{what} grows with exponent {value:.2f}")
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
