"""Incremental kernel PCA on streams: time, memory and accuracy against batch kernel PCA.

growth     parabola as a stream of growing length: time per update and memory
durations  training times as in table 1 of Chin and Suter 2006
manifolds  settings of the stream on Swiss roll, teapot and Frey faces: angles to batch
large      one pass over MNIST: variance captured, time and memory
speed      captured variance and rows per second against scikit-learn and reduced sets, one thread
drifts     variance of the last rows of drifting streams
calls      time per row by the size of the batches, and of single rows
million    time per row and memory along a million rows

The other experiments of the paper are run by ``ikpca-papers reproduce``. Teapot, Frey faces and
MNIST are read from the folder named by IKPCA_DATA; without it the first two are skipped and MNIST
is replaced by scikit-learn's digits with noise. Records of the benchmarks page::

    python benchmarks/streams.py --parts speed drifts calls million
    for name in speed drifts calls million; do
        python benchmarks/keep.py results/streams/stream_$name.json; done
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from threadpoolctl import threadpool_limits

from ikpca import IncrementalKernelPCA, KernelPCA
from ikpca.kernels import Floats
from ikpca.plotting import LINE_STYLES, MUTED_COLOR, REFERENCE_COLOR, TEXT_COLOR
from ikpca.reduced_sets import SelectedRows
from ikpca_papers.as_printed import TABLE_1_ROWS
from ikpca_papers.chin2006.manifolds import real_manifolds, roll
from ikpca_papers.chin2006.parabola import (
    PARABOLA_GAMMA,
    Duration,
    durations,
    rising_parabola,
)
from ikpca_papers.chin2006.stream_costs import (
    BATCH,
    StreamCost,
    piecewise_means,
    relative_rise,
    stream_costs,
)
from ikpca_papers.figures.curves import style_axes
from ikpca_papers.large import large_rows
from ikpca_papers.memory import PeakMemory
from ikpca_papers.metrics import captured_variance, exponent
from ikpca_papers.subprocesses import run_in_subprocess
from stream_contestants import compare, drifting_streams, streams

_COLOUR = LINE_STYLES[0][0]
#: Points of a curve of means.
_PIECES = 50
#: Components of the large stream.
_COMPONENTS = 16


@dataclass(frozen=True)
class MeasuredClaim:
    """Measured value that must stay on one side of a limit.

    Parameters
    ----------
    what : str
        Name of the value.
    value, limit : float
    side : {"at most", "at least"}
    """

    what: str
    value: float
    limit: float
    side: Literal["at most", "at least"] = "at most"

    @property
    def holds(self) -> bool:
        """True if the value is on its side of the limit; False for NaN."""
        return self.value >= self.limit if self.side == "at least" else self.value <= self.limit

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "DOES NOT HOLD"
        return f"{verdict}: {self.what} {self.value:.5g}, {self.side} {self.limit:g}"


def claim_rows(claims: Sequence[MeasuredClaim]) -> list[dict[str, Any]]:
    """Return rows for JSON."""
    return [{**asdict(claim), "holds": claim.holds} for claim in claims]


#: Settings of the stream, for the table.
VARIANTS: dict[str, dict[str, Any]] = {
    "chosen samples": {},
    "pre-images": {"reduction": SelectedRows("auto")},
    "all rows kept": {"max_rows": None},
    "no oversampling": {"n_oversamples": 0},
}


def growth_claims(costs: Sequence[StreamCost], components: int = 3) -> list[MeasuredClaim]:
    """Claim linear time, constant time and memory per update, and agreement with batch."""
    longest = max(costs, key=lambda cost: cost.rows)
    sizes = [cost.rows for cost in costs]
    closest = min(min(cost.correlations[:components]) for cost in costs)
    # Each update divided by its control, and medians, since single interruptions would change a
    # mean too much.
    ratios = np.divide(longest.after_warm_up(longest.update_seconds), longest.control_seconds)
    time_rise = relative_rise([float(np.median(piece)) for piece in np.array_split(ratios, 10)])
    memory_rise = relative_rise(longest.after_warm_up(longest.held_bytes))
    return [
        MeasuredClaim(
            f"exponent of the total time, {sizes[0]:,} to {sizes[-1]:,} rows",
            exponent(sizes, [cost.seconds for cost in costs]), 1.1,
        ),
        MeasuredClaim("rise of the time per update after warm-up", abs(time_rise), 0.1),
        MeasuredClaim("rise of the memory after warm-up", abs(memory_rise), 0.1),
        MeasuredClaim(f"least |correlation| of the first {components} with batch", closest, 0.99,
              "at least"),
    ]  # fmt: skip


def report(
    arguments: argparse.Namespace, name: str, table: Any, claims: Sequence[MeasuredClaim]
) -> None:
    """Print the claims and write them with the table to ``name.json``."""
    for claim in claims:
        print(claim, flush=True)
    result = {"table": table, "claims": claim_rows(claims)}
    (arguments.out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def run_growth(arguments: argparse.Namespace) -> None:
    settings = {"n_components": 3, "kernel": "rbf", "gamma": PARABOLA_GAMMA}
    sizes = [1000, 3000, 10000, *([30000, 100000] if arguments.full else [])]
    costs = stream_costs(rising_parabola, sizes, settings)
    print("| rows | seconds | peak MB | held kB | correlations |")
    print("| ---: | ---: | ---: | ---: | --- |")
    for cost in costs:
        values = ", ".join(f"{value:.6f}" for value in cost.correlations)
        peak, held = (cost.peak_bytes or 0) / 1e6, cost.held_bytes[-1] / 1e3
        print(f"| {cost.rows:,} | {cost.seconds:.2f} | {peak:.1f} | {held:.0f} | {values} |")
    report(arguments, "stream_growth", [asdict(cost) for cost in costs], growth_claims(costs))
    figure = stream_growth_plot(costs, "parabola, Gaussian σ = 1, one thread")
    figure.savefig(arguments.out / "stream_growth.png", dpi=160)


def stream_growth_plot(costs: Sequence[StreamCost], subtitle: str) -> Figure:
    """Plot total time against the length; time per update and memory along the longest stream."""
    figure = Figure(figsize=(11.0, 3.9), layout="constrained")
    total, update, memory = figure.subplots(1, 3)
    _plot_totals(total, costs)
    longest = max(costs, key=lambda cost: cost.rows)
    # The same update repeated at the same moments shows changes in the speed of the machine.
    first = longest.rows - BATCH * len(longest.control_seconds)
    control = piecewise_means(longest.control_seconds, _PIECES)
    rows = np.linspace(first, longest.rows, _PIECES + 1)[1:]
    update.plot(
        rows, 1e3 * control, color=REFERENCE_COLOR, linewidth=1.6, label="same update repeated"
    )
    update.legend(frameon=False, fontsize=9, loc="upper left")
    _plot_course(update, 1e3 * np.array(longest.update_seconds), "ms", "Milliseconds per update")
    _plot_course(memory, np.array(longest.held_bytes) / 1e3, "kB", "Memory of the model, kB")
    style_axes(total, "Total time", subtitle)
    style_axes(update, "Time per update", f"updates of {BATCH} rows; means of {_PIECES} pieces")
    style_axes(memory, "Memory", "basis rows, coefficients, singular values")
    return figure


def _plot_totals(axes: Axes, costs: Sequence[StreamCost]) -> None:
    sizes, seconds = [cost.rows for cost in costs], [cost.seconds for cost in costs]
    slope = exponent(sizes, seconds)
    factor = np.exp(np.mean(np.log(seconds)) - slope * np.mean(np.log(sizes)))
    line = [factor * size**slope for size in sizes]
    axes.plot(sizes, line, color=MUTED_COLOR, linestyle="dashed", linewidth=1)
    axes.plot(sizes, seconds, color=_COLOUR, marker="o", linestyle="none")
    axes.set(xscale="log", yscale="log", xlabel="Rows streamed", ylabel="Seconds")
    note = f"exponent {slope:.2f}"
    axes.text(0.05, 0.9, note, fontweight="bold", color=TEXT_COLOR, transform=axes.transAxes)


def _plot_course(axes: Axes, values: np.ndarray, unit: str, label: str) -> None:
    pieces = min(_PIECES, len(values))
    means = piecewise_means(values.tolist(), pieces)
    rows = (np.arange(pieces) + 1) * len(values) * BATCH / pieces
    axes.plot(rows, means, color=_COLOUR, linewidth=1.6)
    axes.set(xlabel="Rows seen", ylabel=label)
    axes.set_ylim(0, 1.4 * means.max())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")
    note = f"at the end {means[-1]:.3g} {unit}"
    axes.text(0.05, 0.08, note, fontweight="bold", color=TEXT_COLOR, transform=axes.transAxes)


def run_durations(arguments: argparse.Namespace) -> None:
    result = durations()
    print("| rows | " + " | ".join(row.method for row in result) + " |")
    print("| ---: |" + " ---: |" * len(result))
    for number, rows in enumerate(result[0].rows):
        print(f"| {rows:,} | " + " | ".join(f"{row.seconds[number]:.3f}" for row in result) + " |")
    print("| exponent | " + " | ".join(f"{row.exponent:.2f}" for row in result) + " |")
    print("| in the paper | " + " | ".join(f"{row.paper_exponent:.2f}" for row in result) + " |")
    report(arguments, "durations", [asdict(row) for row in result], [])
    figure = durations_plot(result, "parabola; table 1 of Chin and Suter")
    figure.savefig(arguments.out / "durations.png", dpi=160)


def durations_plot(result: Sequence[Duration], subtitle: str) -> Figure:
    """Plot table 1: time of each method divided by its first entry, here and in the paper."""
    figure = Figure(figsize=(12.0, 3.7), layout="constrained")
    panels = figure.subplots(1, len(result), sharey=True)
    for axes, row in zip(panels, result, strict=True):
        paper, ours = np.array(row.paper_seconds), np.array(row.seconds)
        axes.plot(
            TABLE_1_ROWS, paper / paper[0], color=LINE_STYLES[3][0], marker="s", linestyle="dashed",
            label=f"paper, exponent {row.paper_exponent:.2f}",
        )  # fmt: skip
        axes.plot(
            row.rows, ours / ours[0], color=_COLOUR, marker="o",
            label=f"here, exponent {row.exponent:.2f}",
        )  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="Rows")
        axes.set_xticks(TABLE_1_ROWS[::2], [f"{rows:,}" for rows in TABLE_1_ROWS[::2]])
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=9, loc="upper left")
        style_axes(axes, row.method, subtitle if axes is panels[0] else " ")
    panels[0].set_ylabel("Time relative to the fewest rows")
    return figure


def run_manifolds(arguments: argparse.Namespace) -> None:
    leading = (1, 2, 3, 5, 10)
    heads = " | ".join(f"first {number}" for number in leading)
    print(f"largest angle to batch\n| data | stream | rows | basis rows | {heads} |")
    print("| --- | --- |" + " ---: |" * (len(leading) + 2))
    table = []
    for name, settings in VARIANTS.items():
        result = [roll(**settings)]
        if arguments.data is not None:
            result += real_manifolds(arguments.data, **settings)
        for manifold in result:
            row = {"stream": name, **manifold.row(leading)}
            cells = " | ".join(f"{row[f'angle_{number}']:.3f}°" for number in leading)
            counts = f"{row['rows']:,} | {row['library']:,}"
            print(f"| {row['data']} | {name} | {counts} | {cells} |", flush=True)
            table.append(row)
    report(arguments, "manifolds", table, [])


@dataclass(frozen=True)
class LargeStream:
    """One pass over many rows.

    Parameters
    ----------
    rows, library_rows : int
        Rows seen, and basis rows kept.
    seconds : float
    peak_bytes : int or None
        Peak memory above the data while streaming.
    captured : float
        Variance of all rows along the components, multiplied by the number of rows.
    claimed : float
        The same by the eigenvalues of the model.
    """

    rows: int
    library_rows: int
    seconds: float
    peak_bytes: int | None
    captured: float
    claimed: float


def stream_rows(
    load: Callable[[], Floats],
    threads: int,
    settings: dict[str, Any],
    send: Callable[[Any], None] | None = None,
) -> LargeStream:
    """Stream the rows once in this process."""
    with threadpool_limits(threads):
        X = load()
        # A small fit first: imports and compilation are not counted.
        IncrementalKernelPCA(_COMPONENTS, **settings).fit(X[: 20 * _COMPONENTS])
        memory = PeakMemory()
        start = time.perf_counter()
        model = IncrementalKernelPCA(_COMPONENTS, **settings).fit(X)
        seconds, peak = time.perf_counter() - start, memory.above_baseline()
        return LargeStream(
            len(X),
            len(model.basis_),
            seconds,
            peak,
            captured_variance(model.transform(X)),
            float(np.sum(model.eigenvalues_[:_COMPONENTS], dtype=np.float64)),
        )


def exact_eigenvalues(X: Floats, gamma: float, threads: int, kept: Path | None) -> Floats:
    """Compute the leading eigenvalues of all rows by krylov, to about eight digits.

    This takes minutes for MNIST, so they may be kept in a file.
    """
    if kept is not None and kept.exists():
        record = json.loads(kept.read_text())
        if record["rows"] == len(X):
            return np.array(record["eigenvalues"])
    model = KernelPCA(
        _COMPONENTS, kernel="rbf", gamma=gamma, eigen_solver="krylov", tol=1e-4,
        max_memory="600MB", copy_X=False, n_jobs=threads, random_state=0,
    )  # fmt: skip
    eigenvalues = np.asarray(model.fit(X).eigenvalues_, dtype=np.float64)
    if kept is not None:
        kept.write_text(json.dumps({"rows": len(X), "eigenvalues": eigenvalues.tolist()}) + "\n")
    return eigenvalues


def run_large(arguments: argparse.Namespace) -> None:
    name, gamma, rows_of = large_rows(arguments.data)
    load = partial(rows_of, 60000 if arguments.full else 6000)
    exact = exact_eigenvalues(load(), gamma, arguments.threads, arguments.exact).sum()
    settings = {"kernel": "rbf", "gamma": gamma, "max_basis_rows": 300}
    task = partial(stream_rows, load, arguments.threads, settings)
    actual = run_in_subprocess("stream", task, lambda message: None)
    print(f"{name}: {actual.rows:,} rows in {actual.seconds:.0f} s, {actual.library_rows:,} kept")
    print(f"eigenvalues of the model: {actual.claimed / exact:.4f} of the exact variance")
    peak = float("nan") if actual.peak_bytes is None else actual.peak_bytes / 1e6
    claims = [
        MeasuredClaim("basis rows", actual.library_rows, 2000),
        MeasuredClaim("peak above the data in MB", peak, 300),
        MeasuredClaim(
            f"variance of {actual.rows:,} rows along {_COMPONENTS} components, share of the exact",
            float(actual.captured / exact), 0.95, "at least",
        ),
    ]  # fmt: skip
    report(arguments, "large_stream", asdict(actual), claims)


def run_speed(arguments: argparse.Namespace) -> None:
    table = _compare_all(streams(arguments.data, 0.1 if arguments.quick else 1), arguments)
    figure = speed_plot(table)
    figure.savefig(arguments.out / "stream_speed.png", dpi=160)
    report(arguments, "stream_speed", table, [])


def run_drifts(arguments: argparse.Namespace) -> None:
    table = _compare_all(drifting_streams(0.2 if arguments.quick else 1), arguments)
    report(arguments, "stream_drifts", table, [])


def _compare_all(compared: Sequence[Any], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    table = []
    print("| data | method | rows | captured | rows/s |\n| --- | --- | ---: | ---: | ---: |")
    with threadpool_limits(1):
        for stream in compared:
            for row in compare(stream, 1 if arguments.quick else 3):
                print(
                    f"| {row['data']} | {row['name']} | {row['rows']:,} | {row['captured']:.4f} | "
                    f"{row['rows_per_second']:,.0f} |",
                    flush=True,
                )
                table.append(row)
    return table


def speed_plot(table: Sequence[dict[str, Any]]) -> Figure:
    """Plot captured variance over rows per second, one panel per data set."""
    names = list(dict.fromkeys(row["data"] for row in table))
    n_rows, n_columns = -(-len(names) // 3), min(len(names), 3)
    figure = Figure(figsize=(3.6 * n_columns, 3.4 * n_rows), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes in grid[len(names) :]:
        axes.remove()
    for axes, name in zip(grid, names, strict=False):
        for style, family in zip(LINE_STYLES, ("ikpca", "Nystroem", "batch"), strict=False):
            rows = [row for row in table if row["data"] == name and row["name"].startswith(family)]
            rates = [row["rows_per_second"] for row in rows]
            shares = [row["captured"] for row in rows]
            axes.plot(rates, shares, color=style[0], marker="o", label=family)
        axes.set(xscale="log", xlabel="Rows per second", ylabel="Captured variance")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.legend(frameon=False, fontsize=9)
        style_axes(axes, name, "one thread")
    return figure


def run_calls(arguments: argparse.Namespace) -> None:
    n_rows = 2000 if arguments.quick else 20000
    X = np.random.default_rng(0).normal(size=(10000 + n_rows, 20))

    def microseconds(size: int, number: int, read: Callable[[Any, Floats], Any]) -> float:
        model = IncrementalKernelPCA(16, kernel="rbf", gamma=0.02, random_state=0)
        model.partial_fit(X[:10000])
        start = time.process_time()
        for first in range(10000, 10000 + number, size):
            batch = X[first : first + size]
            model.partial_fit(batch)
            read(model, batch)
        return 1e6 * (time.process_time() - start) / number

    def nothing(model: Any, batch: Floats) -> None:
        """Read no attribute."""

    reads: dict[str, tuple[int, int, Callable[[Any, Floats], Any]]] = {
        **{f"batches of {size:,}": (size, n_rows, nothing) for size in (10, 100, 1000, 10000)},
        "single rows": (1, n_rows // 10, nothing),
        "single rows, novelty_": (1, n_rows // 10, lambda model, batch: model.novelty_),
        "single rows, drift_": (1, n_rows // 10, lambda model, batch: model.drift_),
        "single rows, transform": (1, n_rows // 10, lambda model, batch: model.transform(batch)),
    }
    times: dict[str, list[float]] = {name: [] for name in reads}
    with threadpool_limits(1):
        for _ in range(1 if arguments.quick else 5):
            for name, read in reads.items():
                times[name].append(microseconds(*read))
    table = [{"call": name, "microseconds": min(values)} for name, values in times.items()]
    print("| call | µs per row |\n| --- | ---: |")
    for row in table:
        print(f"| {row['call']} | {row['microseconds']:.1f} |")
    report(arguments, "stream_calls", table, [])


def run_million(arguments: argparse.Namespace) -> None:
    n_rows = 100_000 if arguments.quick else 1_000_000
    rng, table = np.random.default_rng(0), []
    model = IncrementalKernelPCA(8, kernel="rbf", gamma=0.05, random_state=0)
    memory = PeakMemory()
    print("| rows | µs per row | model MB | peak MB |\n| ---: | ---: | ---: | ---: |")
    with threadpool_limits(1):
        for number in range(1, 11):
            seconds = 0.0
            for _ in range(n_rows // 10_000):
                batch = rng.normal(size=(1000, 10))
                start = time.process_time()
                model.partial_fit(batch)
                seconds += time.process_time() - start
            row = {
                "rows": number * n_rows // 10,
                "microseconds": 1e6 * seconds / (n_rows / 10),
                "model_bytes": model.memory_usage_,
                "peak_bytes": memory.above_baseline(),
            }
            peak = (row["peak_bytes"] or 0) / 1e6
            print(
                f"| {row['rows']:,} | {row['microseconds']:.2f} | {row['model_bytes'] / 1e6:.2f} | "
                f"{peak:.1f} |",
                flush=True,
            )
            table.append(row)
    report(arguments, "stream_million", table, [])


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "growth": run_growth,
    "durations": run_durations,
    "manifolds": run_manifolds,
    "large": run_large,
    "speed": run_speed,
    "drifts": run_drifts,
    "calls": run_calls,
    "million": run_million,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", type=Path, default=Path("results/streams"))
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    parser.add_argument(
        "--full", action="store_true", help="100,000 rows for growth, 60,000 for large (minutes)"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, once")
    parser.add_argument("--threads", type=int, default=1, help="for large")
    parser.add_argument("--exact", type=Path, help="file to keep the eigenvalues of large in")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for part in arguments.parts:
        print(f"\n## {part}", flush=True)
        PARTS[part](arguments)


if __name__ == "__main__":
    main()
