"""Time and memory of streams of different length."""

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
from ikpca_papers.memory import PeakMemory
from ikpca_papers.metrics import correlations
from ikpca_papers.subprocesses import Send, run_in_subprocess

#: Rows before time and memory must be constant.
WARM_UP = 1000
#: Rows per update.
BATCH = 100
_KERNEL_SETTINGS = ("kernel", "gamma", "degree", "coef0")


@dataclass(frozen=True)
class StreamCost:
    """Costs of one stream.

    Parameters
    ----------
    rows : int
    seconds : float
        Processor time of all updates.
    update_seconds : tuple of float
        Of each update.
    control_seconds : tuple of float
        After each update after warm-up: time of the first one after warm-up, repeated on a copy.
        Other load on the machine slows both.
    held_bytes : tuple of int
        ``memory_usage_`` of the model after each update.
    peak_bytes : int or None
        Measured by the operating system, above the rows.
    correlations : tuple of float
        Absolute correlation of each component with batch kernel PCA of all rows.
    """

    rows: int
    seconds: float
    update_seconds: tuple[float, ...]
    control_seconds: tuple[float, ...]
    held_bytes: tuple[int, ...]
    peak_bytes: int | None
    correlations: tuple[float, ...]

    def after_warm_up(self, values: Sequence[float]) -> Sequence[float]:
        """Return the values without those of the first updates."""
        return values[WARM_UP // BATCH :]


def stream_costs(
    load: Callable[[int], Floats], sizes: Sequence[int], settings: dict[str, Any]
) -> list[StreamCost]:
    """Measure streams of every length, each in a process of its own."""
    costs = []
    for size in sizes:
        task = partial(run_stream, partial(load, size), settings)
        run = run_in_subprocess("stream", task, lambda message: None)
        costs.append(stream_cost(run, batch_projections(load(size), settings)))
    return costs


@dataclass(frozen=True, eq=False)
class StreamRun:
    """Measurements of the process of a stream."""

    update_seconds: tuple[float, ...]
    control_seconds: tuple[float, ...]
    held_bytes: tuple[int, ...]
    peak_bytes: int | None
    projections: Floats


def run_stream(
    load: Callable[[], Floats], settings: dict[str, Any], send: Send | None = None
) -> StreamRun:
    """Fit a model to a stream in this process, and measure."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        X = load()
        # Warm up imports and caches.
        _updates(IncrementalKernelPCA(**settings), X[: 3 * BATCH])
        memory = PeakMemory()
        model = IncrementalKernelPCA(**settings)
        seconds, controls, held = _updates(model, X)
        return StreamRun(seconds, controls, held, memory.above_baseline(), model.transform(X))


def stream_cost(run: StreamRun, truth: Floats) -> StreamCost:
    """Combine measurements with correlations to the projections of batch."""
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
    """Return the processor time of one update."""
    start = time.process_time()
    model.partial_fit(batch)
    return time.process_time() - start


def batch_projections(X: Floats, settings: dict[str, Any]) -> Floats:
    """Project all rows by batch kernel PCA with the kernel of the stream."""
    kernel = {name: settings[name] for name in _KERNEL_SETTINGS if name in settings}
    model = KernelPCA(
        settings["n_components"], tol=1e-6, n_jobs=1, random_state=0, copy_X=False, **kernel
    )
    return model.fit_transform(X)


def piecewise_means(values: Sequence[float], pieces: int = 10) -> Floats:
    """Means of equal pieces, since single updates differ."""
    return np.array([np.mean(piece) for piece in np.array_split(np.asarray(values), pieces)])


def relative_rise(values: Sequence[float]) -> float:
    """Rise of a straight line through the means of ten pieces, relative to the mean of all.

    Examples
    --------
    >>> round(relative_rise([3.0] * 50), 9), round(relative_rise(list(range(1, 101))), 2)
    (0.0, 1.78)
    """
    means = piecewise_means(values)
    slope = np.polyfit(np.arange(len(means)), means, 1)[0]
    return float(slope * (len(means) - 1) / means.mean())
