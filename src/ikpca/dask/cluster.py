"""Shards on the workers of a Dask cluster: placement, calls, recovery.

Those wait for ever where a worker dies in the middle of a call, and every call of theirs goes
through the scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

import numpy as np
from distributed import get_worker
from distributed.protocol import to_serialize

from ikpca.dask.messages import Traffic
from ikpca.dask.worker import Fold, Shard
from ikpca.errors import ClusterLost, InvalidInput
from ikpca.kernels import Floats, Indices, Kernel


class WorkerLost(OSError):
    """A worker went away; what it held can be made again from its source."""


class PeerLost(WorkerLost):
    """The same, seen by another worker."""


class PeerWorkers:
    """The way from one shard to others, used on a worker.

    Parameters
    ----------
    addresses : sequence of (address, key)
        Of every shard.
    """

    def __init__(self, addresses: Sequence[tuple[str, Any]]) -> None:
        self._addresses = list(addresses)

    def rows(self, shard: int, chosen: slice) -> Callable[[], Floats]:
        """Ask for rows of a shard; what is returned waits for them."""
        return self._ask(shard, "rows", chosen)

    def partial(self, shard: int) -> Callable[[], Floats]:
        """What the last product left in a shard, to be asked for by another one."""
        return _Fetch(self, shard)

    def _ask(self, shard: int, method: str, *arguments: Any) -> Callable[[], Any]:
        address, key = self._addresses[shard]
        worker = get_worker()

        async def call() -> Any:
            if worker.address == address:
                return await getattr(worker.state.actors[key], method)(*arguments)
            given = [to_serialize(argument) for argument in arguments]
            return open_peers(
                await worker.rpc(address).actor_execute(
                    function=method, actor=key, args=given, kwargs={}
                )
            )

        asked = asyncio.run_coroutine_threadsafe(call(), worker.loop.asyncio_loop)

        def answer() -> Any:
            try:
                return asked.result()
            except (OSError, KeyError) as trouble:
                raise PeerLost(f"{address}: {trouble}") from trouble

        return answer


class _Fetch:
    def __init__(self, peers: PeerWorkers, shard: int) -> None:
        self._peers, self._shard = peers, shard

    def __call__(self) -> Floats:
        return self._peers._ask(self._shard, "partial")()


def open_peers(answer: dict[str, Any]) -> Any:
    """What an actor answered, or the trouble it had."""
    if answer["status"] == "OK":
        return answer["result"]
    raise answer["exception"]


#: Seconds between looks at whether a worker that does not answer is still there.
_REPLY_TIMEOUT = 1.0
#: Seconds in which a worker must let this process in, or be asked through the scheduler.
_POLL_INTERVAL = 5.0
#: Seconds after which a scheduler that does not answer is lost.
_SCHEDULER_TIMEOUT = 30.0


class ActorCalls:
    """Calls to methods of actors, directly where workers can be reached from this process.

    Parameters
    ----------
    client : distributed.Client
        With ``direct_to_workers=False`` all calls go through its scheduler.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._reached: dict[str, bool] = {}

    async def ask(self, address: str, key: Any, method: str, arguments: tuple[Any, ...]) -> Any:
        """The answer of an actor; :class:`WorkerLost` where it is there no more."""
        message = {
            "function": method,
            "actor": key,
            "args": [to_serialize(argument) for argument in arguments],
            "kwargs": {},
        }
        call = asyncio.ensure_future(self._send(address, message))
        while not (await asyncio.wait({call}, timeout=_REPLY_TIMEOUT))[0]:
            if not await self._is_there(address):
                call.cancel()
                raise WorkerLost(f"{address} is gone")
        try:
            answer = call.result()
        except (OSError, KeyError) as trouble:
            raise WorkerLost(f"{address}: {trouble}") from trouble
        return open_peers(answer)

    async def workers(self) -> list[str]:
        """Addresses, in order, of those that the scheduler knows."""
        asked = self._client.scheduler.ncores(workers=None)
        return sorted(await asyncio.wait_for(asked, _SCHEDULER_TIMEOUT))

    async def _is_there(self, address: str) -> bool:
        try:
            return address in await self.workers()
        except OSError:
            return False

    async def _send(self, address: str, message: dict[str, Any]) -> Any:
        if await self._is_reached(address):
            return await self._client.rpc(address).actor_execute(**message)
        return await self._client.scheduler.proxy(
            worker=address, msg={"op": "actor_execute", **message}
        )

    async def _is_reached(self, address: str) -> bool:
        """Knock once; behind a network of their own workers are reached by the scheduler alone."""
        if self._client.direct_to_workers is False:
            return False
        if address not in self._reached:
            try:
                await asyncio.wait_for(self._client.rpc(address).identity(), _POLL_INTERVAL)
            except (OSError, TimeoutError):
                self._reached[address] = False
            else:
                self._reached[address] = True
        return self._reached[address]


