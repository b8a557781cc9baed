"""Dense solver against block Krylov on few rows: the size at which "auto" should switch.

Rows are scikit-learn's digits repeated with noise; both solvers run to machine precision. Seconds
are those of the first fit of a fresh process, median of three processes.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

from contestants import Contestant, fit_ikpca, run_contestant
from ikpca_papers.large import large_rows


def fit_seconds(solver: str, n_rows: int, n_components: int, threads: int) -> float | None:
    _, gamma, noisy_digits = large_rows(None)
    contestant = Contestant(solver, fit_ikpca, {"eigen_solver": solver}, "float64")
    load = partial(noisy_digits, n_rows)
    return run_contestant(contestant, load, gamma, n_components, threads).seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/crossover"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 750, 1000, 1500, 2000, 3000])
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    print(f"threads: {arguments.threads}")
    print(f"{'rows':>6s} {'components':>11s} {'dense':>8s} {'krylov':>8s} {'ratio':>6s}")
    table = []
    for n_rows in arguments.sizes:
        for n_components in (4, 16, 64):
            dense, krylov = (
                fit_seconds(solver, n_rows, n_components, arguments.threads)
                for solver in ("dense", "krylov")
            )
            table.append([n_rows, n_components, dense, krylov])
            print(
                f"{n_rows:6d} {n_components:11d} {dense:8.3f} {krylov:8.3f} {dense / krylov:6.2f}",
                flush=True,
            )
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "crossover.json").write_text(json.dumps(table) + "\n")


if __name__ == "__main__":
    main()
