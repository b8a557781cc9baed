"""Clients of Dask clusters, and checks of their workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from typing import Any, ClassVar

from ikpca.errors import InvalidInput, invalid_parameter

#: Seconds for a scheduler to answer.
_TIMEOUT = 10
#: Settings of Dask for workers that share few processors with their scheduler and the client. Its
#: profiles every 10 ms and looks at its own health every 20 ms take 5 % of a processor per process.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}


def get_client(client: Any) -> Any:
    """The client that was passed, the current one, or one on the threads of this process."""
    from distributed import Client, get_client

    if client is not None:
        if not isinstance(client, Client):
            raise invalid_parameter(
                "client",
                client,
                "is no Dask client",
                "pass distributed.Client(...), or None for the current one",
            )
        if client.status != "running":
            raise invalid_parameter(
                "client", client, f"is {client.status}", "connect to the cluster again"
            )
        return client
    try:
        return get_client()
    except ValueError:
        pass
    try:
        return Client(
            processes=False,
            n_workers=os.cpu_count() or 1,
            threads_per_worker=1,
            dashboard_address=None,
        )
    except (OSError, RuntimeError, ValueError) as trouble:
        raise InvalidInput(
            f"client=None: there is no Dask client, and none could be started ({trouble}); pass "
            "distributed.Client(address)."
        ) from trouble


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address, or of worker processes here for "local".

    Parameters
    ----------
    address : str
        As "tcp://scheduler:8786"; "local" starts a single-threaded worker on each processor of
        this machine, with :data:`QUIET`, and ends them afterwards.

    Yields
    ------
    distributed.Client

    Examples
    --------
    >>> import ikpca.dask
    >>> with ikpca.dask.connect("local") as client:  # doctest: +SKIP
    ...     model = ikpca.dask.KernelPCA(16, client=client).fit("rows.npy")
    """
    import dask.config
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        try:
            place: Any = address
            if address == "local":
                stack.enter_context(dask.config.set(QUIET))
                place = LocalCluster(
                    n_workers=os.cpu_count() or 1, threads_per_worker=1, dashboard_address=":0"
                )
                stack.enter_context(place)
            client = stack.enter_context(Client(place, timeout=_TIMEOUT))
        except (OSError, RuntimeError, ValueError) as trouble:
            raise invalid_parameter(
                "dask",
                address,
                f"no scheduler answers ({trouble})",
                "start one with 'dask scheduler', or pass 'local'",
            ) from trouble
        yield client


def worker_versions(client: Any) -> dict[str, str]:
    """The version of ikpca on every worker that answers; empty where there is none."""
    return dict(client.run(_own_version, on_error="ignore"))


def check_workers(client: Any) -> None:
    """Refuse workers whose ikpca is another one, or absent: they would compute something else."""
    here = version("ikpca")
    for address, there in worker_versions(client).items():
        if there != here:
            found = f"has ikpca {there}" if there else "has no ikpca"
            raise InvalidInput(
                f"client: worker {address} {found}, and here is {here}; install the same version "
                "on all workers."
            )


def _own_version() -> str:
    from importlib.metadata import PackageNotFoundError

    try:
        return version("ikpca")
    except PackageNotFoundError:
        return ""


class ClientMixin:
    """What an estimator with a ``client`` does about it: it is shared, and never pickled."""

    client: Any
    #: The estimator without a client; all of its parameters are parameters here.
    _local: ClassVar[Any]

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*cls._local._get_param_names(), "client"])

    @property
    def client_(self) -> Any:
        """The client in use."""
        return get_client(self.client)

    def _without_client(self, *left: str) -> Any:
        """The estimator of one process, with the same parameters and attributes but for some."""
        plain: Any = self
        parameters = plain.get_params(deep=False)
        del parameters["client"]
        local = self._local(**parameters)
        kept = {name: value for name, value in vars(self).items()
                if name not in (*parameters, "client", *left)}  # fmt: skip
        local.__dict__.update(kept)
        return local

    def __getstate__(self) -> dict[str, Any]:
        inherited: Any = super()
        state = dict(inherited.__getstate__())
        state["client"] = None
        return state

    def __sklearn_clone__(self) -> Any:
        from sklearn.base import clone

        plain: Any = self
        parameters = plain.get_params(deep=False)
        client = parameters.pop("client")
        copies = {name: clone(value, safe=False) for name, value in parameters.items()}
        kind: Any = type(self)
        return kind(client=client, **copies)
