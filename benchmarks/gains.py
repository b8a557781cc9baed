"""Automatic gains against gains tuned by hand, and KHA-SMD against KHA/et.

USPS (the first hundred of each digit, as in Günter 2006, figure 1), a picture and a walk are read
from the folder named by IKPCA_DATA and skipped without it; scikit-learn's digits are always used.
``--meta`` compares KHA-SMD with KHA/et, both with automatic gains: the constants were chosen on the
kernels ``CHOSEN_ON`` with seeds 0 to 2, and are reported for the others, with other seeds.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits

from ikpca.kernels import Cosine, Floats, Gaussian, Kernel, Laplacian, Linear, Polynomial
from ikpca.solvers import KHA, EigenSolution, PassRecord
from ikpca.solvers.kha import METHODS
from ikpca_papers.tuning import Problem, automatic_error, tuned_runs

#: Methods with an automatic gain.
AUTOMATIC = ("kha/et", "kha-smd")


def problems(data: Path | None) -> list[Problem]:
    result = []
    if data is not None and (data / "usps.npz").exists():
        with np.load(data / "usps.npz") as usps:
            X, y = usps["X_train"].astype(np.float64), usps["y_train"]
        X = np.vstack([X[y == digit][:100] for digit in range(10)])
        result.append(Problem.of("USPS-1000, Gaussian σ=8", Gaussian(1 / 128), X, 16))
        result.append(Problem.of("USPS-1000, dot product", Linear(), X, 16))
    digits = load_digits().data / 16
    for sigma in (1.0, 2.0, 4.0):
        kernel = Gaussian(1 / (2 * sigma**2))
        result.append(Problem.of(f"digits, Gaussian σ={sigma:g}", kernel, digits, 16))
    return result


def compare(problem: Problem, methods: tuple[str, ...], seed: int) -> dict[str, dict]:
    tuned = tuned_runs([problem], methods, [seed])
    rows = {method: {"gain": run.gain, "tuned": run.error} for method, run in tuned.items()}
    for method in AUTOMATIC:
        rows[method]["automatic"] = automatic_error(problem, method, seed)
    return rows


#: Settings of KHA-SMD: µκ and ρ0; None is the default.
SETTINGS = {
    "default": (None, None),
    "µ = 0": (0.0, None),
    "µκ = 0.2": (0.2, None),
    "µκ = 0.8": (0.8, None),
    "ρ0 = 0": (None, 0.0),
    "ρ0 = 1": (None, 1.0),
}
CHOSEN_ON = ("USPS, Gaussian σ=8", "USPS, dot product", "digits, Gaussian σ=1",
             "digits, Gaussian σ=4", "digits, polynomial 2")  # fmt: skip
_PASSES = 20


def usps_rows(data: Path, part: int) -> Floats:
    """Return eighty rows of each digit."""
    with np.load(data / "usps.npz") as usps:
        X, y = usps["X_train"].astype(np.float64), usps["y_train"]
    return np.vstack([X[y == digit][80 * part : 80 * (part + 1)] for digit in range(10)])


def picture_windows(data: Path) -> Floats:
    """Return windows of 11 × 11 pixels, 16 pixels apart."""
    with np.load(data / "test_images_512.npz") as pictures:
        picture = pictures["lena"] / 255
    starts = range(0, 501, 16)
    return np.array([picture[i : i + 11, j : j + 11].ravel() for i in starts for j in starts])


def walk(data: Path) -> Floats:
    """Return joint positions in metres, about the root."""
    with np.load(data / "cmu_walk_35_01.npz") as motion:
        positions = motion["positions"].astype(np.float64) * float(motion["metres_per_unit"])
    return (positions - positions[:, :1]).reshape(len(positions), -1)


def meta_problems(data: Path | None) -> list[Problem]:
    """Ten kernels of at most 1,024 rows; those on digits alone without the data."""
    digits = load_digits().data[::2] / 16
    rows: dict[str, tuple[Kernel, Floats]] = {
        "digits, Gaussian σ=1": (Gaussian(1 / 2), digits),
        "digits, Gaussian σ=4": (Gaussian(1 / 32), digits),
        "digits, polynomial 2": (Polynomial(2, 1.0, 1.0), digits),
        "digits, Laplacian": (Laplacian(0.05), digits),
    }
    if data is not None:
        rows |= {
            "USPS, Gaussian σ=8": (Gaussian(1 / 128), usps_rows(data, 0)),
            "USPS, dot product": (Linear(), usps_rows(data, 0)),
            "USPS, cosine": (Cosine(), usps_rows(data, 1)),
            "USPS, polynomial 3": (Polynomial(3, 1 / 256, 1.0), usps_rows(data, 1)),
            "picture, Gaussian σ=1": (Gaussian(1 / 2), picture_windows(data)),
            "walk, Gaussian σ²=0.1": (Gaussian(5.0), walk(data)),
        }
    return [Problem.of(name, kernel, X, 16) for name, (kernel, X) in rows.items()]


def run_once(problem: Problem, solver: KHA, seed: int) -> tuple[float, int]:
    """Return the excess error after the last pass, and the number of undone passes."""
    undone = 0

    def count(record: PassRecord, current: Callable[[], EigenSolution]) -> None:
        nonlocal undone
        undone += bool(record.note)

    solution = problem.solve(solver, seed, _PASSES, count)
    return problem.excess_error(solution), undone


def meta_runs(problem: Problem, init: str, seed: int, settings: list[str]) -> list[dict]:
    """Run KHA/et, and KHA-SMD with each of the settings."""
    kappa = problem.gram.mean_diagonal
    base, _ = run_once(problem, KHA("kha/et", init=init), seed)
    rows = []
    for name in settings:
        rate, log_gain = SETTINGS[name]
        solver = KHA(
            "kha-smd",
            init=init,
            meta_gain="auto" if rate is None else rate / kappa,
            log_gain_init="auto" if log_gain is None else log_gain,
        )
        error, undone = run_once(problem, solver, seed)
        rows.append({"problem": problem.name, "init": init, "seed": seed, "setting": name,
                     "kha/et": base, "kha-smd": error, "undone": undone})  # fmt: skip
    return rows


def meta_table(data: Path | None, seeds: list[int], settings: list[str], jobs: int) -> list[dict]:
    """Compare KHA-SMD with KHA/et from both starts; print a line per kernel and setting."""
    table = []
    print(f"excess error after {_PASSES} passes, KHA-SMD divided by KHA/et, seeds {seeds}")
    for init in ("random", "landmarks"):
        runs = Parallel(jobs)(
            delayed(meta_runs)(problem, init, seed, settings)
            for problem in meta_problems(data)
            for seed in seeds
        )
        rows = [row for run in runs for row in run]
        table += rows
        names = list(dict.fromkeys(row["problem"] for row in rows))
        groups = {name: [name] for name in names}
        groups["all chosen on"] = [name for name in names if name in CHOSEN_ON]
        groups["all held out"] = [name for name in names if name not in CHOSEN_ON]
        for setting in settings:
            for label, members in groups.items():
                part = [r for r in rows if r["setting"] == setting and r["problem"] in members]
                ratios = [row["kha-smd"] / row["kha/et"] for row in part]
                diverged = sum(not np.isfinite(ratio) for ratio in ratios)
                mean = float(np.exp(np.mean(np.log(ratios))))
                undone = sum(row["undone"] for row in part)
                print(f"{init:9s} {setting:9s} {label:22s} mean {mean:5.2f} worst "
                      f"{max(ratios):5.2f} runs {len(part):3d} undone passes {undone:2d} "
                      f"diverged {diverged}", flush=True)  # fmt: skip
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--meta",
        nargs="*",
        choices=list(SETTINGS),
        help="settings of KHA-SMD to compare with KHA/et; all by default",
    )
    parser.add_argument("--out", type=Path, default=Path("results/gains"))
    folder = os.environ.get("IKPCA_DATA")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else None)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    seeds = arguments.seeds
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.meta is not None:
        settings = arguments.meta or list(SETTINGS)
        rows = meta_table(arguments.data, seeds, settings, arguments.jobs)
        (arguments.out / "meta_descent.json").write_text(json.dumps(rows, indent=1) + "\n")
        return
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
    (arguments.out / "gains.json").write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
