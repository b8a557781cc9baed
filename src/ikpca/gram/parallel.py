"""Threads that share tiles; BLAS is limited to one thread while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain, islice
from typing import Any, Generic, Self, TypeVar

import numpy as np

from ikpca.kernels import Floats

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """Thread pool that applies functions to tiles and returns the results in order.

    As a context manager it starts the threads and limits BLAS to one; otherwise it runs in the
    calling thread and leaves BLAS unchanged. Results do not depend on the number of threads.

    Parameters
    ----------
    n_threads : int
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None
        self._exit = ExitStack()
        self._local = threading.local()

    def __enter__(self) -> Self:
        from threadpoolctl import threadpool_limits

        self._exit.enter_context(threadpool_limits(1, user_api="blas"))
        if self.n_threads > 1:
            # The calling thread works too.
            self._pool = self._exit.enter_context(ThreadPoolExecutor(self.n_threads - 1))
        return self

    def __exit__(self, *_: object) -> None:
        self._pool = None
        self._exit.close()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield results of ``function`` in the order of ``items``, few of them in memory."""
        items = iter(items)
        first = list(islice(items, 2))
        items = chain(first, items)
        if self._pool is None or len(first) < 2:
            yield from map(function, items)
            return
        tasks = _OrderedTasks(function, items, max_pending=4 * self.n_threads)
        helpers = [self._pool.submit(tasks.run) for _ in range(self.n_threads - 1)]
        try:
            yield from tasks.results()
        finally:
            # Wait for the helpers even if the caller stops early or a task failed.
            tasks.close()
            for helper in helpers:
                helper.result()

    def each(self, function: Callable[[Item], Any], items: Iterable[Item]) -> None:
        """Apply ``function`` to all items and discard the results."""
        for _ in self.map(function, items):
            pass

    def submit(self, function: Callable[[], Result]) -> Callable[[], Result]:
        """Start a function in another thread, if there is one; return a callable for its result."""
        return function if self._pool is None else self._pool.submit(function).result

    def scratch(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> Floats:
        """Return an uninitialized array, which the next call in the same thread reuses.

        Allocating new pages would take as long as the work on them.
        """
        n_bytes = shape[0] * shape[1] * dtype.itemsize
        if getattr(self._local, "memory", np.empty(0, np.uint8)).nbytes < n_bytes:
            self._local.memory = np.empty(n_bytes, dtype=np.uint8)
        memory: Any = self._local.memory[:n_bytes]
        return memory.view(dtype).reshape(shape)


class _OrderedTasks(Generic[Item, Result]):
    """Queue of items that threads take when they are free; results are yielded in order.

    A thread waits only if too many results are pending.

    Parameters
    ----------
    function : callable
        Applied to every item.
    items : iterable
    max_pending : int
        Results that may be pending before helper threads wait.
    """

    def __init__(
        self, function: Callable[[Item], Result], items: Iterable[Item], max_pending: int
    ) -> None:
        self._function = function
        self._items = iter(items)
        self._done: dict[int, Future[Result]] = {}
        self._changed = threading.Condition()
        self._n_taken, self._next = 0, 0
        self._max_pending, self._open = max_pending, True

    def run(self) -> None:
        """Work in a helper thread until no item is left."""
        while self._run_one():
            with self._changed:
                self._changed.wait_for(
                    lambda: not self._open or len(self._done) < self._max_pending
                )

    def results(self) -> Iterator[Result]:
        """Work in the calling thread, and yield results in order as they become ready."""
        while self._run_one():
            yield from self._ready()
        while self._next < self._n_taken:
            with self._changed:
                self._changed.wait_for(lambda: self._next in self._done)
            yield from self._ready()

    def close(self) -> None:
        """Stop handing out items."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _run_one(self) -> bool:
        """Process one item and store its result or exception; return False if none is left."""
        with self._changed:
            taken = list(islice(self._items, 1)) if self._open else []
            number = self._n_taken
            self._n_taken += len(taken)
        if not taken:
            return False
        outcome: Future[Result] = Future()
        try:
            outcome.set_result(self._function(taken[0]))
        except BaseException as error:
            outcome.set_exception(error)
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


#: The calling thread, with the number of BLAS threads unchanged.
SERIAL = Workers()
