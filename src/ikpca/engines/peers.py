"""The way from one shard to another, from worker to worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from distributed import get_worker
from distributed.protocol import to_serialize

from ikpca.hebbian import Floats

__all__ = ["PeerLost", "Peers", "WorkerLost", "opened"]


class WorkerLost(OSError):
    """A worker went away; what it held can be made again from its source."""


class PeerLost(WorkerLost):
    """The same, seen by another worker."""


class Peers:
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
            return opened(
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
    def __init__(self, peers: Peers, shard: int) -> None:
        self._peers, self._shard = peers, shard

    def __call__(self) -> Floats:
        return self._peers._ask(self._shard, "partial")()


def opened(answer: dict[str, Any]) -> Any:
    """What an actor answered, or the trouble it had."""
    if answer["status"] == "OK":
        return answer["result"]
    raise answer["exception"]
