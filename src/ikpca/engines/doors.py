"""The doors of actors on workers, without Dask's proxies for them.

Those wait for ever where a worker dies in the middle of a call, and every call of theirs goes
through the scheduler.
"""

from __future__ import annotations

import asyncio
from typing import Any

from distributed.protocol import to_serialize

from ikpca.engines.peers import WorkerLost, opened

__all__ = ["Doors"]

#: Seconds between looks at whether a worker that does not answer is still there.
_PATIENCE = 1.0
#: Seconds in which a worker must let this process in, or be asked through the scheduler.
_KNOCKING = 5.0
#: Seconds after which a scheduler that does not answer is lost.
_SCHEDULER_PATIENCE = 30.0


class Doors:
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
        while not (await asyncio.wait({call}, timeout=_PATIENCE))[0]:
            if not await self._is_there(address):
                call.cancel()
                raise WorkerLost(f"{address} is gone")
        try:
            answer = call.result()
        except (OSError, KeyError) as trouble:
            raise WorkerLost(f"{address}: {trouble}") from trouble
        return opened(answer)

    async def workers(self) -> list[str]:
        """Addresses, in order, of those that the scheduler knows."""
        asked = self._client.scheduler.ncores(workers=None)
        return sorted(await asyncio.wait_for(asked, _SCHEDULER_PATIENCE))

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
                await asyncio.wait_for(self._client.rpc(address).identity(), _KNOCKING)
            except (OSError, TimeoutError):
                self._reached[address] = False
            else:
                self._reached[address] = True
        return self._reached[address]
