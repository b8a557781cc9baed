"""Clients of Dask clusters, checks of their workers, and errors of lost clusters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

import dask
import distributed
from distributed import CancelledError, Client, KilledWorker, LocalCluster
from joblib import cpu_count
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import ClusterLost, InvalidInput, invalid_parameter

#: Seconds to wait for the answer of a scheduler.
_TIMEOUT = 10
#: Settings of Dask for workers that share few processors with their scheduler and the client:
#: profiling every 10 ms and health checks every 20 ms take 5 % of a processor per process.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}


def get_client(client: Any) -> Any:
    """Return the client that was passed, or the current one."""
    if client is not None:
        if not isinstance(client, Client):
            raise invalid_parameter(
                "client",
                client,
                "is not a Dask client",
                "pass distributed.Client(...), or None for the current one",
            )
        if client.status != "running":
            raise invalid_parameter(
                "client", client, f"is {client.status}", "connect to the cluster again"
            )
        return client
    try:
        return distributed.get_client()
    except ValueError:
        raise InvalidInput(
            "client=None: there is no current Dask client; connect with distributed.Client(...)."
        ) from None


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Connect to the scheduler at an address, or start worker processes here for "local".

    Parameters
    ----------
    address : str
        For example "tcp://scheduler:8786"; "local" starts a single-threaded worker on each
        processor of this machine, with :data:`QUIET`, and stops them afterwards.

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
            place: Any = address
            if address == "local":
                stack.enter_context(dask.config.set(QUIET))
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
def explain_losses(client: Any) -> Iterator[None]:
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


def worker_versions(client: Any) -> dict[str, str]:
    """Return the version of ikpca on every worker that answers; empty if it is not installed."""
    return dict(client.run(_installed_version, on_error="ignore"))


def check_workers(client: Any) -> None:
    """Reject clusters without workers, and workers with another version of ikpca."""
    if not client.nthreads():
        try:
            client.wait_for_workers(1, timeout=6 * _TIMEOUT)
        except TimeoutError:
            raise InvalidInput(
                "client: the cluster has no workers; start some, for example with cluster.scale(2)."
            ) from None
    here = version("ikpca")
    for address, there in worker_versions(client).items():
        if there != here:
            found = f"has ikpca {there}" if there else "does not have ikpca"
            raise InvalidInput(
                f"client: worker {address} {found}, but this process has {here}; install the same "
                "version on all workers."
            )


def _installed_version() -> str:
    try:
        return version("ikpca")
    except PackageNotFoundError:
        return ""


class ClientMixin:
    """Mixin of estimators with a ``client``, which clones share and which is never pickled."""

    client: Any
    #: The estimator of one process, whose parameters are also parameters of this one.
    _local: ClassVar[Any]

    def __init__(self, n_components: Any = None, *, client: Any = None, **parameters: Any) -> None:
        inherited: Any = super()
        inherited.__init__(n_components, **parameters)
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*cls._local._get_param_names(), "client"])

    @property
    def client_(self) -> Any:
        """Client in use."""
        return get_client(self.client)

    def to_local(self) -> Any:
        """Return the same model without a cluster; the training rows are fetched."""
        check_is_fitted(self)
        plain: Any = self
        parameters = plain.get_params(deep=False)
        del parameters["client"]
        local = self._local(**parameters)
        fitted = {name: value for name, value in vars(self).items()
                  if name not in (*parameters, "client")}  # fmt: skip
        local.__dict__.update(fitted)
        return local

    def save(self, path: Any) -> None:
        """Write the model of :meth:`to_local` to a file."""
        self.to_local().save(path)

    def __getstate__(self) -> dict[str, Any]:
        inherited: Any = super()
        return {**inherited.__getstate__(), "client": None}

    def __sklearn_clone__(self) -> Any:
        plain: Any = self
        parameters = plain.get_params(deep=False)
        client = parameters.pop("client")
        copies = {name: clone(value, safe=False) for name, value in parameters.items()}
        kind: Any = type(self)
        return kind(client=client, **copies)
