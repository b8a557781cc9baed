"""Table 1 of Chin and Suter 2006: how batch, incremental and Hebbian training grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ikpca.estimators import IncrementalKernelPCA, KernelPCA
from ikpca.experiments.claims import Claim
from ikpca.experiments.growth import exponent
from ikpca.experiments.manifold_rows import PARABOLA_GAMMA, rising_parabola
from ikpca.gram import ComputedGram, centred
from ikpca.hebbian import hebbian_step
from ikpca.kernels import Floats, Polynomial

__all__ = ["PAPER_ROWS", "PAPER_SECONDS", "Duration", "claims", "durations"]

PAPER_ROWS = (520, 1000, 1510, 2020, 2530, 3100)
#: As printed; a Pentium 4 with Matlab, so only their growth compares.
PAPER_SECONDS: dict[str, tuple[float, ...]] = {
    "batch": (7.23, 44.10, 161.23, 413.05, 990.29, 1394.91),
    "incremental": (29.05, 60.23, 93.14, 127.45, 141.28, 165.29),
    "KHA": (93.75, 198.73, 381.92, 695.31, 990.86, 1569.02),
}
#: Passes of KHA; the paper does not say how many its runs took.
_PASSES = 5
#: κη0 of the rule, small enough for the parabola.
_STEP = 0.05
_GAUSSIAN: dict[str, Any] = {"kernel": "rbf", "gamma": PARABOLA_GAMMA}


@dataclass(frozen=True)
class Duration:
    """One method at all sizes, in seconds of the processor, and the paper's beside."""

    method: str
    rows: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """With which the time grows here."""
        return exponent(self.rows, self.seconds)

    @property
    def paper_seconds(self) -> tuple[float, ...]:
        """Of the same method, however it is computed here."""
        return PAPER_SECONDS[self.method.split(",")[0]]

    @property
    def paper_exponent(self) -> float:
        """With which it grows in the paper's table."""
        return exponent(PAPER_ROWS, self.paper_seconds)


def durations(
    rows: Sequence[int] = PAPER_ROWS, n_components: int = 3, repeats: int = 3
) -> list[Duration]:
    """Train all three on one thread; the best of the repeats, since others only add."""
    ways = {
        "batch": _batch,
        "incremental": _incremental,
        "KHA, by pattern": _kha_by_pattern,
        "KHA, in blocks": _kha_in_blocks,
    }
    found = []
    with threadpool_limits(1):
        for name, train in ways.items():
            train(rising_parabola(200), n_components)
            seconds = [
                _best(partial(train, rising_parabola(n_rows), n_components), repeats)
                for n_rows in rows
            ]
            found.append(Duration(name, tuple(rows), tuple(seconds)))
    return found


def claims(found: Sequence[Duration]) -> list[Claim]:
    """Batch grows at least with the square, incremental about linearly."""
    growth = {row.method: row.exponent for row in found}
    return [
        Claim("exponent of batch training", growth["batch"], 2, "at least"),
        Claim("exponent of incremental training", growth["incremental"], 1.1),
    ]


def _batch(X: Floats, n_components: int) -> None:
    KernelPCA(n_components, eigen_solver="dense", n_jobs=1, **_GAUSSIAN).fit(X)


def _incremental(X: Floats, n_components: int) -> None:
    """Batches of 30 rows, ten rows of the library per vector, as in the paper's section 6."""
    model = IncrementalKernelPCA(
        n_components, preimages_per_component=10, batch_size=30, **_GAUSSIAN
    )
    model.fit(X)


def _kha_by_pattern(X: Floats, n_components: int) -> None:
    """The rule as the paper ran it; with a polynomial, since its code for KHA had no Gaussian."""
    rng = np.random.default_rng(0)
    gram, _ = centred(ComputedGram(Polynomial(2, 1.0, 1.0), X))
    A: Floats = rng.normal(size=(n_components, len(X)))
    A /= np.sqrt(n_components * len(X) * gram.mean_diagonal)
    gain = np.full(n_components, _STEP / gram.mean_diagonal)
    for _ in range(_PASSES):
        for p in rng.permutation(len(X)):
            A = hebbian_step(A, gram.rows(np.array([p]))[0], p, gain)


def _kha_in_blocks(X: Floats, n_components: int) -> None:
    """The same updates, many patterns at a time."""
    model = KernelPCA(
        n_components, kernel="poly", degree=2, gamma=1, eigen_solver="kha", max_iter=_PASSES,
        rayleigh_ritz=False, random_state=0, n_jobs=1,
    )  # fmt: skip
    model.fit(X)


def _best(train: Callable[[], None], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        begun = time.process_time()
        train()
        seconds.append(time.process_time() - begun)
    return min(seconds)
