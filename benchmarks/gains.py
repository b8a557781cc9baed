"""Automatic gains against gains tuned by hand.

USPS (the first hundred of each digit, as in Günter 2006, figure 1) is read from the folder named by
IKPCA_DATA and skipped without it; scikit-learn's digits are always used.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits

from ikpca.kernels import Gaussian, Linear
from ikpca.solvers import METHODS
from ikpca_papers.tuning import Problem, automatic_error, tuned_runs

#: Methods with an automatic gain.
AUTOMATIC = ("kha/et", "kha-smd")


def problems(data: Path | None) -> list[Problem]:
    found = []
    if data is not None and (data / "usps.npz").exists():
        with np.load(data / "usps.npz") as usps:
            X, y = usps["X_train"].astype(np.float64), usps["y_train"]
        X = np.vstack([X[y == digit][:100] for digit in range(10)])
        found.append(Problem.of("USPS-1000, Gaussian σ=8", Gaussian(1 / 128), X, 16))
        found.append(Problem.of("USPS-1000, dot product", Linear(), X, 16))
    digits = load_digits().data / 16
    for sigma in (1.0, 2.0, 4.0):
        kernel = Gaussian(1 / (2 * sigma**2))
        found.append(Problem.of(f"digits, Gaussian σ={sigma:g}", kernel, digits, 16))
    return found


def compare(problem: Problem, methods: tuple[str, ...], seed: int) -> dict[str, dict]:
    tuned = tuned_runs(problem, methods, seed)
    rows = {method: {"gain": run.gain, "tuned": run.error} for method, run in tuned.items()}
    for method in AUTOMATIC:
        rows[method]["automatic"] = automatic_error(problem, method, seed)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/gains"))
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    seeds = arguments.seeds
    print(f"excess error after 50 passes, mean of seeds {seeds}; tuned over {{1,2,5}}·10^b per run")
    print(f"{'problem':26s} {'method':8s} {'tuned':>9s} {'automatic':>10s} {'ratio':>6s}  gains")
    table = []
    for problem in problems(arguments.data):
        methods = METHODS if problem.name.startswith("USPS") else AUTOMATIC
        # One process per seed with one BLAS thread each, which joblib sets.
        runs = Parallel(arguments.jobs)(delayed(compare)(problem, methods, seed) for seed in seeds)
        for method in methods:
            tuned = float(np.mean([run[method]["tuned"] for run in runs]))
            row = {"problem": problem.name, "method": method, "tuned": tuned,
                   "gains": [run[method]["gain"] for run in runs]}  # fmt: skip
            shown = ""
            if method in AUTOMATIC:
                row["automatic"] = float(np.mean([run[method]["automatic"] for run in runs]))
                shown = f"{row['automatic']:10.2e} {row['automatic'] / tuned:6.2f}"
            table.append(row)
            print(
                f"{problem.name:26s} {method:8s} {tuned:9.2e} {shown:17s}  {row['gains']}",
                flush=True,
            )
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "gains.json").write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
