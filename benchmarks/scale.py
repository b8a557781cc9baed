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

from ikpca.experiments.scale import Judge, contestants, hold


def noisy_digits(n_rows: int) -> np.ndarray:
    from sklearn.datasets import load_digits

    digits = load_digits().data / 16
    rng = np.random.default_rng(0)
    chosen = digits[np.arange(n_rows) % len(digits)]
    return (chosen + 0.05 * rng.normal(size=chosen.shape)).astype(np.float32)


def mnist(folder: Path, n_rows: int) -> np.ndarray:
    with np.load(folder / "mnist.npz") as data:
        return data["X_train"][:n_rows].astype(np.float32) / 255


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
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    arguments = parser.parse_args()
    has_mnist = arguments.data is not None and (Path(arguments.data) / "mnist.npz").exists()
    if has_mnist:
        load, gamma, name = partial(mnist, Path(arguments.data), arguments.rows), 1 / 72, "MNIST"
    else:
        load, gamma, name = partial(noisy_digits, arguments.rows), 1 / 8, "digits with noise"
    print(f"{name}, {arguments.rows} rows, Gaussian, 16 components, {arguments.threads} threads\n")
    judge = Judge(load().astype(np.float64), gamma, 16, arguments.threads)
    rows = []
    for contestant in contestants(full=arguments.full):
        row = asdict(hold(contestant, load, gamma, 16, arguments.threads, judge))
        rows.append(row)
        print(markdown([row]).splitlines()[-1], flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    result = {"data": name, "rows": arguments.rows, "threads": arguments.threads, "table": rows}
    (arguments.out / "scale.json").write_text(json.dumps(result, indent=1) + "\n")
    (arguments.out / "scale.md").write_text(markdown(rows) + "\n")


if __name__ == "__main__":
    main()
