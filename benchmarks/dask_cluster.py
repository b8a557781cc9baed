"""Kernel PCA on a local Dask cluster of single-threaded worker processes.

speed   seconds per pass of krylov with one worker and with two
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

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.exceptions import ConvergenceWarning

import dask
import ikpca
from ikpca.dask import LOW_OVERHEAD_CONFIG, KernelPCA
from ikpca_papers.large import large_rows

COMPONENTS = 16


@contextmanager
def local_cluster(number: int, *, quiet: bool = True, **settings: object) -> Iterator[Client]:
    """Start single-threaded workers and yield a client.

    ``quiet`` turns off Dask's profiling and health checks as ``connect`` does, since scheduler and
    client share the processors with the workers.
    """
    overhead = LOW_OVERHEAD_CONFIG if quiet else {}
    with (
        # A killed worker may take a while to restart.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "120s", **overhead}),
        LocalCluster(
            n_workers=number, threads_per_worker=1, dashboard_address=":0", **settings
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def fit(client: Client, X: object, passes: int, gamma: float) -> KernelPCA:
    with warnings.catch_warnings():
        # The passes are fixed, not the residual.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KernelPCA(
            COMPONENTS, kernel="rbf", gamma=gamma, eigen_solver="krylov", max_iter=passes,
            tol=1e-12, random_state=0, client=client,
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
            fit(client, path, 1, gamma)
        seconds: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(arguments.rounds):
            for number, client in clients.items():
                model = fit(client, path, 2, gamma)
                seconds[number] += [record.seconds for record in model.history_]
        first, second = (min(seconds[number]) for number in (1, 2))
        print(f"  one worker {first:.2f} s, two {second:.2f} s, ratio {first / second:.2f}")


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
        f"peak of workers {max(resident.values()):.0f} MB"
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
        solver = ("krylov", "nystrom")[done % 2]
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
                  f"error {defect:.1e}")  # fmt: skip
    print(f"{agreeing} of {arguments.kills} results agree with a single process to 1e-10")


PARTS = {"speed": run_speed, "large": run_large, "kills": run_kills}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["speed", "large"])
    parser.add_argument("--quick", action="store_true", help="few rows for large")
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
