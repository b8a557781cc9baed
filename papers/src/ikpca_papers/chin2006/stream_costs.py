"""Time and memory of a stream as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ikpca import IncrementalKernelPCA, KernelPCA
from ikpca.gram import tile_slices
from ikpca.kernels import Floats
from ikpca_papers.limits import Claim
from ikpca_papers.measures import correlations, exponent
from ikpca_papers.memory import PeakMemory
from ikpca_papers.subprocesses import Tell, run_alone

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
    control_seconds : tuple of float
        After warm-up, right after each update: the first one after warm-up once more, on a copy.
        A machine that does something else slows both.
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
    control_seconds: tuple[float, ...]
    held_bytes: tuple[int, ...]
    peak_bytes: int | None
    correlations: tuple[float, ...]

    @property
    def time_rise(self) -> float:
        """How far the time per update rises after warm-up, each over its own control.

        Medians of ten pieces: an interruption of either moves a mean by more than the claim allows.
        """
        ratios = np.divide(self.after_warm_up(self.update_seconds), self.control_seconds)
        return rise([float(np.median(piece)) for piece in np.array_split(ratios, 10)])

    @property
    def memory_rise(self) -> float:
        """How far the memory of the model rises after warm-up."""
        return rise(self.after_warm_up(self.held_bytes))

    def after_warm_up(self, values: Sequence[float]) -> Sequence[float]:
        """Without the first updates."""
        return values[WARM_UP // BATCH :]


def stream_costs(
    load: Callable[[int], Floats], sizes: Sequence[int], settings: dict[str, Any]
) -> list[StreamCost]:
    """A stream of every length, each in a process of its own."""
    found = []
    for size in sizes:
        task = partial(stream, partial(load, size), settings)
        run = run_alone("stream", task, lambda message: None)
        found.append(judge(run, batch_projections(load(size), settings)))
    return found


@dataclass(frozen=True, eq=False)
class Run:
    """What the process of a stream reports."""

    update_seconds: tuple[float, ...]
    control_seconds: tuple[float, ...]
    held_bytes: tuple[int, ...]
    peak_bytes: int | None
    projections: Floats


def stream(load: Callable[[], Floats], settings: dict[str, Any], tell: Tell | None = None) -> Run:
    """Stream the rows in this process."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        X = load()
        # Imports and caches are not the algorithm's.
        _updates(IncrementalKernelPCA(**settings), X[: 3 * BATCH])
        memory = PeakMemory()
        model = IncrementalKernelPCA(**settings)
        seconds, controls, held = _updates(model, X)
        return Run(seconds, controls, held, memory.above_baseline(), model.transform(X))


def judge(run: Run, truth: Floats) -> StreamCost:
    """Costs, and how close the components came to the truth."""
    return StreamCost(
        len(truth),
        sum(run.update_seconds),
        run.update_seconds,
        run.control_seconds,
        run.held_bytes,
        run.peak_bytes,
        tuple(correlations(truth, run.projections).tolist()),
    )


def _updates(
    model: IncrementalKernelPCA, X: Floats
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[int, ...]]:
    seconds, controls, held = [], [], []
    for rows in tile_slices(len(X), BATCH):
        if rows.start == WARM_UP:
            frozen, again = copy(model), X[rows]
        seconds.append(_seconds(model, X[rows]))
        held.append(model.memory_usage_)
        if rows.start >= WARM_UP:
            controls.append(_seconds(copy(frozen), again))
    return tuple(seconds), tuple(controls), tuple(held)


def _seconds(model: IncrementalKernelPCA, batch: Floats) -> float:
    """Of one update, in time of the processor."""
    begun = time.process_time()
    model.partial_fit(batch)
    return time.process_time() - begun


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


def growth_claims(costs: Sequence[StreamCost], components: int = 3) -> list[Claim]:
    """Linear in time, constant per update, and right."""
    longest = max(costs, key=lambda cost: cost.rows)
    sizes = [cost.rows for cost in costs]
    closest = min(min(cost.correlations[:components]) for cost in costs)
    return [
        Claim(
            f"exponent of the total time, {sizes[0]:,} to {sizes[-1]:,} rows",
            exponent(sizes, [cost.seconds for cost in costs]), 1.1,
        ),
        Claim("rise of the time per update after warm-up", abs(longest.time_rise), 0.1),
        Claim("rise of the memory after warm-up", abs(longest.memory_rise), 0.1),
        Claim(f"least |correlation| of the first {components} with batch", closest, 0.99,
              "at least"),
    ]  # fmt: skip
