"""Cost model of a pass on a Dask cluster: measured on this machine, extrapolated to larger ones.

Processor time of workers and client is measured for blocks of a Hebbian pass and for products K·V,
and fitted as a sum of counts: kernel entries, their features, the vectors they are multiplied with,
messages and bytes. The tables are written to docs/guide/cluster.md, between its markers.
``--table`` writes them from stored measurements; ``--quick`` measures small sizes and only prints.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
from scipy.optimize import nnls

from dask_cluster import clustered_rows, local_cluster
from ikpca.dask import open_rows
from ikpca.dask.cluster import Cluster
from ikpca.dask.engine import even_shards
from ikpca.dask.gram import DaskGram
from ikpca.dask.store import DaskStore
from ikpca.gram import SERIAL, CenteredGram, Centering, GramMeans
from ikpca.kernels import Gaussian
from ikpca.solvers.kha_sweep import plain_sweep

HERE = Path(__file__).parent
MEASURED = HERE / "dask_model.json"
PAGE = HERE.parent / "docs" / "guide" / "cluster.md"
ITEM, R, WIDTH, FEATURES, BLOCK = 8, 16, 32, 50, 512
#: Assumed network bandwidth of the client in bytes per second: 10 Gbit/s.
BANDWIDTH = 1.25e9


@dataclass(frozen=True)
class Grid:
    """Sizes to measure.

    Parameters
    ----------
    hebbian : list
        Rows, features, and patterns per block with components.
    krylov : list
        Rows, features, vectors.
    """

    hebbian: list[tuple[int, int, tuple[int, int]]]
    krylov: list[tuple[int, int, int]]


GRID = Grid(
    list(product((4_000, 12_000), (20, 200), ((128, 8), (512, 8), (512, 32)))),
    list(product((3_000, 6_000), (20, 200), (16, 48))),
)
QUICK_GRID = Grid(
    list(product((1_000, 2_000), (20, 40), ((64, 4), (128, 8)))),
    list(product((1_000, 2_000), (20, 40), (4, 8))),
)


@dataclass(frozen=True)
class Pass:
    """Counts of a pass over l rows on W workers, computed from the shapes alone.

    Parameters
    ----------
    entries, entry_features, entry_vectors : float
        Kernel entries that one worker computes; times N; times vectors they are multiplied with.
    worker_bytes : float
        Sent and received by one worker.
    messages, client_bytes, steps : float
        Of the client; steps are the multiplications of the sequential sweep.
    """

    entries: float
    entry_features: float
    entry_vectors: float
    worker_bytes: float
    messages: float
    client_bytes: float
    steps: float

    def worker(self) -> list[float]:
        """Return the terms of a worker's time."""
        return [self.entries, self.entry_features, self.entry_vectors, self.worker_bytes]

    def client(self) -> list[float]:
        """Return the terms of the client's time."""
        return [self.messages, self.client_bytes, self.steps]


def hebbian_pass(length: float, N: int, r: int, W: int, m: int) -> Pass:
    """Count per block: rows to the workers that lack them, r×m and m×m numbers back."""
    entries, blocks = length * length / W, length / m
    rows = length * N * ITEM if W > 1 else 0.0
    small = length * (m + r) * ITEM + W * blocks * r * (m + r) * ITEM
    client = rows + (W - 1) * length * N * ITEM + small
    return Pass(entries, entries * N, entries * r, client / W, W * blocks, client,
                length * (r * r + r * m))  # fmt: skip


def krylov_pass(length: float, N: int, b: int, W: int) -> Pass:
    """Count half of the entries, each used twice; V to all, products summed through a tree."""
    entries = length * length / 2 / W
    visitors = (W - 1) / 2 * (length / W) * N * ITEM * (1.5 if W == 2 else 1.0)
    client = (W + 1) * length * b * ITEM
    between = 2 * visitors + 2 * (W - 1) / W * length * b * ITEM
    return Pass(entries, entries * N, 2 * entries * b, between + length * b * ITEM,
                W + W - 1 + 1, client, 0.0)  # fmt: skip


