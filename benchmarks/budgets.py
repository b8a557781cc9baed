"""KernelPCA with the default memory against smaller budgets: the default should never be slower.

Gaussian kernel, 16 components, rows near a curved surface of six dimensions. Every fit is the first
of a fresh process; budgets alternate, each is the first in turn, and the fastest of the repeats
counts.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from contestants import Contestant, curved_rows, fit_ikpca, run_contestant
from ikpca_papers.errors import SubprocessFailed

ROWS, FEATURES = (5000, 20000, 60000), (5, 30, 200, 784)
TOLERANCES, DTYPES = (1e-2, 1e-3, 1e-6), ("float32", "float64")
BUDGETS = (None, "200MB", "1GB")


def measure(rows: int, features: int, tol: float, dtype: str, repeats: int) -> dict[str, Any]:
    """Return seconds by budget (None if it is too small), and default divided by the shortest."""
    load = partial(curved_rows, rows, features, 6)
    seconds: dict[str | None, float] = dict.fromkeys(BUDGETS, float("inf"))
    for turn, place in product(range(repeats), range(len(BUDGETS))):
        budget = BUDGETS[(turn + place) % len(BUDGETS)]
        settings = {"eigen_solver": "auto", "tol": tol, "max_memory": budget}
        contestant = Contestant(str(budget), fit_ikpca, settings, dtype, repeats=1)
        try:
            result = run_contestant(contestant, load, 1 / features, 16, 2).seconds
        except SubprocessFailed as failed:
            if "this fit needs at least" not in str(failed):
                raise
            continue
        assert result is not None
        seconds[budget] = min(seconds[budget], result)
    default, *others = (value if np.isfinite(value) else None for value in seconds.values())
    assert default is not None
    return {
        "rows": rows,
        "features": features,
        "tol": tol,
        "dtype": dtype,
        "default": default,
        **dict(zip(BUDGETS[1:], others, strict=True)),
        "ratio": default / min(seconds.values()),
    }


def summary(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the range of seconds and the largest ratio by rows and features."""
    result = []
    for rows, features in dict.fromkeys((row["rows"], row["features"]) for row in table):
        cells = [row for row in table if (row["rows"], row["features"]) == (rows, features)]
        seconds = [row["default"] for row in cells]
        ratios = [row["ratio"] for row in cells]
        result.append(
            {
                "rows": rows,
                "features": features,
                "fits": len(cells),
                "shortest": min(seconds),
                "longest": max(seconds),
                "median": float(np.median(ratios)),
                "worst": max(ratios),
            }
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/budgets"))
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--features", type=int, nargs="+", default=FEATURES)
    parser.add_argument("--repeats", type=int, default=1)
    arguments = parser.parse_args()
    print("| rows | features | tol | precision | default | 200MB | 1GB | default ÷ best |")
    print("| ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    table = []
    for case in product(arguments.rows, arguments.features, TOLERANCES, DTYPES):
        row = measure(*case, repeats=arguments.repeats)
        table.append(row)
        print("|", " | ".join(f"{value:.3g}" if isinstance(value, float) else f"{value}"
                              for value in row.values()), "|", flush=True)  # fmt: skip
    result = {"table": table, "summary": summary(table)}
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "budgets.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
