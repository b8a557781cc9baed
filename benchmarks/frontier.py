"""Accuracy against time and memory: ikpca by tolerance, scikit-learn, Nyström and random features.

Every contestant runs in fresh processes with the same number of threads; the first fit counts.
Errors are computed afterwards in double precision: the excess error where the kernel matrix can be
computed, and the largest relative residual from sampled rows of it. MNIST is read from the folder
named by IKPCA_DATA; without it the rows are scikit-learn's digits repeated with noise.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from contestants import (
    Contestant,
    Reference,
    ScaleRow,
    curved_rows,
    fit_ikpca,
    fit_kernlab,
    fit_kha_reference,
    fit_nystroem,
    fit_random_features,
    fit_scikit_learn,
    has_kernlab,
    run_contestant,
    sampled_residual,
)
from ikpca.kernels import Floats
from ikpca.solvers import Nystrom
from ikpca_papers.errors import SubprocessFailed
from ikpca_papers.large import large_rows, usps_rows


@dataclass(frozen=True)
class DataSet:
    """Rows, kernel and contestants.

    Parameters
    ----------
    name : str
    load : callable
    gamma : float
    n_components : int
    contestants : list of Contestant
    excess : bool
        Compute the excess error, which needs all of K.
    """

    name: str
    load: Callable[[], Floats]
    gamma: float
    n_components: int
    contestants: list[Contestant]
    excess: bool = True


def by_tolerance(*tolerances: float, dtype: str = "float32") -> list[Contestant]:
    """Return ``KernelPCA`` with nothing set but the tolerance."""
    return [
        Contestant(f"ikpca, tol {tol:g}", fit_ikpca, {"eigen_solver": "auto", "tol": tol}, dtype)
        for tol in tolerances
    ]


def features(nystroem: Sequence[int], random: Sequence[int]) -> list[Contestant]:
    """Return Nyström and random Fourier features followed by PCA."""
    return [
        *(Contestant(f"Nystroem {m} + PCA", fit_nystroem, {"landmarks": m}) for m in nystroem),
        *(
            Contestant(f"RBFSampler {m} + PCA", fit_random_features, {"features": m})
            for m in random
        ),
    ]


def landmarks(*numbers: int) -> list[Contestant]:
    """Return the Nyström solver with fixed numbers of landmarks."""
    return [
        Contestant(f"ikpca Nystrom({m})", fit_ikpca, {"eigen_solver": Nystrom(m)}) for m in numbers
    ]


def scikit_learn(*solvers: str, dtype: str = "float32") -> list[Contestant]:
    """Return solvers of scikit-learn's ``KernelPCA``."""
    return [
        Contestant(f"scikit-learn {name}", fit_scikit_learn, {"eigen_solver": name}, dtype)
        for name in solvers
    ]


def hebbian() -> list[Contestant]:
    """Return the Hebbian solver and the papers' rule in Python and R."""
    result = [
        Contestant(
            "ikpca kha/et, 10 passes", fit_ikpca, {"eigen_solver": "kha/et", "max_iter": 10}
        ),
        Contestant("KHA rule by pattern, 1 pass", fit_kha_reference, max_rows=5000, repeats=1),
    ]
    if has_kernlab():
        result.append(
            Contestant("kernlab kha, 1 pass", fit_kernlab, {"passes": 1}, max_rows=5000, repeats=1)
        )
    return result