def measure_blocks(client, X, m: int, r: int, blocks: int = 12) -> tuple[float, float]:
    """Measure processor seconds per block: mean of the workers, and the client."""
    number = len(client.nthreads())
    cluster = Cluster(client, even_shards(X, number), Gaussian(0.02), 1024)
    source = DaskGram(cluster, Gaussian(0.02))
    length = source.n_samples
    zeros, start = np.zeros(length), np.full((r, length), 1e-3)
    means = GramMeans(zeros, Centering(zeros, 0.0), 0.0, 0)
    store = DaskStore(source, CenteredGram.from_means(source, means, SERIAL), start, start)
    order = np.random.default_rng(0).permutation(length)
    parts = [order[k * m : (k + 1) * m] for k in range(min(length // m, blocks + 2))]
    eta, limits = np.full((m, r), 1e-6), np.full(m, 1e300)
    for k, part in enumerate(parts):
        if k == 1:
            before, start = client.run(process_time), process_time()
        Y, G = store.project(part, parts[k + 1 : k + 3])
        T, C, _ = plain_sweep(Y, G, eta, False, limits)
        store.transform(T, part, C)
    store.gram(1)
    mine, after = process_time() - start, client.run(process_time)
    cluster.close()
    spent = [after[key] - before[key] for key in after]
    return float(np.mean(spent)) / (len(parts) - 1), mine / (len(parts) - 1)


def measure_product(client, X, b: int) -> tuple[float, float]:
    """Measure processor seconds of a product: mean of the workers, and the client."""
    number = len(client.nthreads())
    cluster = Cluster(client, even_shards(X, number), Gaussian(0.02), 1024)
    source = DaskGram(cluster, Gaussian(0.02))
    V = np.random.default_rng(0).normal(size=(source.n_samples, b))
    source.product(V[:, :1], square=False)
    before, start = client.run(process_time), process_time()
    for _ in range(2):
        source.product(V, square=False)
    mine, after = process_time() - start, client.run(process_time)
    cluster.close()
    return float(np.mean([after[key] - before[key] for key in after])) / 2, mine / 2


def measure(grid: Grid) -> dict[str, list]:
    """Measure every shape on one worker and on two."""
    found: dict[str, list] = {"hebbian": [], "krylov": []}
    with tempfile.TemporaryDirectory() as folder:

        def rows(length: int, N: int):
            path = Path(folder, f"{length}-{N}.npy")
            if not path.exists():
                np.save(path, clustered_rows(length, N))
            return open_rows(path)

        for W in (1, 2):
            with local_cluster(W) as client:
                # Warm-up.
                measure_blocks(client, rows(2_000, 20), 128, 8, 4)
                for length, N, (m, r) in grid.hebbian:
                    seconds = measure_blocks(client, rows(length, N), m, r)
                    shape = [length, N, r, W, m]
                    found["hebbian"].append([shape, *(length / m * part for part in seconds)])
                for length, N, b in grid.krylov:
                    seconds = measure_product(client, rows(length, N), b)
                    found["krylov"].append([[length, N, b, W], *seconds])
    return found


def fit_counts(counts: list[list[float]], seconds: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Fit nonnegative coefficients with relative weights; also return the relative errors."""
    A, y = np.array(counts), np.array(seconds)
    scale = A.max(axis=0)
    scale[scale == 0] = 1
    found, _ = nnls(A / scale / y[:, None], np.ones(len(y)))
    return found / scale, A @ (found / scale) / y - 1


def fit_models(found: dict[str, list]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return coefficients and errors by method and side."""
    result = {}
    for method, count in (("hebbian", hebbian_pass), ("krylov", krylov_pass)):
        passes = [count(*shape) for shape, _, _ in found[method]]
        worker, client = ([row[k] for row in found[method]] for k in (1, 2))
        result[f"{method} worker"] = fit_counts([p.worker() for p in passes], worker)
        result[f"{method} client"] = fit_counts([p.client() for p in passes], client)
    return result


def fit_table(models: dict) -> list[str]:
    names = {"worker": ("kernel entry", "entry × feature", "entry × vector", "byte"),
             "client": ("message", "byte", "sweep step")}  # fmt: skip
    lines = [
        "| pass, side | nanoseconds per … | median error | largest error |",
        "| - | - | - | - |",
    ]
    for name, (found, errors) in models.items():
        parts = zip(names[name.split()[1]], found, strict=True)
        shown = ", ".join(f"{part}: {1e9 * value:.3g}" for part, value in parts)
        sizes = np.abs(errors)
        lines.append(f"| {name} | {shown} | {np.median(sizes):.0%} | {sizes.max():.0%} |")
    return lines


def extrapolation_table(models: dict) -> list[str]:
    lines = [
        "| rows | workers | pass | messages | GB through the client | time of a worker | "
        "time of the client | network | time of a pass | GB per worker | GB of the client |",
        "| -: | -: | - | -: | -: | -: | -: | -: | -: | -: | -: |",
    ]
    for length in (1e6, 1e7, 1e8):
        for W in (10, 100):
            for method in ("krylov", "hebbian"):
                lines.append(_table_row(models, method, length, W))
    return lines


def _table_row(models: dict, method: str, length: float, W: int) -> str:
    hebbian = method == "hebbian"
    shape = (
        hebbian_pass(length, FEATURES, R, W, BLOCK)
        if hebbian
        else krylov_pass(length, FEATURES, WIDTH, W)
    )
    worker = float(np.dot(models[f"{method} worker"][0], shape.worker()))
    client = float(np.dot(models[f"{method} client"][0], shape.client()))
    network = shape.client_bytes / BANDWIDTH
    # Shard with its operand; columns, saved columns and two strips, or V and two products.
    held = 2 * length / W * FEATURES + (
        length / W * (4 * R + 2 * (BLOCK + R)) if hebbian else 3 * length * WIDTH
    )
    # Saved columns; or a basis of eight blocks and its products.
    mine = 2 * R * length if hebbian else 16 * WIDTH * length
    cells = [
        f"{length:,.0f}",
        f"{W}",
        "kha/et" if hebbian else "krylov",
        f"{shape.messages:,.0f}",
        f"{shape.client_bytes / 1e9:.3g}",
        _duration(worker),
        _duration(client),
        _duration(network),
        _duration(max(worker, client, network)),
        f"{held * ITEM / 1e9:.3g}",
        f"{mine * ITEM / 1e9:.3g}",
    ]
    return f"| {' | '.join(cells)} |"


def _duration(value: float) -> str:
    """Format seconds in a suitable unit."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if value >= 2 * size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.1f} s"


def replace_section(page: str, name: str, lines: list[str]) -> str:
    """Replace the lines between two markers of a page."""
    begin, end = f"<!-- {name}: written by benchmarks/dask_model.py -->", f"<!-- end of {name} -->"
    before, rest = page.split(begin)
    return begin.join([before, "\n\n" + "\n".join(lines) + "\n\n" + end + rest.split(end)[1]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="from stored measurements")
    parser.add_argument("--quick", action="store_true", help="small sizes, only printed")
    arguments = parser.parse_args()
    if arguments.quick:
        found = measure(QUICK_GRID)
    elif arguments.table:
        found = json.loads(MEASURED.read_text())
    else:
        found = measure(GRID)
        MEASURED.write_text(json.dumps(found))
    models = fit_models(found)
    page = PAGE.read_text()
    for name, lines in (("fit", fit_table(models)), ("table", extrapolation_table(models))):
        print("\n".join(lines), "\n")
        page = replace_section(page, name, lines)
    if not arguments.quick:
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