#: Seconds between looks at whether a worker that does not answer is still there.
_POLL_SECONDS = 1.0
#: Seconds to wait for a worker, where the last one was lost and another may be starting.
_WAIT_FOR_WORKERS = 60
#: A fit gives up when shards were lost so many times.
_MOST_LOSSES = 100


class Cluster:
    """One shard of rows per worker, as actors.

    Parameters
    ----------
    client : distributed.Client
    X : dask.array.Array of shape (l, n_features)
        One chunk for every shard; the source from which a lost one is loaded again.
    kernel : Kernel
    side : int
        Of the tiles.
    fold : {"apart", "together"} or None
        How shards keep the operand of a folding kernel.
    """

    def __init__(
        self, client: Any, X: Any, kernel: Kernel, side: int, *, fold: Fold | None = "apart"
    ) -> None:
        self._client = client
        self._doors = ActorCalls(client)
        self._fold = fold
        self._lost: ClusterLost | None = None
        self._X = X
        self._kernel = kernel
        self._side = side
        self.sizes: tuple[int, ...] = tuple(X.chunks[0])
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)
        self.n_samples, self.n_features = int(X.shape[0]), int(X.shape[1])
        self.dtype = np.dtype(X.dtype)
        self.traffic = Traffic()
        #: Called with the number of a shard that was built again, before it is asked anything.
        self.restore: Callable[[int], None] = _restore_nothing
        workers = self._workers()
        self._addresses = [workers[i % len(workers)] for i in range(len(self.sizes))]
        begun = [self._begin(i) for i in range(len(self.sizes))]
        self._actors = [self._finish(i, future) for i, future in enumerate(begun)]

    def close(self) -> None:
        """Let the shards go."""
        self._actors = []

    @property
    def side(self) -> int:
        """Of the tiles."""
        return self._side

    def columns(self, i: int) -> slice:
        """Which of all rows are in a shard."""
        return slice(int(self.starts[i]), int(self.starts[i]) + self.sizes[i])

    def split(self, indices: Indices) -> list[tuple[Indices, Indices]]:
        """For every shard: which of the indices are its own, and which of its rows they are."""
        owner = np.searchsorted(self.starts, indices, side="right") - 1
        parts = (np.flatnonzero(owner == i) for i in range(len(self.sizes)))
        return [(own, indices[own] - self.starts[i]) for i, own in enumerate(parts)]

    def rows(self, indices: Indices) -> Floats:
        """X[indices]."""
        parts = self.split(indices)
        wanted = [i for i, (own, _) in enumerate(parts) if len(own)]
        found = self.call("rows", [(parts[i][1],) for i in wanted], shards=wanted)
        out = np.empty((len(indices), self.n_features), dtype=self.dtype)
        for i, rows in zip(wanted, found, strict=True):
            out[parts[i][0]] = rows
        return out

    def call(
        self, method: str, arguments: Sequence[tuple[Any, ...]], shards: Sequence[int] | None = None
    ) -> list[Any]:
        """Call a method of all shards, or of some, each with its own arguments.

        A shard that is lost is built again, and then asked again.
        """
        numbers = list(range(len(self.sizes)) if shards is None else shards)
        answers = self.attempt(method, arguments, numbers)
        for place, number in enumerate(numbers):
            while isinstance(answers[place], WorkerLost):
                self.rebuild(number)
                answers[place] = self.attempt(method, [arguments[place]], [number])[0]
        return answers

    def attempt(
        self, method: str, arguments: Sequence[tuple[Any, ...]], shards: Sequence[int]
    ) -> list[Any]:
        """The same, once; the answer of a lost shard is a :class:`WorkerLost`."""

        async def gather() -> list[Any]:
            calls = [
                self._doors.ask(*self.address(i), method, given)
                for i, given in zip(shards, arguments, strict=True)
            ]
            return await asyncio.gather(*calls, return_exceptions=True)

        if self._lost is not None:
            raise self._lost
        answers = self._client.sync(gather)
        for given, answer in zip(arguments, answers, strict=True):
            if isinstance(answer, BaseException) and not isinstance(answer, WorkerLost):
                raise answer
            self.traffic.add_call(given, answer)
        return list(answers)

    def address(self, i: int) -> tuple[str, Any]:
        """Where a shard is, for other shards."""
        return self._addresses[i], self._actors[i].key

    def gather(
        self, method: str, arguments: Sequence[tuple[Any, ...]], shards: Sequence[int]
    ) -> list[Any]:
        """The answers of all; where one is lost it is built again, and the others have to know."""
        answers = self.attempt(method, arguments, shards)
        losses = [answer for answer in answers if isinstance(answer, WorkerLost)]
        for i, answer in zip(shards, answers, strict=True):
            if isinstance(answer, WorkerLost) and not isinstance(answer, PeerLost):
                self.rebuild(i)
        if losses:
            raise losses[0]
        return answers

    def rebuild(self, i: int) -> None:
        """Load a shard from its source again, on the worker that has the fewest."""
        while True:
            self._replace(i)
            try:
                return self.restore(i)
            except WorkerLost:
                continue

    def _replace(self, i: int) -> None:
        self.traffic.rebuilt += 1
        if self.traffic.rebuilt > _MOST_LOSSES:
            raise InvalidInput(
                f"client: workers were lost {_MOST_LOSSES} times during this fit; look at their "
                "logs, most often they have too little memory for their share of the rows."
            )
        gone, self._addresses[i] = self._addresses[i], ""
        workers = [address for address in self._workers() if address != gone]
        self._addresses[i] = min(workers or [gone], key=self._addresses.count)
        self._actors[i] = self._finish(i, self._begin(i))

    def _begin(self, i: int) -> Any:
        place = {"workers": [self._addresses[i]], "allow_other_workers": False}
        # Not bound to a place itself: the same rows may have to be loaded for another worker.
        rows = self._client.compute(self._X.blocks[i])
        return self._client.submit(
            Shard, rows, self._kernel, int(self.starts[i]), self._side, self._fold,
            actor=True, key=f"ikpca-shard-{uuid4().hex}", **place,
        )  # fmt: skip

    def _finish(self, i: int, future: Any) -> Any:
        """Wait for a shard; begin elsewhere where the worker is lost before it is there."""
        from distributed import wait

        while True:
            with suppress(TimeoutError):
                wait(future, timeout=_POLL_SECONDS)
            if future.status == "finished":
                return future
            if future.status == "error":
                failure = future.exception()
                if not _is_loss(failure):
                    raise failure
            if future.status != "pending" or self._addresses[i] not in self._workers():
                self.traffic.rebuilt += 1
                self._addresses[i] = min(self._workers(), key=self._addresses.count)
                future = self._begin(i)

    def _workers(self) -> list[str]:
        """Addresses in order; those that are starting are waited for, if there are no others."""
        present = self._present()
        if present:
            return present
        try:
            self._client.wait_for_workers(1, timeout=_WAIT_FOR_WORKERS)
        except TimeoutError:
            raise InvalidInput(
                "client: the cluster has no workers; start some, for example with cluster.scale(2)."
            ) from None
        return self._present()

    def _present(self) -> list[str]:
        if self._lost is None:
            try:
                return list(self._client.sync(self._doors.workers))
            except (OSError, RuntimeError) as trouble:
                self._lost = ClusterLost(
                    f"client: the scheduler does not answer ({trouble}); start a cluster again, "
                    "and fit with resume=True where there is a checkpoint."
                )
        raise self._lost


def _is_loss(failure: BaseException) -> bool:
    from distributed.scheduler import KilledWorker, NoWorkerError

    return isinstance(failure, OSError | KilledWorker | NoWorkerError)


def _restore_nothing(i: int) -> None:
    """A shard begins with its rows and nothing else."""
