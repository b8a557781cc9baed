"""What a pass on a cluster costs: measured here, fitted, and told for clusters that are not here.

Processor seconds of workers and of the client are measured for blocks of a Hebbian pass and for
products K·V, and fitted by sums of what the algorithm counts: kernel entries, their features, the
vectors they are multiplied with, messages, bytes. The tables go to docs/guide/cluster.md, between
the marks that are there. ``--table`` writes them from the measurements of an earlier run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from dask_cluster import clustered_rows, workers
from ikpca.dask import open_rows
from ikpca.dask.cluster import Cluster
from ikpca.dask.engine import even_shards
from ikpca.dask.gram import DaskGram
from ikpca.dask.store import DaskStore
from ikpca.gram import SERIAL, CenteredGram, Centering, GramMeans
from ikpca.kernels import Gaussian

HERE = Path(__file__).parent
MEASURED = HERE / "dask_model.json"
PAGE = HERE.parent / "docs" / "guide" / "cluster.md"
ITEM, R, WIDTH, FEATURES, BLOCK = 8, 16, 32, 50, 512
#: Bytes per second of the client's line, which is assumed and not measured: 10 Gbit/s.
LINE = 1.25e9
#: Rows, features, and patterns per block with components; or vectors.
HEBBIAN_GRID = list(product((4_000, 12_000), (20, 200), ((128, 8), (512, 8), (512, 32))))
KRYLOV_GRID = list(product((3_000, 6_000), (20, 200), (16, 48)))


@dataclass(frozen=True)
class Pass:
    """What is counted in a pass over l rows on so many workers, from the shapes alone.

    Parameters
    ----------
    entries, entry_features, entry_vectors : float
        Kernel values that one worker computes; times N; times vectors they are multiplied with.
    worker_bytes : float
        In and out of one worker.
    messages, client_bytes, steps : float
        Of the client; steps are the sequential sweep's, in multiplications.
    """

    entries: float
    entry_features: float
    entry_vectors: float
    worker_bytes: float
    messages: float
    client_bytes: float
    steps: float

    def worker(self) -> list[float]:
        """What a worker's time is a sum of."""
        return [self.entries, self.entry_features, self.entry_vectors, self.worker_bytes]

    def client(self) -> list[float]:
        """What the client's time is a sum of."""
        return [self.messages, self.client_bytes, self.steps]


def hebbian_pass(length: float, N: int, r: int, W: int, m: int) -> Pass:
    """Every block: rows to those who lack them, r×m and m×m numbers back."""
    entries, blocks = length * length / W, length / m
    rows = length * N * ITEM if W > 1 else 0.0
    small = length * (m + r) * ITEM + W * blocks * r * (m + r) * ITEM
    client = rows + (W - 1) * length * N * ITEM + small
    return Pass(entries, entries * N, entries * r, client / W, W * blocks, client,
                length * (r * r + r * m))  # fmt: skip


def krylov_pass(length: float, N: int, b: int, W: int) -> Pass:
    """Half of the entries, each used twice; V to all, the sum of products back through a tree."""
    entries = length * length / 2 / W
    visitors = (W - 1) / 2 * (length / W) * N * ITEM * (1.5 if W == 2 else 1.0)
    client = (W + 1) * length * b * ITEM
    between = 2 * visitors + 2 * (W - 1) / W * length * b * ITEM
    return Pass(entries, entries * N, 2 * entries * b, between + length * b * ITEM,
                W + W - 1 + 1, client, 0.0)  # fmt: skip


def seconds() -> float:
    """Of this process, in all of its threads."""
    return time.process_time()


