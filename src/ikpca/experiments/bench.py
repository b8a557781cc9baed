"""The contestants of the scale benchmark on a few rows, in minutes at most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ikpca.errors import refuse
from ikpca.experiments.demo import versions
from ikpca.experiments.large_rows import large_rows
from ikpca.experiments.scale import Judge, ScaleRow, contestants, hold

__all__ = ["BenchResult", "BenchSpec", "run_bench"]

#: Fewer rows would time little but the start.
_FEWEST_ROWS = 100


@dataclass(frozen=True)
class BenchSpec:
    """What is run.

    Parameters
    ----------
    rows : int, default=2000
        Of MNIST where ``folder`` has it, otherwise of noisy digits.
    components : int, default=16
    threads : int, default=1
    full : bool, default=False
        Whether further contestants take part.
    folder : Path, optional
    """

    rows: int = 2000
    components: int = 16
    threads: int = 1
    full: bool = False
    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.rows < _FEWEST_ROWS:
            raise refuse("rows", self.rows, f"must be {_FEWEST_ROWS} or more", "pass 2000")
        if not 1 <= self.components <= self.rows // 20:
            raise refuse("components", self.components, "must be at least 1 and at most a "
                         "twentieth of the rows", "pass 16")  # fmt: skip
        if self.threads < 1:
            raise refuse("threads", self.threads, "must be positive", "pass 1")


@dataclass(frozen=True)
class BenchResult:
    """Which rows, and a line per contestant."""

    spec: BenchSpec
    data: str
    rows: tuple[ScaleRow, ...]
    left_out: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "data": self.data,
            "rows": self.spec.rows,
            "components": self.spec.components,
            "threads": self.spec.threads,
            "versions": versions(),
            "table": [asdict(row) for row in self.rows],
            "left_out": self.left_out,
        }


def run_bench(spec: BenchSpec, announce: Callable[[int, int, str], None]) -> BenchResult:
    """Hold every contestant in a process of its own.

    Parameters
    ----------
    spec : BenchSpec
    announce : callable
        Told how many are done, how many there are, and who is next.
    """
    name, gamma, rows_of = large_rows(spec.folder)
    load = partial(rows_of, spec.rows)
    judge = Judge(load().astype(np.float64), gamma, spec.components, spec.threads)
    held, found, left_out = contestants(full=spec.full), [], []
    for number, contestant in enumerate(held):
        announce(number, len(held), contestant.name)
        if contestant.max_rows is not None and spec.rows > contestant.max_rows:
            left_out.append(contestant.name)
            continue
        found.append(hold(contestant, load, gamma, spec.components, spec.threads, judge))
    announce(len(held), len(held), "done")
    return BenchResult(spec, name, tuple(found), tuple(left_out))
