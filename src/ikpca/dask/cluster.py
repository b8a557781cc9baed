"""Clusters: their clients and workers, and rows that the workers load."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import dask.array as da
import distributed
import numpy as np
from distributed import CancelledError, Client, KilledWorker, LocalCluster
from joblib import cpu_count
from sklearn.utils.validation import validate_data

import dask
from dask import delayed
from ikpca.errors import ClusterLost, InvalidInput, invalid_parameter
from ikpca.estimators.base import KernelTransformer
from ikpca.gram import open_rows as open_local_rows
from ikpca.gram import tile_slices
from ikpca.gram.lazy_rows import LazyRows
from ikpca.kernels import Floats, Indices

if TYPE_CHECKING:
    from dask.dataframe import DataFrame

    #: Rows of a fit on a cluster.
    DaskRowsLike: TypeAlias = da.Array | DataFrame | str | PathLike[str]

#: Seconds to wait for the answer of a scheduler.
_TIMEOUT = 10
#: Bytes that a worker reads at a time.
_CHUNK_BYTES = 64 * 10**6
#: Settings of Dask for workers that share few processors with their scheduler and the client:
#: profiling every 10 ms and health checks every 20 ms take 5 % of a processor per process.
LOW_OVERHEAD_CONFIG = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}


def get_client(client: Client | None) -> Client:
    """Return the client that was passed, or the current one."""
    if client is None:
        try:
            return distributed.get_client()
        except ValueError:
            raise InvalidInput(
                "client=None: there is no current Dask client; connect with "
                "distributed.Client(...)."
            ) from None
    if not isinstance(client, Client) or client.status != "running":
        raise invalid_parameter(
            "client",
            client,
            "is not a Dask client that is connected to a cluster",
            "pass distributed.Client(...), or None for the current one",
        )
    return client


@contextmanager
def connect(address: str) -> Iterator[Client]:
    """Connect to the scheduler at an address, or start worker processes here for "local".

    Parameters
    ----------
    address : str
        For example "tcp://scheduler:8786"; "local" starts a single-threaded worker on each
        processor of this machine, with :data:`LOW_OVERHEAD_CONFIG`, and stops them afterwards.

    Yields
    ------
    distributed.Client

    Examples
    --------
    >>> import ikpca.dask
    >>> with ikpca.dask.connect("local") as client:  # doctest: +SKIP
    ...     model = ikpca.dask.KernelPCA(16, client=client).fit("rows.npy")
    """
    with ExitStack() as stack:
        try:
            place: str | LocalCluster = address
            if address == "local":
                stack.enter_context(dask.config.set(LOW_OVERHEAD_CONFIG))
                place = LocalCluster(
                    n_workers=cpu_count(), threads_per_worker=1, dashboard_address=":0"
                )
                stack.enter_context(place)
            client = stack.enter_context(Client(place, timeout=_TIMEOUT))
        except (OSError, RuntimeError, ValueError) as error:
            raise invalid_parameter(
                "dask",
                address,
                f"no scheduler answers ({error})",
                "start one with 'dask scheduler', or pass 'local'",
            ) from error
        yield client


@contextmanager
def explain_losses(client: Client) -> Iterator[None]:
    """Raise ClusterLost for a lost scheduler, and InvalidInput for workers that die repeatedly.

    Dask itself repeats the tasks of lost workers, each as often as its settings allow.
    """
    try:
        yield
    except KilledWorker as error:
        raise InvalidInput(
            f"client: workers were lost repeatedly by one task ({error}); check their logs, most "
            "often they have too little memory for their share of the rows."
        ) from error
    except (CancelledError, OSError, RuntimeError) as error:
        if client.status == "running" and not isinstance(error, CancelledError):
            raise
        raise ClusterLost(
            "client: the connection to the scheduler was lost; start a cluster again and repeat "
            "the fit, which resumes from its checkpoint if there is one."
        ) from error


def wait_for_workers(client: Client) -> None:
    """Raise an error for a cluster without workers."""
    if not client.nthreads():
        try:
            client.wait_for_workers(1, timeout=6 * _TIMEOUT)
        except TimeoutError:
            raise InvalidInput(
                "client: the cluster has no workers; start some, for example with cluster.scale(2)."
            ) from None


def open_rows(path: str | PathLike[str]) -> da.Array | DataFrame:
    """Open a file of rows without reading it; workers must see it under the same path.

    Parameters
    ----------
    path : str or path
        A ``.parquet`` file or a folder of them, or another file of :func:`ikpca.open_rows`.

    Returns
    -------
    dask array, or data frame for Parquet
        For the ``fit`` of the estimators here, which take the path itself as well.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.dask import open_rows
    >>> path = Path(tempfile.mkdtemp(), "rows.npy")
    >>> np.save(path, np.ones((4, 2), dtype=np.float32))
    >>> open_rows(path)
    dask.array<...shape=(4, 2), dtype=float32...>
    """
    path = Path(path)
    if path.suffix == ".parquet" or (path.is_dir() and any(path.glob("*.parquet"))):
        if not path.exists():
            raise InvalidInput(f"{path}: there is no such file; check the path.")
        from dask.dataframe import read_parquet

        return read_parquet(str(path))
    rows = open_local_rows(path)
    if len(rows.shape) != 2:
        raise InvalidInput(f"{path}: has an array of shape {rows.shape}; save a matrix.")
    n_features, dtype = rows.shape[1], rows.dtype
    parts = tile_slices(rows.shape[0], max(1, _CHUNK_BYTES // max(1, n_features * dtype.itemsize)))
    read, meta = delayed(_read), np.empty((0, 0), dtype=dtype)
    return da.concatenate([
        da.from_delayed(read(str(path), part), (part.stop - part.start, n_features), meta=meta)
        for part in parts
    ])  # fmt: skip


def _read(path: str, part: slice) -> Floats:
    return np.array(open_local_rows(path)[part])


class DaskRows(LazyRows):
    """Rows of a Dask array, computed when indexed."""

    def __init__(self, array: da.Array, client: Client) -> None:
        super().__init__(array)
        self.array, self._client = array, client

    def __getitem__(self, rows: slice | Indices) -> Floats:
        """Compute rows as an array in memory."""
        return np.asarray(self._client.compute(self.array[rows], sync=True))


def check_rows(model: KernelTransformer, X: DaskRowsLike, *, reset: bool = True) -> da.Array:
    """Return float rows; loading a block with NaN, infinite or overflowing values raises.

    With ``reset``, number and names of the features are set in the model, otherwise compared.
    """
    if isinstance(X, str | PathLike):
        X = open_rows(X)
    # A data frame of pandas with the same columns.
    header = X.dtypes.to_frame().T if hasattr(X, "columns") else None
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array(lengths=True)
    _check_array(X)
    header = np.empty((0, X.shape[1])) if header is None else header
    validate_data(model, header, reset=reset, skip_check_array=True)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    starts = [0, *np.cumsum(X.chunks[0]).tolist()]
    check = partial(_check_block, starts=starts)
    return X.map_blocks(check, dtype=X.dtype, meta=np.empty((0, 0), dtype=X.dtype))


def _check_array(X: object) -> None:
    if not isinstance(X, da.Array) or X.ndim != 2:
        raise invalid_parameter(
            "X",
            f"{type(X).__name__} of shape {getattr(X, 'shape', None)}",
            "must be a Dask array with one row per sample, a data frame or a path",
            "pass dask.array.from_array(X, chunks=(10_000, -1))",
        )
    if any(np.isnan(size) for sizes in X.chunks for size in sizes):
        raise InvalidInput("X has chunks of unknown size; call X.compute_chunk_sizes() first.")
    if len(X.chunks[1]) > 1:
        raise InvalidInput(
            f"X has {len(X.chunks[1])} chunks over its features, but kernels need whole rows; pass "
            "X.rechunk({1: -1})."
        )


def _check_block(block: Floats, *, starts: list[int], block_id: tuple[int, int] = (0, 0)) -> Floats:
    if len(block) == 0:
        return block
    number, start = block_id[0], starts[block_id[0]]
    where = f"block {number} (rows {start} to {start + len(block) - 1})"
    bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
    if len(bad):
        raise InvalidInput(
            f"X contains NaN or infinite values in {where}, first in row {start + int(bad[0])}; "
            "replace them."
        )
    largest = float(np.abs(block).max(initial=0.0))
    limit = float(np.sqrt(np.finfo(block.dtype).max))
    if largest > 0 and largest > limit / (starts[-1] * block.shape[1] * largest):
        raise InvalidInput(
            f"X contains numbers as large as {largest:.3g} in {where}: sums of their products "
            f"overflow {block.dtype}; scale X."
        )
    return np.ascontiguousarray(block)