def measured_blocks(client, X, m: int, r: int, blocks: int = 12) -> tuple[float, float]:
    """Processor seconds per block, of a worker on average and of this process."""
    from ikpca.solvers import kha_sweep

    number = len(client.nthreads())
    cluster = Cluster(client, even_shards(X, number), Gaussian(0.02), 1024)
    source = DaskGram(cluster, Gaussian(0.02))
    length = source.n_samples
    zeros, start = np.zeros(length), np.full((r, length), 1e-3)
    means = GramMeans(zeros, Centering(zeros, 0.0), 0.0, 0)
    store = DaskStore(source, CenteredGram.restored(source, means, SERIAL), start, start)
    order = np.random.default_rng(0).permutation(length)
    parts = [order[k * m : (k + 1) * m] for k in range(min(length // m, blocks + 2))]
    eta, limits = np.full((m, r), 1e-6), np.full(m, 1e300)
    for k, part in enumerate(parts):
        if k == 1:
            before, mine = client.run(seconds), seconds()
        Y, G = store.project(part, parts[k + 1 : k + 3])
        T, C, _ = kha_sweep.plain_sweep(Y, G, eta, False, limits)
        store.transform(T, part, C)
    store.gram(1)
    mine, after = seconds() - mine, client.run(seconds)
    cluster.close()
    spent = [after[key] - before[key] for key in after]
    return float(np.mean(spent)) / (len(parts) - 1), mine / (len(parts) - 1)


def measured_product(client, X, b: int) -> tuple[float, float]:
    """Processor seconds of a product, of a worker on average and of this process."""
    number = len(client.nthreads())
    cluster = Cluster(client, even_shards(X, number), Gaussian(0.02), 1024)
    source = DaskGram(cluster, Gaussian(0.02))
    V = np.random.default_rng(0).normal(size=(source.n_samples, b))
    source.product(V[:, :1], square=False)
    before, mine = client.run(seconds), seconds()
    for _ in range(2):
        source.product(V, square=False)
    mine, after = seconds() - mine, client.run(seconds)
    cluster.close()
    return float(np.mean([after[key] - before[key] for key in after])) / 2, mine / 2


def measure() -> dict[str, list]:
    """Every shape on one worker and on two."""
    found: dict[str, list] = {"hebbian": [], "krylov": []}
    with tempfile.TemporaryDirectory() as folder:

        def rows(length: int, N: int):
            path = Path(folder, f"{length}-{N}.npy")
            if not path.exists():
                np.save(path, clustered_rows(length, N))
            return open_rows(path)

        for W in (1, 2):
            with workers(W) as client:
                measured_blocks(client, rows(2_000, 20), 128, 8, 4)
                for length, N, (m, r) in HEBBIAN_GRID:
                    spent = measured_blocks(client, rows(length, N), m, r)
                    shape = [length, N, r, W, m]
                    found["hebbian"].append([shape, *(length / m * part for part in spent)])
                for length, N, b in KRYLOV_GRID:
                    spent = measured_product(client, rows(length, N), b)
                    found["krylov"].append([[length, N, b, W], *spent])
    return found


def fitted(counts: list[list[float]], spent: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients that are not negative, and relative errors; measurements weigh the same."""
    A, y = np.array(counts), np.array(spent)
    scale = A.max(axis=0)
    scale[scale == 0] = 1
    found, _ = nnls(A / scale / y[:, None], np.ones(len(y)))
    return found / scale, A @ (found / scale) / y - 1


def models(found: dict[str, list]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By method and side, coefficients and errors."""
    result = {}
    for method, shaped in (("hebbian", hebbian_pass), ("krylov", krylov_pass)):
        passes = [shaped(*shape) for shape, _, _ in found[method]]
        worker, client = ([row[k] for row in found[method]] for k in (1, 2))
        result[f"{method} worker"] = fitted([p.worker() for p in passes], worker)
        result[f"{method} client"] = fitted([p.client() for p in passes], client)
    return result


def fit_table(models: dict) -> list[str]:
    names = {"worker": ("kernel entry", "entry × feature", "entry × vector", "byte"),
             "client": ("message", "byte", "step of the sweep")}  # fmt: skip
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


def extrapolated(models: dict) -> list[str]:
    lines = [
        "| rows | workers | pass | messages | GB through the client | a worker's time | "
        "the client's time | its line | a pass takes | GB per worker | GB of the client |",
        "| -: | -: | - | -: | -: | -: | -: | -: | -: | -: | -: |",
    ]
    for length in (1e6, 1e7, 1e8):
        for W in (10, 100):
            for method in ("krylov", "hebbian"):
                lines.append(_line(models, method, length, W))
    return lines


def _line(models: dict, method: str, length: float, W: int) -> str:
    one = method == "hebbian"
    shape = (
        hebbian_pass(length, FEATURES, R, W, BLOCK)
        if one
        else krylov_pass(length, FEATURES, WIDTH, W)
    )
    worker = float(np.dot(models[f"{method} worker"][0], shape.worker()))
    client = float(np.dot(models[f"{method} client"][0], shape.client()))
    line = shape.client_bytes / LINE
    # Shard with its operand; columns, marks and two strips, or V and two products.
    held = 2 * length / W * FEATURES + (
        length / W * (4 * R + 2 * (BLOCK + R)) if one else 3 * length * WIDTH
    )
    # The mark; or a basis of eight blocks and its products.
    mine = 2 * R * length if one else 16 * WIDTH * length
    cells = [f"{length:,.0f}", f"{W}", "kha/et" if one else "krylov", f"{shape.messages:,.0f}",
             f"{shape.client_bytes / 1e9:.3g}", told(worker), told(client), told(line),
             told(max(worker, client, line)), f"{held * ITEM / 1e9:.3g}",
             f"{mine * ITEM / 1e9:.3g}"]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def told(value: float) -> str:
    """Seconds in the unit that a reader would choose."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if value >= 2 * size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.1f} s"


def written(page: str, name: str, lines: list[str]) -> str:
    """The page with other lines between its marks."""
    begin, end = f"<!-- {name}: written by benchmarks/dask_model.py -->", f"<!-- end of {name} -->"
    before, rest = page.split(begin)
    return begin.join([before, "\n\n" + "\n".join(lines) + "\n\n" + end + rest.split(end)[1]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="from the last measurements")
    arguments = parser.parse_args()
    if not arguments.table:
        MEASURED.write_text(json.dumps(measure()))
    found = models(json.loads(MEASURED.read_text()))
    page = PAGE.read_text()
    for name, lines in (("fit", fit_table(found)), ("table", extrapolated(found))):
        print("\n".join(lines), "\n")
        page = written(page, name, lines)
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
