"""Kernel PCA on a local Dask cluster of single-threaded worker processes.

speed   seconds per pass of krylov and kha/et with one worker and with two
bytes   bytes and messages per block of a Hebbian pass, for 5,000 to 40,000 rows
memory  peak memory of every worker by kind, with the sizes of X and of the kernel matrix
large   100,000 × 50 rows on two workers of 1 GB each, to a certified residual
kills   fits during which a worker is killed at a random moment

MNIST is read from the folder named by IKPCA_DATA; without it the rows are scikit-learn's digits
with noise.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.exceptions import ConvergenceWarning

import ikpca
from ikpca.dask import QUIET, KernelPCA, open_rows
from ikpca.dask.cluster import Cluster
from ikpca.dask.engine import even_shards
from ikpca.dask.gram import DaskGram
from ikpca.dask.store import DaskStore
from ikpca.gram import SERIAL, CenteredGram, Centering, GramMeans
from ikpca.kernels import Gaussian
from ikpca.solvers import HebbianOptions, KrylovOptions, solve_kha, solve_krylov
from ikpca_papers.large import large_rows

COMPONENTS = 16


@contextmanager
def local_cluster(number: int, *, quiet: bool = True, **settings: object) -> Iterator[Client]:
    """Start single-threaded workers and yield a client.

    ``quiet`` turns off Dask's profiling and health checks as ``connect`` does, since scheduler and
    client share the processors with the workers.
    """
    with (
        # A killed worker may take a while to restart.
        dask.config.set(
            {"distributed.deploy.lost-worker-timeout": "120s", **(QUIET if quiet else {})}
        ),
        LocalCluster(
            n_workers=number, threads_per_worker=1, dashboard_address=":0", **settings
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def fit(client: Client, X: object, solver: str, passes: int, gamma: float) -> KernelPCA:
    with warnings.catch_warnings():
        # The passes are fixed, not the residual.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KernelPCA(
            COMPONENTS, kernel="rbf", gamma=gamma, eigen_solver=solver, max_iter=passes, tol=1e-12,
            random_state=0, client=client,
        ).fit(X)  # fmt: skip


def clustered_rows(number: int, width: int, dtype: str = "float64") -> np.ndarray:
    """Draw rows around a few centres: their spectrum has a gap, as that of real data."""
    rng = np.random.default_rng(0)
    centres = 2 * rng.normal(size=(COMPONENTS + 1, width))
    return (centres[rng.integers(len(centres), size=number)]
            + 0.7 * rng.normal(size=(number, width))).astype(dtype)  # fmt: skip


def run_speed(folder: Path, arguments: argparse.Namespace) -> None:
    start = partial(local_cluster, quiet=not arguments.default_dask)
    name, gamma, rows_of = large_rows(arguments.data)
    X = rows_of(arguments.rows).astype(arguments.dtype)
    path = folder / "speed.npy"
    np.save(path, X)
    print(f"{name}, {X.shape[0]} × {X.shape[1]}, {X.dtype}: seconds per pass, minimum")
    with start(1) as one, start(2) as two:
        clients = {1: one, 2: two}
        for client in clients.values():
            fit(client, path, "krylov", 1, gamma)
        for solver in ("krylov", "kha/et"):
            seconds: dict[int, list[float]] = {1: [], 2: []}
            for _ in range(arguments.rounds):
                for number, client in clients.items():
                    model = fit(client, path, solver, 2, gamma)
                    seconds[number] += [record.seconds for record in model.history_]
            first, second = (min(seconds[number]) for number in (1, 2))
            print(f"  {solver}: one worker {first:.2f} s, two {second:.2f} s, "
                  f"ratio {first / second:.2f}")  # fmt: skip
            traffic = model.traffic_
            if traffic.blocks:
                print(f"    {traffic.block_messages / traffic.blocks:.2f} messages and "
                      f"{traffic.block_bytes / traffic.blocks / 1e3:.0f} kB per block")  # fmt: skip


def block_bytes(client: Client, X: object, size: int = 256) -> tuple[int, int]:
    """Count bytes and messages of a block in the middle of a pass; zero means will do."""
    cluster = Cluster(client, even_shards(X, 2), Gaussian(0.1), 1024)
    source = DaskGram(cluster, Gaussian(0.1))
    zeros = np.zeros(source.n_samples)
    means = GramMeans(zeros, Centering(zeros, 0.0), 0.0, 0)
    start = np.ones((COMPONENTS, source.n_samples))
    store = DaskStore(source, CenteredGram.from_means(source, means, SERIAL), start, start)
    order = np.random.default_rng(0).permutation(source.n_samples)[: 5 * size]
    blocks = list(order.reshape(5, size))
    traffic, counts = cluster.traffic, []
    for number, block in enumerate(blocks):
        before = traffic.block_bytes, traffic.block_messages
        store.project(block, blocks[number + 1 : number + 3])
        store.transform(np.eye(COMPONENTS), block, np.zeros((COMPONENTS, size)))
        counts.append((traffic.block_bytes - before[0], traffic.block_messages - before[1]))
    cluster.close()
    return counts[2]


def run_bytes(folder: Path, arguments: argparse.Namespace) -> None:
    print("Bytes of a block of 256 patterns × 50 features, two workers")
    with local_cluster(2) as client:
        for length in (5_000, 10_000) if arguments.quick else (5_000, 10_000, 20_000, 40_000):
            path = folder / f"bytes{length}.npy"
            np.save(path, clustered_rows(length, 50))
            n_bytes, messages = block_bytes(client, open_rows(path))
            print(f"  l = {length:6}: {n_bytes} bytes, {messages} messages")


def run_memory(folder: Path, arguments: argparse.Namespace) -> None:
    X = clustered_rows(2_000 if arguments.quick else 12_000, 50)
    np.save(folder / "memory.npy", X)
    kernel = Gaussian(0.02)
    print(f"Peak memory of each of three workers, MB; X: {X.nbytes / 1e6:.1f}, K: "
          f"{8 * len(X) ** 2 / 1e6:.0f}")  # fmt: skip
    with local_cluster(3) as client:
        for solver in ("krylov", "kha/et"):
            cluster = Cluster(client, even_shards(open_rows(folder / "memory.npy"), 3), kernel, 512)
            source = DaskGram(cluster, kernel)
            if solver == "krylov":
                solve_krylov(source, COMPONENTS, KrylovOptions(max_iter=2), seed=0)
            else:
                options = HebbianOptions(solver, init="landmarks", max_iter=1)
                store = partial(DaskStore, source)
                solve_kha(source, COMPONENTS, options, seed=0, open_store=store)
            for number, held in enumerate(cluster.call("held", [()] * 3)):
                kinds = ", ".join(f"{kind} {n / 1e6:.2f}" for kind, n in vars(held).items())
                print(f"  {solver}, worker {number}: {kinds}; total {held.total / 1e6:.1f}")
            cluster.close()


def run_large(folder: Path, arguments: argparse.Namespace) -> None:
    number = 5_000 if arguments.quick else 100_000
    np.save(folder / "large.npy", clustered_rows(number, 50, "float32"))
    with local_cluster(2, memory_limit="1GB") as client:
        start = time.perf_counter()
        model = KernelPCA(
            COMPONENTS, kernel="rbf", gamma=0.01, eigen_solver="krylov", tol=1e-3, random_state=0,
            client=client,
        ).fit(folder / "large.npy")  # fmt: skip
        seconds = time.perf_counter() - start
        resident = client.run(_peak_megabytes)
    last = model.history_[-1]
    print(
        f"{number:,} × 50 on two workers of 1 GB: {seconds:.0f} s, "
        f"{len(model.history_)} passes, {model.outcome_.name}, "
        f"largest residual {last.residuals.max():.1e}, eigenvalues within "
        f"{last.eigenvalue_bounds.max() / last.eigenvalues.max():.1e} of the first, "
        f"{model.traffic_.rebuilt} shards lost, peak of workers {max(resident.values()):.0f} MB"
    )


def _peak_megabytes() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def run_kills(folder: Path, arguments: argparse.Namespace) -> None:
    X = clustered_rows(4_000, 20)
    settings = {"kernel": "rbf", "gamma": 0.02, "max_iter": 3, "random_state": 0, "tol": 1e-12}
    rng, agreeing = np.random.default_rng(arguments.seed), 0
    D = da.from_array(X, chunks=(1_000, -1))
    warnings.simplefilter("ignore", ConvergenceWarning)
    done = 0
    while done < arguments.kills:
        solver = ("kha/et", "krylov", "kha-smd")[done % 3]
        expected = ikpca.KernelPCA(COMPONENTS, eigen_solver=solver, **settings).fit(X)
        with local_cluster(2) as client:
            model = KernelPCA(COMPONENTS, eigen_solver=solver, client=client, **settings)
            # The first fit only warms up the workers.
            for _ in range(2):
                start = time.perf_counter()
                model.fit(D)
                duration = time.perf_counter() - start
            moment = rng.uniform(0, duration)
            victim = rng.choice(sorted(client.run(os.getpid).values()))
            timer = threading.Timer(moment, os.kill, (int(victim), signal.SIGKILL))
            timer.start()
            model.fit(D)
            if timer.is_alive():
                timer.cancel()
                print(f"  {solver}: finished before {moment:.2f} s, repeated")
                continue
            done += 1
            scale = np.abs(expected.coefficients_).max()
            defect = np.abs(model.coefficients_ - expected.coefficients_).max() / scale
            agreeing += bool(defect <= 1e-10)
            print(f"  {solver}: killed after {moment:.2f} s of about {duration:.2f}, "
                  f"{model.traffic_.rebuilt} shards rebuilt, error {defect:.1e}")  # fmt: skip
    print(f"{agreeing} of {arguments.kills} results agree with a single process to 1e-10")


PARTS = {"speed": run_speed, "bytes": run_bytes, "memory": run_memory, "large": run_large,
         "kills": run_kills}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = ["speed", "bytes", "memory", "large"]
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=default)
    parser.add_argument("--quick", action="store_true", help="few rows for bytes, memory, large")
    parser.add_argument("--rows", type=int, default=20_000, help="for speed")
    parser.add_argument("--dtype", default="float32", help="for speed")
    parser.add_argument("--rounds", type=int, default=2, help="for speed")
    parser.add_argument(
        "--default-dask", action="store_true", help="leave Dask's profiles and health checks on"
    )
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="for the moments of kills")
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for part in arguments.parts:
            PARTS[part](Path(folder), arguments)


if __name__ == "__main__":
    main()
