"""Two single-threaded worker processes against one: seconds per pass, bytes per block.

Run ``python benchmarks/dask_cluster.py [rows]``; MNIST from IKPCA_DATA, else generated rows.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from ikpca.dask import KernelPCA


def rows(number: int) -> np.ndarray:
    """MNIST as float32 in [0, 1], or as many generated rows of the same width."""
    folder = Path(os.environ.get("IKPCA_DATA", "../shared/data"))
    found = sorted(folder.glob("**/*mnist*.np[yz]"))
    if not found:
        return np.random.default_rng(0).random((number, 784), dtype=np.float32)
    loaded = np.load(found[0])
    X = loaded if isinstance(loaded, np.ndarray) else loaded[loaded.files[0]]
    return X[:number].reshape(min(number, len(X)), -1).astype(np.float32) / 255


def seconds_per_pass(X: np.ndarray, n_workers: int, solver: str, passes: int) -> tuple[float, str]:
    """The fastest pass of a fit, and what travelled."""
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        model = KernelPCA(
            16, kernel="rbf", gamma=0.02, eigen_solver=solver, max_iter=passes, random_state=0,
            client=client,
        )  # fmt: skip
        model.fit(da.from_array(X, chunks=(len(X) // 4, -1)))
        traffic = model.traffic_
        per_block = traffic.block_bytes // max(1, traffic.blocks)
        messages = traffic.block_messages / max(1, traffic.blocks)
        note = f"{per_block} bytes and {messages:.2f} messages per block"
        return min(record.seconds for record in model.history_), note


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    X = rows(number)
    print(f"{X.shape[0]} x {X.shape[1]} {X.dtype}")
    for solver in ("krylov", "kha/et"):
        one, _ = seconds_per_pass(X, 1, solver, 2)
        two, note = seconds_per_pass(X, 2, solver, 2)
        print(f"{solver}: one worker {one:.2f} s, two {two:.2f} s, {one / two:.2f} times; {note}")


if __name__ == "__main__":
    main()
