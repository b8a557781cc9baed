"""From which order on block Krylov is faster than the dense solver; "auto" switches there.

Rows are scikit-learn's digits repeated with noise; both solvers go to machine precision.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from ikpca import KernelPCA
from ikpca_papers.large import large_rows


def seconds(solver: str, n_rows: int, n_components: int, threads: int) -> float:
    _, _, noisy_digits = large_rows(None)
    X = noisy_digits(n_rows).astype("float64")
    spent = []
    for _ in range(3):
        model = KernelPCA(
            n_components, kernel="rbf", gamma=1 / 8, eigen_solver=solver, n_jobs=threads
        )
        begun = time.perf_counter()
        model.fit(X)
        spent.append(time.perf_counter() - begun)
    return min(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/crossover"))
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    print(f"threads: {arguments.threads}")
    print(f"{'rows':>6s} {'components':>11s} {'dense':>8s} {'krylov':>8s} {'ratio':>6s}")
    table = []
    for n_rows in (500, 750, 1000, 1500, 2000, 3000):
        for n_components in (4, 16, 64):
            both = [
                seconds(solver, n_rows, n_components, arguments.threads)
                for solver in ("dense", "krylov")
            ]
            table.append([n_rows, n_components, *both])
            print(
                f"{n_rows:6d} {n_components:11d} {both[0]:8.3f} {both[1]:8.3f} "
                f"{both[0] / both[1]:6.2f}",
                flush=True,
            )
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "crossover.json").write_text(json.dumps(table) + "\n")


if __name__ == "__main__":
    main()
