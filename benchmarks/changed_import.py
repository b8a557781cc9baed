"""scikit-learn's KernelPCA and ours with nothing set but the number of components and the kernel.

Double precision, rows near a curved surface. Every fit is the first of a fresh process; the two
libraries alternate. The largest relative difference of the eigenvalues shows that both compute the
same.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA as ScikitKernelPCA

from contestants import Contestant, FitResult, curved_rows, run_contestant
from ikpca import KernelPCA
from ikpca.kernels import Floats

#: Rows, features, components, kernel.
LINES = [
    (1000, 20, 8, "rbf"),
    (2000, 3000, 20, "rbf"),
    (5000, 10, 2, "rbf"),
    (5000, 10, 50, "rbf"),
    (5000, 1000, 10, "rbf"),
    (10000, 30, 16, "rbf"),
    (10000, 30, 16, "poly"),
    (10000, 30, 16, "cosine"),
    (10000, 30, 16, "linear"),
    (10000, 30, 100, "rbf"),
]


@dataclass(frozen=True)
class Line:
    """Seconds and peak memory of both libraries."""

    rows: int
    features: int
    components: int
    kernel: str
    scikit_learn: float
    ikpca: float
    scikit_learn_bytes: int
    ikpca_bytes: int
    difference: float

    @property
    def ratio(self) -> float:
        """Seconds of scikit-learn divided by ours."""
        return self.scikit_learn / self.ikpca


def fit(
    X: Floats, gamma: float, n_components: int, threads: int, seed: int, estimator: Any, kernel: str
) -> FitResult:
    """Fit an estimator with its defaults."""
    return FitResult(estimator(n_components, kernel=kernel).fit_transform(X).T)


def measure(rows: int, features: int, components: int, kernel: str, repeats: int) -> Line:
    """Run both libraries in turn; the median of each counts."""
    load = partial(curved_rows, rows, features, 6)
    fits: dict[Any, list[FitResult]] = {ScikitKernelPCA: [], KernelPCA: []}
    for _ in range(repeats):
        for estimator, result in fits.items():
            settings = {"estimator": estimator, "kernel": kernel}
            contestant = Contestant(estimator.__module__, fit, settings, "float64", repeats=1)
            result.append(run_contestant(contestant, load, 0.0, components, 2))
    theirs, ours = (sorted(result, key=_seconds)[repeats // 2] for result in fits.values())
    eigenvalues = [np.square(result.projections).sum(axis=1) for result in (theirs, ours)]
    difference = float(np.abs(eigenvalues[0] / eigenvalues[1] - 1).max())
    return Line(rows, features, components, kernel, _seconds(theirs), _seconds(ours),
                theirs.peak_bytes or 0, ours.peak_bytes or 0, difference)  # fmt: skip


def _seconds(result: FitResult) -> float:
    assert result.seconds is not None
    return result.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/changed_import"))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--most", type=int, default=10000, help="rows; skip larger lines")
    arguments = parser.parse_args()
    print("| rows | features | components | kernel | scikit-learn, s | ikpca, s | ratio |")
    print("| ---: | ---: | ---: | --- | ---: | ---: | ---: |")
    table = []
    for rows, features, components, kernel in LINES:
        if rows > arguments.most:
            continue
        line = measure(rows, features, components, kernel, arguments.repeats)
        table.append({**asdict(line), "ratio": line.ratio})
        print(f"| {rows:,} | {features:,} | {components} | {kernel} | {line.scikit_learn:.2f} "
              f"| {line.ikpca:.2f} | {line.ratio:.1f} |", flush=True)  # fmt: skip
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "changed_import.json"
    path.write_text(json.dumps({"table": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
