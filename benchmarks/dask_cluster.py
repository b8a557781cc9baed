"""Kernel PCA on a cluster of single-threaded worker processes on this machine, part by part.

speed     two workers against one: seconds per pass of krylov and kha/et, fits in turn
bytes     what a block of a Hebbian pass sends and gets, for 5,000 to 40,000 rows
memory    what every worker held at most, by kind, beside X and the kernel matrix
hundred   100,000 × 50 rows on two workers of 1 GB each, to a certified residual
kills     ten fits, in each of which a worker is killed at a random moment

MNIST comes from the folder named by IKPCA_DATA; where that is absent, rows are generated.
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
from ikpca.solvers import kha, krylov
from ikpca_papers.large import large_rows

COMPONENTS = 16
LENGTHS = (5_000, 10_000, 20_000, 40_000)
KILLS = 10
#: Settings of Dask for every cluster here.
housekeeping = dict(QUIET)


@contextmanager
def workers(number: int, **settings: object) -> Iterator[Client]:
    """A client of so many single-threaded processes; Dask keeps their BLAS to one thread.

    Its profiles and looks at its own health are turned down, as they are with ``--dask local``:
    scheduler and client share two processors with the workers here.
    """
    with (
        # A killed worker may take its time to start again.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "120s", **housekeeping}),
        LocalCluster(
            n_workers=number, threads_per_worker=1, dashboard_address=":0", **settings
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def fitted(client: Client, X: object, solver: str, passes: int, gamma: float) -> KernelPCA:
    with warnings.catch_warnings():
        # So many passes are asked for, not a residual.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KernelPCA(
            COMPONENTS, kernel="rbf", gamma=gamma, eigen_solver=solver, max_iter=passes, tol=1e-12,
            random_state=0, client=client,
        ).fit(X)  # fmt: skip


def clustered_rows(number: int, width: int, dtype: str = "float64") -> np.ndarray:
    """Rows around a few centres: a spectrum with a gap, as real rows have."""
    rng = np.random.default_rng(0)
    centres = 2 * rng.normal(size=(COMPONENTS + 1, width))
    return (centres[rng.integers(len(centres), size=number)]
            + 0.7 * rng.normal(size=(number, width))).astype(dtype)  # fmt: skip


def speed(folder: Path, arguments: argparse.Namespace) -> None:
    name, gamma, rows_of = large_rows(arguments.data)
    X = rows_of(arguments.rows).astype(arguments.dtype)
    path = folder / "speed.npy"
    np.save(path, X)
    print(f"{name}, {X.shape[0]} × {X.shape[1]}, {X.dtype}: seconds per pass, the fastest of all")
    with workers(1) as one, workers(2) as two:
        clients = {1: one, 2: two}
        for client in clients.values():
            fitted(client, path, "krylov", 1, gamma)
        for solver in ("krylov", "kha/et"):
            seconds: dict[int, list[float]] = {1: [], 2: []}
            for _ in range(arguments.rounds):
                for number, client in clients.items():
                    model = fitted(client, path, solver, 2, gamma)
                    seconds[number] += [record.seconds for record in model.history_]
            first, second = (min(seconds[number]) for number in (1, 2))
            print(f"  {solver}: one worker {first:.2f} s, two {second:.2f} s: "
                  f"{first / second:.2f} times as fast")  # fmt: skip
            traffic = model.traffic_
            if traffic.blocks:
                print(f"    {traffic.block_messages / traffic.blocks:.2f} messages and "
                      f"{traffic.block_bytes / traffic.blocks / 1e3:.0f} kB per block")  # fmt: skip


def block_bytes(client: Client, X: object, size: int = 256) -> tuple[int, int]:
    """Bytes and messages of a block in the middle of a pass; its means do not matter here."""
    cluster = Cluster(client, even_shards(X, 2), Gaussian(0.1), 1024)
    source = DaskGram(cluster, Gaussian(0.1))
    zeros = np.zeros(source.n_samples)
    means = GramMeans(zeros, Centering(zeros, 0.0), 0.0, 0)
    start = np.ones((COMPONENTS, source.n_samples))
    store = DaskStore(source, CenteredGram.restored(source, means, SERIAL), start, start)
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


def bytes_per_block(folder: Path, arguments: argparse.Namespace) -> None:
    print("Bytes of a block of 256 patterns × 50 features, two workers")
    with workers(2) as client:
        for length in LENGTHS:
            path = folder / f"bytes{length}.npy"
            np.save(path, clustered_rows(length, 50))
            n_bytes, messages = block_bytes(client, open_rows(path))
            print(f"  l = {length:6}: {n_bytes} bytes, {messages} messages")


def memory(folder: Path, arguments: argparse.Namespace) -> None:
    X = clustered_rows(12_000, 50)
    np.save(folder / "memory.npy", X)
    kernel = Gaussian(0.02)
    print(f"Held by each of three workers at most, MB; X has {X.nbytes / 1e6:.1f}, K "
          f"{8 * len(X) ** 2 / 1e6:.0f}")  # fmt: skip
    with workers(3) as client:
        for solver in ("krylov", "kha/et"):
            cluster = Cluster(client, even_shards(open_rows(folder / "memory.npy"), 3), kernel, 512)
            source = DaskGram(cluster, kernel)
            if solver == "krylov":
                krylov.solve_krylov(source, COMPONENTS, krylov.KrylovOptions(max_iter=2), seed=0)
            else:
                options = kha.HebbianOptions(solver, init="landmarks", max_iter=1)
                kha.solve_kha(source, COMPONENTS, options, seed=0,
                              open_store=partial(DaskStore, source))  # fmt: skip
            for number, held in enumerate(cluster.call("held", [()] * 3)):
                kinds = ", ".join(f"{kind} {n / 1e6:.2f}" for kind, n in vars(held).items())
                print(f"  {solver}, worker {number}: {kinds}; together {held.total / 1e6:.1f}")
            cluster.close()


def hundred(folder: Path, arguments: argparse.Namespace) -> None:
    X = clustered_rows(arguments.many, 50, "float32")
    np.save(folder / "hundred.npy", X)
    with workers(2, memory_limit="1GB") as client:
        begun = time.perf_counter()
        model = KernelPCA(
            COMPONENTS, kernel="rbf", gamma=0.01, eigen_solver="krylov", tol=1e-3, random_state=0,
            client=client,
        ).fit(folder / "hundred.npy")  # fmt: skip
        seconds = time.perf_counter() - begun
        resident = client.run(_peak_megabytes)
    last = model.history_[-1]
    print(
        f"{arguments.many:,} × 50 on two workers of 1 GB: {seconds:.0f} s, "
        f"{len(model.history_)} passes, {model.outcome_.name}, "
        f"largest residual {last.residuals.max():.1e}, eigenvalues within "
        f"{last.eigenvalue_bounds.max() / last.eigenvalues.max():.1e} of the first, "
        f"{model.traffic_.rebuilt} shards lost, peak of workers {max(resident.values()):.0f} MB"
    )


def _peak_megabytes() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def kills(folder: Path, arguments: argparse.Namespace) -> None:
    X = clustered_rows(4_000, 20)
    given = {"kernel": "rbf", "gamma": 0.02, "max_iter": 3, "random_state": 0, "tol": 1e-12}
    rng, right = np.random.default_rng(arguments.seed), 0
    D = da.from_array(X, chunks=(1_000, -1))
    warnings.simplefilter("ignore", ConvergenceWarning)
    done = 0
    while done < arguments.kills:
        solver = ("kha/et", "krylov", "kha-smd")[done % 3]
        expected = ikpca.KernelPCA(COMPONENTS, eigen_solver=solver, **given).fit(X)
        with workers(2) as client:
            model = KernelPCA(COMPONENTS, eigen_solver=solver, client=client, **given)
            # The first fit also warms the workers up.
            for _ in range(2):
                begun = time.perf_counter()
                model.fit(D)
                duration = time.perf_counter() - begun
            moment = rng.uniform(0, duration)
            victim = rng.choice(sorted(client.run(os.getpid).values()))
            timer = threading.Timer(moment, os.kill, (int(victim), signal.SIGKILL))
            timer.start()
            model.fit(D)
            if timer.is_alive():
                timer.cancel()
                print(f"  {solver}: done before {moment:.2f} s, once more")
                continue
            done += 1
            scale = np.abs(expected.coefficients_).max()
            defect = np.abs(model.coefficients_ - expected.coefficients_).max() / scale
            right += bool(defect <= 1e-10)
            print(f"  {solver}: killed after {moment:.2f} s of about {duration:.2f}, "
                  f"{model.traffic_.rebuilt} shards built again, off by {defect:.1e}")  # fmt: skip
    print(f"{right} of {arguments.kills} results are those of one process to 1e-10")


PARTS = {"speed": speed, "bytes": bytes_per_block, "memory": memory, "hundred": hundred,
         "kills": kills}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default="speed,bytes,memory,hundred")
    parser.add_argument("--rows", type=int, default=20_000, help="of MNIST, for speed")
    parser.add_argument("--dtype", default="float32", help="of MNIST, for speed")
    parser.add_argument("--rounds", type=int, default=2, help="of speed")
    parser.add_argument("--many", type=int, default=100_000, help="rows of hundred")
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of kills")
    parser.add_argument(
        "--dask-as-it-is", action="store_true", help="leave its profiles and health checks on"
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("IKPCA_DATA"))
    arguments = parser.parse_args()
    if arguments.dask_as_it_is:
        housekeeping.clear()
    with tempfile.TemporaryDirectory() as folder:
        for part in arguments.parts.split(","):
            PARTS[part](Path(folder), arguments)


if __name__ == "__main__":
    main()
