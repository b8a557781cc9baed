"""Threads that share tiles; BLAS uses a single thread while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain, islice
from typing import Any, Generic, Self, TypeVar

import numpy as np

from ikpca.gram.tiles import MemoryErrorRetry
from ikpca.kernels import Floats

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """Apply functions to tiles, in this thread or in several; results come in order.

    As a context it starts the threads and takes BLAS down to one; outside of one it runs in the
    calling thread and leaves BLAS alone. What is computed never depends on the number of threads.

    Parameters
    ----------
    n_threads : int

    Attributes
    ----------
    shortage : Shortage
        Cuts tiles that there is no memory for.
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self.shortage = MemoryErrorRetry()
        self._pool: ThreadPoolExecutor | None = None
        self._exit = ExitStack()
        self._local = threading.local()

    def __enter__(self) -> Self:
        from threadpoolctl import threadpool_limits

        self._exit.enter_context(threadpool_limits(1, user_api="blas"))
        if self.n_threads > 1:
            # The calling thread works too, so it needs one helper less.
            self._pool = self._exit.enter_context(ThreadPoolExecutor(self.n_threads - 1))
        return self

    def __exit__(self, *_: object) -> None:
        self._pool = None
        self._exit.close()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of ``function`` in the order of ``items``, few at a time in memory."""
        items = iter(items)
        first = list(islice(items, 2))
        items = chain(first, items)
        if self._pool is None or len(first) < 2:
            yield from map(function, items)
            return
        work = _Shared(function, items, ahead=4 * self.n_threads)
        helpers = [self._pool.submit(work.help) for _ in range(self.n_threads - 1)]
        try:
            yield from work.results()
        finally:
            # Also where the caller wants no more, or something failed: helpers come home first.
            work.close()
            for helper in helpers:
                helper.result()

    def each(self, function: Callable[[Item], Any], items: Iterable[Item]) -> None:
        """Apply ``function`` for its effect."""
        for _ in self.map(function, items):
            pass

    def ahead(self, function: Callable[[], Result]) -> Callable[[], Result]:
        """Begin something in another thread, or leave it for later; the answer fetches it."""
        return function if self._pool is None else self._pool.submit(function).result

    def scratch(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> Floats:
        """Memory that this thread may use until it asks again: fresh pages cost as much as work."""
        n_bytes = shape[0] * shape[1] * dtype.itemsize
        if getattr(self._local, "memory", np.empty(0, np.uint8)).nbytes < n_bytes:
            self._local.memory = np.empty(n_bytes, dtype=np.uint8)
        memory: Any = self._local.memory[:n_bytes]
        return memory.view(dtype).reshape(shape)


class _Shared(Generic[Item, Result]):
    """Items that threads take as they become free; results wait for their turn.

    Threads never wait for each other's tiles, only for a result that is too far ahead to keep.
    """

    def __init__(
        self, function: Callable[[Item], Result], items: Iterable[Item], ahead: int
    ) -> None:
        self._function = function
        self._items = iter(items)
        self._done: dict[int, Future[Result]] = {}
        self._changed = threading.Condition()
        self._taken, self._next = 0, 0
        self._ahead, self._open = ahead, True

    def help(self) -> None:
        """Work until nothing is left."""
        while self._work():
            with self._changed:
                self._changed.wait_for(lambda: not self._open or len(self._done) < self._ahead)

    def results(self) -> Iterator[Result]:
        """Work, and hand out what is ready in order."""
        while self._work():
            yield from self._ready()
        while self._next < self._taken:
            with self._changed:
                self._changed.wait_for(lambda: self._next in self._done)
            yield from self._ready()

    def close(self) -> None:
        """Let no more be taken."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _work(self) -> bool:
        """Take one item, if there is one, and leave its result or its trouble."""
        with self._changed:
            taken = list(islice(self._items, 1)) if self._open else []
            number = self._taken
            self._taken += len(taken)
        if not taken:
            return False
        outcome: Future[Result] = Future()
        try:
            outcome.set_result(self._function(taken[0]))
        except BaseException as trouble:
            outcome.set_exception(trouble)
        with self._changed:
            self._done[number] = outcome
            self._changed.notify_all()
        return True

    def _ready(self) -> Iterator[Result]:
        while self._next in self._done:
            with self._changed:
                outcome = self._done.pop(self._next)
                self._next += 1
                self._changed.notify_all()
            yield outcome.result()


#: The calling thread, with BLAS as it is.
SERIAL = Workers()
