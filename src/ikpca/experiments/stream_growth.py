"""What a stream costs as it goes on: time per update, memory, and the total over its length."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ikpca.estimators import IncrementalKernelPCA, KernelPCA
from ikpca.experiments.agreement import correlations
from ikpca.experiments.claims import Claim
from ikpca.experiments.growth import exponent
from ikpca.experiments.memory import PeakMemory
from ikpca.experiments.processes import Tell, run_alone
from ikpca.gram import tiles
from ikpca.kernels import Floats

__all__ = ["BATCH", "WARM_UP", "StreamCost", "claims", "in_pieces", "rise", "stream_costs"]

#: Rows that every stream has before anything about it is called constant.
WARM_UP = 1000
#: Rows per update.
BATCH = 100
_KERNEL_SETTINGS = ("kernel", "gamma", "degree", "coef0")


@dataclass(frozen=True)
class StreamCost:
    """One stream.

    Parameters
    ----------
    rows : int
    seconds : float
        All updates, in time of the processor.
    update_seconds : tuple of float
        Of each.
    held_bytes : tuple of int
        What the model says it holds, after each.
    peak_bytes : int or None
        By the operating system's count, above the rows.
    correlations : tuple of float
        |correlation| of each component with batch kernel PCA of all rows.
    """

    rows: int
    seconds: float
    update_seconds: tuple[float, ...]
    held_bytes: tuple[int, ...]
    peak_bytes: int | None
    correlations: tuple[float, ...]

    def after_warm_up(self, values: Sequence[float]) -> Sequence[float]:
        """Without the first updates."""
        return values[WARM_UP // BATCH :]


def stream_costs(
    load: Callable[[int], Floats], sizes: Sequence[int], settings: dict[str, Any], repeats: int = 1
) -> list[StreamCost]:
    """A stream of every length, each in a process of its own, the faster of its repeats."""
    found = []
    for size in sizes:
        task = partial(_stream, partial(load, size), settings)
        runs = [run_alone("stream", task, lambda message: None) for _ in range(repeats)]
        fastest = min(runs, key=lambda run: sum(run.update_seconds))
        found.append(_judge(fastest, batch_projections(load(size), settings)))
    return found


@dataclass(frozen=True, eq=False)
class _Run:
    """What the process of a stream reports."""

    update_seconds: tuple[float, ...]
    held_bytes: tuple[int, ...]
    peak_bytes: int | None
    projections: Floats


def _stream(load: Callable[[], Floats], settings: dict[str, Any], tell: Tell) -> _Run:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        X = load()
        # Imports and caches are not the algorithm's.
        _updates(IncrementalKernelPCA(**settings), X[: 3 * BATCH])
        memory = PeakMemory()
        model = IncrementalKernelPCA(**settings)
        seconds, held = _updates(model, X)
        return _Run(seconds, held, memory.above_baseline(), model.transform(X))


def _judge(run: _Run, truth: Floats) -> StreamCost:
    return StreamCost(
        len(truth),
        sum(run.update_seconds),
        run.update_seconds,
        run.held_bytes,
        run.peak_bytes,
        tuple(correlations(truth, run.projections).tolist()),
    )


def _updates(model: IncrementalKernelPCA, X: Floats) -> tuple[tuple[float, ...], tuple[int, ...]]:
    seconds, held = [], []
    for rows in tiles(len(X), BATCH):
        # Of the processor: a machine that does something else must not show as growth.
        begun = time.process_time()
        model.partial_fit(X[rows])
        seconds.append(time.process_time() - begun)
        held.append(model.memory_usage_)
    return tuple(seconds), tuple(held)


def batch_projections(X: Floats, settings: dict[str, Any]) -> Floats:
    """Of kernel PCA of all rows at once, with the stream's kernel."""
    kernel = {name: settings[name] for name in _KERNEL_SETTINGS if name in settings}
    model = KernelPCA(
        settings["n_components"], tol=1e-6, n_jobs=1, random_state=0, copy_X=False, **kernel
    )
    return model.fit_transform(X)


def in_pieces(values: Sequence[float], pieces: int = 10) -> Floats:
    """Means of equal pieces: single updates differ by what they happen to compress."""
    return np.array([np.mean(piece) for piece in np.array_split(np.asarray(values), pieces)])


def rise(values: Sequence[float]) -> float:
    """How far a straight line through the means of ten pieces rises, over the mean of all.

    Examples
    --------
    >>> round(rise([3.0] * 50), 9), round(rise(list(range(1, 101))), 2)
    (0.0, 1.78)
    """
    means = in_pieces(values)
    slope = np.polyfit(np.arange(len(means)), means, 1)[0]
    return float(slope * (len(means) - 1) / means.mean())


def claims(costs: Sequence[StreamCost], components: int = 3) -> list[Claim]:
    """Linear in time, constant per update, and right."""
    longest = max(costs, key=lambda cost: cost.rows)
    sizes = [cost.rows for cost in costs]
    closest = min(min(cost.correlations[:components]) for cost in costs)
    return [
        Claim(
            f"exponent of the total time, {sizes[0]:,} to {sizes[-1]:,} rows",
            exponent(sizes, [cost.seconds for cost in costs]), 1.1,
        ),
        Claim(
            "rise of the time per update after warm-up",
            abs(rise(longest.after_warm_up(longest.update_seconds))), 0.1,
        ),
        Claim(
            "rise of the memory after warm-up",
            abs(rise(longest.after_warm_up(longest.held_bytes))), 0.1,
        ),
        Claim(f"least |correlation| of the first {components} with batch", closest, 0.99,
              "at least"),
    ]  # fmt: skip
