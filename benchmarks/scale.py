"""Kernel PCA of many rows: ikpca, scikit-learn, Nyström features with PCA, kernlab.

Every contestant runs in its own process with the same number of threads. Errors are computed
afterwards in double precision; that time is not counted. MNIST is read from the folder named by
IKPCA_DATA; without it the rows are scikit-learn's digits repeated with noise.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from contestants import (
    Reference,
    ScaleRow,
    all_contestants,
    exact_contestants,
    run_contestant,
)
from ikpca.plotting import LINE_STYLES, TEXT_COLOR
from ikpca_papers.errors import SubprocessFailed
from ikpca_papers.figures.curves import style_axes
from ikpca_papers.large import large_rows, usps_rows


def error_against_time(rows: Sequence[ScaleRow], subtitle: str) -> Figure:
    """Plot excess error against seconds, one labelled point per contestant."""
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.add_subplot()
    # Rounding may leave an error at or below zero, which a logarithmic axis cannot show.
    shown = [row for row in rows if row.excess_error > 0]
    for number, row in enumerate(shown):
        ours = row.name.startswith("ikpca")
        axes.plot(
            row.seconds, row.excess_error, marker="o" if ours else "s", linestyle="none",
            color=LINE_STYLES[0][0] if ours else LINE_STYLES[3][0],
        )  # fmt: skip
        near = [other for other in shown if other is not row and _labels_overlap(row, other)]
        # To the left of its point where the label would cover the next one.
        left = any(other.seconds > row.seconds for other in near)
        below = any(other in near for other in shown[:number])
        axes.annotate(
            row.name, (row.seconds, row.excess_error), ha="right" if left else "left",
            xytext=(-6 if left else 6, -12 if below else 3), textcoords="offset points",
            fontsize=8, color=TEXT_COLOR,
        )  # fmt: skip
    axes.set_xlabel("Seconds")
    axes.set_ylabel("Excess error  $E\\,/\\,E_{\\mathrm{min}} - 1$")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.3, y=0.1)
    style_axes(axes, "Accuracy against time", subtitle)
    return figure


def _labels_overlap(row: ScaleRow, other: ScaleRow) -> bool:
    horizontal = abs(np.log(row.seconds / other.seconds)) < np.log(3)
    vertical = abs(np.log(row.excess_error / other.excess_error)) < np.log(4)
    return bool(horizontal and vertical)


def markdown(rows: Sequence[ScaleRow]) -> str:
    lines = [
        "| method | seconds | entries ÷ l² | peak MB | excess error |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        entries = "–" if row.entries is None else f"{row.entries:.2f}"
        peak = "–" if row.peak_bytes is None else f"{row.peak_bytes / 1e6:.0f}"
        cells = (row.name, f"{row.seconds:.2f}", entries, peak, f"{row.excess_error:.1e}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/scale"))
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--full", action="store_true", help="more contestants")
    parser.add_argument("--usps", action="store_true", help="USPS, 7,291 rows, double precision")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    arguments = parser.parse_args()
    if arguments.usps:
        name, gamma, r, load = "USPS", 1 / 128, 10, partial(usps_rows, arguments.data)
        contestants = exact_contestants("float64")
    else:
        name, gamma, rows_of = large_rows(arguments.data)
        r, load = 16, partial(rows_of, arguments.rows)
        contestants = all_contestants(full=arguments.full)
    X = load().astype(np.float64)
    title = f"{name}, {len(X):,} rows, Gaussian, {r} components, {arguments.threads} threads"
    print(title + "\n\n" + markdown([]))
    reference = Reference(X, gamma, r, arguments.threads)
    rows: list[ScaleRow] = []
    for contestant in contestants:
        if contestant.max_rows is not None and len(X) > contestant.max_rows:
            print(f"| {contestant.name} | skipped above {contestant.max_rows:,} rows |")
            continue
        try:
            fit = run_contestant(contestant, load, gamma, r, arguments.threads)
        except SubprocessFailed as error:
            print(f"| {error} |")
            continue
        error = reference.excess_error(fit.projections)
        rows.append(
            ScaleRow(contestant.name, fit.seconds, fit.entries, fit.peak_bytes, fit.residual, error)
        )
        print(markdown(rows).splitlines()[-1], flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    result = {"data": name, "rows": len(X), "threads": arguments.threads,
              "table": [asdict(row) for row in rows]}  # fmt: skip
    (arguments.out / "scale.json").write_text(json.dumps(result, indent=1) + "\n")
    (arguments.out / "scale.md").write_text(markdown(rows) + "\n")
    error_against_time(rows, title).savefig(arguments.out / "scale.png", dpi=160)


if __name__ == "__main__":
    main()
