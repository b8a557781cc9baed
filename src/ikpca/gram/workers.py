"""Threads that share tiles. One owner: while they work, BLAS has a single thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from typing import Any, Self, TypeVar

import numpy as np

from ikpca.kernels import Floats

__all__ = ["SERIAL", "Workers"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """Apply functions to tiles, in this thread or in several; results come in order.

    As a context it starts the threads and takes BLAS down to one; outside of one it runs in the
    calling thread and leaves BLAS alone. What is computed never depends on the number of threads.

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
            # The calling thread works too, so it needs one helper less.
            self._pool = self._exit.enter_context(ThreadPoolExecutor(self.n_threads - 1))
        return self

    def __exit__(self, *_: object) -> None:
        self._pool = None
        self._exit.close()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of ``function`` in the order of ``items``, few at a time in memory."""
        if self._pool is None:
            yield from map(function, items)
            return
        pending = iter(items)
        while group := list(islice(pending, self.n_threads)):
            helpers = [self._pool.submit(function, item) for item in group[1:]]
            yield function(group[0])
            for helper in helpers:
                yield helper.result()

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


#: The calling thread, with BLAS as it is.
SERIAL = Workers()
