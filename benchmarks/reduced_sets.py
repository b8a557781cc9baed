"""Reduced sets: the three schemes of Chin 2006, figure 1, against joint pre-images and samples."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from ikpca_papers.chin2006.parabola import compare_schemes, compress_digits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/bench"))
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--components", type=int, default=8)
    arguments = parser.parse_args()
    print(f"relative error in feature space, {arguments.components} components and the mean of "
          f"{arguments.rows} rows; n' rows per vector")  # fmt: skip
    print(
        f"{'data':10s} {'n':>2s} {'scheme':18s} {'rows':>5s} {'weighted':>9s} {'first':>9s} "
        f"{'worst':>9s} {'seconds':>8s}"
    )
    table = []
    for row in compare_schemes(arguments.rows, arguments.components):
        print(
            f"{row.data:10s} {row.per_vector:2d} {row.scheme:18s} {row.rows:5d} {row.error:9.1e} "
            f"{row.first:9.1e} {row.worst:9.1e} {row.seconds:8.3f}",
            flush=True,
        )
        table.append(asdict(row))
    print("\ndigits, 1,500 rows and 16 components, compressed to a library")
    print(
        f"{'compression':12s} {'rows':>5s} {'first':>9s} {'worst':>9s} {'moved':>9s} "
        f"{'speedup':>8s}"
    )
    models = []
    for small in compress_digits():
        print(
            f"{small.compression:12s} {small.rows:5d} {small.first:9.1e} {small.worst:9.1e} "
            f"{small.moved:9.1e} {small.speedup:8.1f}",
            flush=True,
        )
        models.append(asdict(small))
    arguments.out.mkdir(parents=True, exist_ok=True)
    found = {"schemes": table, "compress": models}
    (arguments.out / "reduced_sets.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