def data_sets(folder: Path | None, rows: int) -> dict[str, Callable[[], DataSet]]:
    """Return the data sets by name; large rows are generated only when needed."""

    def pictures() -> DataSet:
        name, gamma, rows_of = large_rows(folder)
        contestants = [
            *by_tolerance(1e-1, 2.6e-2, 1.3e-2, 1e-2, 2e-3, 5e-4, 1e-4, 1e-5, 0),
            Contestant(
                "ikpca, tol 0.0005, 300 MB", fit_ikpca,
                {"eigen_solver": "auto", "tol": 5e-4, "max_memory": "300MB"},
            ),
            *scikit_learn("arpack", "randomized"),
            *features((500, 1000, 2000, 4000), (1000, 4000)),
            *landmarks(500, 1000, 2000),
            *hebbian(),
        ]  # fmt: skip
        return DataSet(name, partial(rows_of, rows), gamma, 16, contestants)

    def varying() -> DataSet:
        contestants = [*by_tolerance(1e-2, 1e-3, 5e-4, 1e-4, 0), *scikit_learn("arpack")]
        load = partial(curved_rows, rows, 784, 6)
        return DataSet("all features vary", load, 1 / 784, 16, contestants)

    def table() -> DataSet:
        contestants = [
            *by_tolerance(1e-1, 1e-2, 3e-3, 1e-3, 5e-4, 2e-4, 1e-4),
            *features((100, 500, 1000, 2000), (500, 2000)),
        ]
        load = partial(curved_rows, 200_000, 40, 6)
        return DataSet("table", load, 1 / 40, 16, _once(contestants), excess=False)

    def million() -> DataSet:
        contestants = [
            *by_tolerance(1e-1, 1e-2, 1e-3, 3e-4, 1e-4),
            *features((100, 500, 1000), (500, 1000)),
        ]
        load = partial(curved_rows, 1_000_000, 30, 4)
        return DataSet("million rows", load, 1 / 30, 16, _once(contestants), excess=False)

    def usps() -> DataSet:
        contestants = by_tolerance(2e-3, 0, dtype="float64")
        contestants += scikit_learn("arpack", "randomized", dtype="float64")
        return DataSet("USPS", partial(usps_rows, folder), 1 / 128, 10, contestants)

    return {
        "pictures": pictures,
        "varying": varying,
        "table": table,
        "million": million,
        "usps": usps,
    }


def _once(contestants: Sequence[Contestant]) -> list[Contestant]:
    return [replace(contestant, repeats=1) for contestant in contestants]


def measure(data: DataSet, threads: int) -> list[ScaleRow]:
    """Run all contestants, print a table and return it."""
    X = data.load()
    print(f"\n{data.name}, {len(X):,} rows, {threads} threads\n\n{markdown([])}", flush=True)
    reference = Reference(X.astype(np.float64), data.gamma, data.n_components, threads)
    rows: list[ScaleRow] = []
    for contestant in data.contestants:
        if contestant.max_rows is not None and len(X) > contestant.max_rows:
            continue
        try:
            fit = run_contestant(contestant, data.load, data.gamma, data.n_components, threads)
        except SubprocessFailed as error:
            print(f"| {error} |")
            continue
        excess = reference.excess_error(fit.projections) if data.excess else None
        residual = sampled_residual(reference.X, data.gamma, fit.projections)
        rows.append(
            ScaleRow(
                contestant.name,
                fit.seconds,
                fit.entries,
                fit.peak_bytes,
                residual,
                excess,
                fit.variance,
            )
        )
        print(markdown(rows).splitlines()[-1], flush=True)
    return rows


def markdown(rows: Sequence[ScaleRow]) -> str:
    lines = [
        "| method | seconds | entries ÷ l² | peak MB | excess error | residual | variance |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        values = (row.entries, row.peak_bytes and row.peak_bytes / 1e6, row.excess_error)
        texts = (
            "–" if value is None else format(value, form)
            for value, form in zip(values, (".3f", ".0f", ".1e"), strict=True)
        )
        cells = (
            row.name,
            f"{row.seconds:.2f}",
            *texts,
            f"{row.residual:.1e}",
            f"{row.variance:.6g}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/frontier"))
    parser.add_argument("--sets", nargs="+", default=["pictures"],
                        choices=["pictures", "varying", "table", "million", "usps"])  # fmt: skip
    parser.add_argument("--rows", type=int, default=5000, help="of pictures and varying")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    made = data_sets(arguments.data, arguments.rows)
    for name in arguments.sets:
        data = made[name]()
        table = measure(data, arguments.threads)
        result = {"data": data.name, "rows": len(data.load()), "threads": arguments.threads,
                  "table": [asdict(row) for row in table]}  # fmt: skip
        path = arguments.out / f"frontier_{name}.json"
        path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
