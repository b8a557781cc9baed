"""Speed as ratios within one run: block form, kernlab, import time.

The block form is compared with the papers' pattern-by-pattern update on the same matrix, a whole
fit with ``kha`` of R's kernlab if Rscript has it, and ``import ikpca`` with the import of
scikit-learn's decomposition.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from contestants import (
    Contestant,
    best_seconds,
    fit_ikpca,
    fit_kernlab,
    has_kernlab,
    run_contestant,
)
from ikpca.gram import ComputedGram, full_matrix, read_budget
from ikpca.kernels import Floats, Gaussian
from ikpca.solvers import (
    KHA,
    Problem,
    RunSettings,
    hebbian_step,
    hebbian_step_with_products,
    meta_step,
)
from ikpca.solvers.kha import METHODS

#: Small enough for every method on the generated data.
_GAIN = 0.05
_GAMMA = 0.2
_COMPONENTS = 16


@dataclass(frozen=True)
class SpeedRow:
    """Seconds per pass of both forms, the best of several passes each.

    Parameters
    ----------
    method : str
    rule_seconds : float
        Pattern-by-pattern update of A and AK', which is what the block form computes.
    block_seconds : float
    bare_rule_seconds : float or None
        Pattern-by-pattern update of A alone, which is enough for KHA and KHA/t but gives no
        eigenvalues; None for KHA-SMD, which needs AK'.
    """

    method: str
    rule_seconds: float
    block_seconds: float
    bare_rule_seconds: float | None = None

    @property
    def ratio(self) -> float:
        """Speed-up over the update of A and AK'."""
        return self.rule_seconds / self.block_seconds

    @property
    def bare_ratio(self) -> float | None:
        """Speed-up over the update of A alone."""
        if self.bare_rule_seconds is None:
            return None
        return self.bare_rule_seconds / self.block_seconds


def generated_rows(n_samples: int, n_features: int) -> Floats:
    """Draw normal data with decreasing variance, the same every time."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_samples, n_features)) / np.sqrt(1 + np.arange(n_features))


def compare_block_form(
    n_threads: int, n_samples: int, rule_passes: int = 4, block_passes: int = 60
) -> list[SpeedRow]:
    """Time both forms with K given.

    The pattern-by-pattern update gets K' already centered, which favors it.
    """
    K = full_matrix(ComputedGram(Gaussian(_GAMMA), generated_rows(n_samples, 20)))
    centered = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    rows = []
    for method in METHODS:
        block = _block_seconds(K, method, block_passes, n_threads)
        rule = best_seconds(_rule_pass(centered, method), rule_passes)
        bare = None
        if method != "kha-smd":
            bare = best_seconds(_rule_pass(centered, "bare"), rule_passes)
        rows.append(SpeedRow(method, rule, block, bare))
    return rows


def _block_seconds(K: Floats, method: str, passes: int, n_threads: int) -> float:
    meta = {"meta_gain": 0.1} if method == "kha-smd" else {}
    solver = KHA(method, gain=_GAIN, rayleigh_ritz=False, **meta)
    problem = Problem(None, K, read_budget(None), n_threads)
    solution = solver.solve(problem, _COMPONENTS, RunSettings(passes))
    # The first pass may compile.
    return min(record.seconds for record in solution.records[1:])


def _rule_pass(centered: Floats, method: str) -> Callable[[], None]:
    """Return a function that runs one pass of Günter's algorithm 1.

    Without meta-descent B, ρ and their updates are not needed.
    """
    r, n_samples = _COMPONENTS, len(centered)
    rng = np.random.default_rng(0)
    A = rng.normal(size=(r, n_samples)) / np.sqrt(r * n_samples)
    AK, h, zero = A @ centered, np.full(r, _GAIN), np.zeros(r)
    order = rng.permutation(n_samples)

    def bare() -> None:
        coefficients = A
        for p in order:
            coefficients = hebbian_step(coefficients, centered[p], p, h)

    def with_products() -> None:
        coefficients, products = A, AK
        for p in order:
            coefficients, products = hebbian_step_with_products(
                coefficients, products, centered[p], p, h
            )

    def with_meta_descent() -> None:
        state: tuple[Floats, Floats, Floats, Floats] = (A, np.zeros_like(A), AK, zero)
        for p in order:
            state = meta_step(*state, centered[p], p, h, 0.1, 0.99)

    return {"kha-smd": with_meta_descent, "bare": bare}.get(method, with_products)


def fit_seconds(n_samples: int, n_features: int, passes: int, threads: int) -> float | None:
    """Time a KHA fit on raw rows in fresh processes: kernel, centering, passes."""
    solver = KHA("kha", gain=_GAIN, rayleigh_ritz=False)
    settings = {"eigen_solver": solver, "max_iter": passes}
    contestant = Contestant("ikpca kha", fit_ikpca, settings, "float64")
    load = partial(generated_rows, n_samples, n_features)
    return run_contestant(contestant, load, _GAMMA, _COMPONENTS, threads).seconds


def import_seconds(module: str) -> float:
    command = [sys.executable, "-c", f"import {module}"]
    return best_seconds(partial(subprocess.run, command, check=True), 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/bench"))
    parser.add_argument("--rows", type=int, default=2000, help="for the block form")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    threads = arguments.threads
    result: dict[str, object] = {"threads": threads}
    print(f"threads: {threads} of ikpca, each with one thread of BLAS")
    print(f"\nseconds per pass, l = {arguments.rows}, r = {_COMPONENTS}, K given; best of several")
    print("rule: A and AK' updated, as in the block form; bare: A alone")
    print(f"{'method':10s} {'rule':>9s} {'bare':>9s} {'block':>9s} {'ratio':>7s} {'to bare':>8s}")
    rows = compare_block_form(threads, arguments.rows)
    for row in rows:
        bare = "–" if row.bare_rule_seconds is None else f"{row.bare_rule_seconds:.4f}"
        to_bare = "–" if row.bare_ratio is None else f"{row.bare_ratio:.1f}"
        print(
            f"{row.method:10s} {row.rule_seconds:9.4f} {bare:>9s} {row.block_seconds:9.4f} "
            f"{row.ratio:7.1f} {to_bare:>8s}"
        )
    result["block form over rule"] = {row.method: row.ratio for row in rows}
    result["block form over update of A alone"] = {row.method: row.bare_ratio for row in rows}
    X = generated_rows(1000, 64)
    ours = fit_seconds(*X.shape, 10, threads)
    print(f"\nten passes of KHA from raw rows, l = 1000, N = 64, r = {_COMPONENTS}")
    if has_kernlab():
        kernlab = fit_kernlab(X, _GAMMA, _COMPONENTS, passes=10).seconds
        print(f"ikpca {ours:.3f} s; kernlab {kernlab:.2f} s; ratio {kernlab / ours:.0f}")
        result["kha over kernlab"] = kernlab / ours
    else:
        print(f"ikpca {ours:.3f} s; kernlab is not installed (R with the package kernlab)")
    ratio = import_seconds("ikpca") / import_seconds("sklearn.decomposition")
    print(f"\nimport ikpca over import sklearn.decomposition: {ratio:.2f}")
    result["import"] = ratio
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "foundation.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
