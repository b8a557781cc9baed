"""Kernel PCA of many rows, side by side: ours, scikit-learn's, Nystroem + PCA.

Every contestant has a process of its own, the same number of threads, and is judged by a verifying
pass in double precision that is not counted. MNIST comes from the folder named by IKPCA_DATA; where
that is absent, and in the small form, rows are scikit-learn's digits repeated with noise.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from benchmarks.contestants import Judge, contestants, hold, quick_contestants
from benchmarks.scale_figures import error_against_time

from ikpca_papers.large import large_rows, usps_rows


def markdown(rows: list[dict]) -> str:
    heads = "method | seconds | entries ÷ l² | peak MB | excess error"
    lines = [f"| {heads} |", "| --- | ---: | ---: | ---: | ---: |"]
    for row in rows:
        entries = "–" if row["entries"] is None else f"{row['entries']:.2f}"
        peak = "–" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 1e6:.0f}"
        cells = (row["name"], f"{row['seconds']:.1f}", entries, peak, f"{row['excess_error']:.1e}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/scale"))
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--usps", action="store_true", help="USPS 7,291 in double precision")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    arguments = parser.parse_args()
    if arguments.usps:
        name, gamma, r, load = "USPS", 1 / 128, 10, partial(usps_rows, arguments.data)
        held = quick_contestants("float64")
    else:
        name, gamma, rows_of = large_rows(arguments.data)
        r, load = 16, partial(rows_of, arguments.rows)
        held = contestants(full=arguments.full)
    X = load().astype(np.float64)
    title = f"{name}, {len(X):,} rows, Gaussian, {r} components, {arguments.threads} threads"
    print(title + "\n")
    judge = Judge(X, gamma, r, arguments.threads)
    found = []
    for contestant in held:
        if contestant.max_rows is not None and len(X) > contestant.max_rows:
            print(f"| {contestant.name} | left out above {contestant.max_rows:,} rows |")
            continue
        found.append(hold(contestant, load, gamma, r, arguments.threads, judge))
        print(markdown([asdict(found[-1])]).splitlines()[-1], flush=True)
    rows = [asdict(row) for row in found]
    arguments.out.mkdir(parents=True, exist_ok=True)
    result = {"data": name, "rows": len(X), "threads": arguments.threads, "table": rows}
    (arguments.out / "scale.json").write_text(json.dumps(result, indent=1) + "\n")
    (arguments.out / "scale.md").write_text(markdown(rows) + "\n")
    error_against_time(found, title).savefig(arguments.out / "scale.png", dpi=160)


if __name__ == "__main__":
    main()
