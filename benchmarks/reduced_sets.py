"""Compressed models: accuracy and speed of ``compress`` on digits."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from contestants import best_seconds
from ikpca import KernelPCA, compress

_COMPONENTS = 16


@dataclass(frozen=True)
class CompressedRow:
    """Compressed model against the original.

    Parameters
    ----------
    compression : str
    rows : int
        Basis rows of the compressed model.
    first, worst : float
        Relative errors in feature space of the first component and of the worst one.
    moved : float
        Root mean square change of the projections, relative to their root mean square.
    speedup : float
        Processor time of ``transform``, original over compressed.
    """

    compression: str
    rows: int
    first: float
    worst: float
    moved: float
    speedup: float


def compress_digits(n_train: int, sizes: Sequence[int]) -> Iterator[CompressedRow]:
    """Compress a model of some digits and compare projections of the others."""
    X = np.random.default_rng(0).permutation(load_digits().data / 16)
    train, test = X[:n_train], X[n_train:]
    model = KernelPCA(_COMPONENTS, kernel="rbf", gamma=0.02, n_jobs=1).fit(train)
    expected, seconds = model.transform(test), _transform_seconds(model, test)
    for compression in ("samples", "preimages"):
        for size in sizes:
            small = compress(model, size, reduction=compression, random_state=0)
            errors = small.reduction_error_
            change = np.linalg.norm(small.transform(test) - expected)
            yield CompressedRow(
                compression,
                len(small.basis_),
                float(errors[0]),
                float(errors.max()),
                float(change / np.linalg.norm(expected)),
                seconds / _transform_seconds(small, test),
            )


def _transform_seconds(model: Any, X: np.ndarray) -> float:
    """Measure processor time with one BLAS thread, since other load disturbs calls this short."""
    with threadpool_limits(1):
        return best_seconds(partial(model.transform, X), 50, time.process_time)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/bench"))
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200, 400])
    arguments = parser.parse_args()
    print(f"digits, {arguments.rows:,} rows and {_COMPONENTS} components, compressed")
    print(f"{'compression':12s} {'rows':>5s} {'first':>9s} {'worst':>9s} {'moved':>9s} "
          f"{'speedup':>8s}")  # fmt: skip
    table = []
    for row in compress_digits(arguments.rows, arguments.sizes):
        print(
            f"{row.compression:12s} {row.rows:5d} {row.first:9.1e} {row.worst:9.1e} "
            f"{row.moved:9.1e} {row.speedup:8.1f}",
            flush=True,
        )
        table.append(asdict(row))
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "reduced_sets.json").write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
