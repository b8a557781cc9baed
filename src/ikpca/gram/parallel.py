"""Threads that share tiles; BLAS is limited to one thread while they run."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import Any, Generic, Self, TypeVar

import numpy as np
import scipy.linalg  # noqa: F401
from threadpoolctl import ThreadpoolController

from ikpca.kernels import Floats

Item = TypeVar("Item")
Result = TypeVar("Result")
#: Results per thread that may wait for an earlier one.
_MAX_PENDING = 4
#: Threads of BLAS and OpenMP. The libraries of NumPy and SciPy, which are loaded above, are
#: searched once, as that takes as long as a small fit.
THREAD_POOLS: Any = ThreadpoolController()


class BlasLimit:
    """Limit of the number of threads of BLAS, which holds for the whole process.

    Contexts may overlap in any order, also in several threads: the lowest limit holds, and the last
    context restores the number of threads before the first.
    """

    def __init__(self) -> None:
        self._pools = THREAD_POOLS.select(user_api="blas")
        self._lock = threading.Lock()
        self._limits: list[int] = []
        self._first: Any = None

    @contextmanager
    def __call__(self, n_threads: int) -> Iterator[None]:
        """Limit BLAS to ``n_threads`` or fewer threads."""
        with self._lock:
            self._set([*self._limits, n_threads])
        try:
            yield
        finally:
            with self._lock:
                remaining = self._limits.copy()
                remaining.remove(n_threads)
                self._set(remaining)

    def _set(self, limits: list[int]) -> None:
        if limits:
            limiter = self._pools.limit(limits=min(limits))
            self._first = self._first if self._limits else limiter
        else:
            self._first.restore_original_limits()
        self._limits = limits
        # From threadpoolctl 3.8 on, no other thread can set a limit before this one is released.
        for pool in self._pools.lib_controllers:
            if hasattr(pool, "clear_controlling_thread"):
                pool.clear_controlling_thread()


limit_blas = BlasLimit()


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
        self._exit.enter_context(limit_blas(1))
        if self.n_threads > 1:
            # The calling thread works too.
            self._pool = self._exit.enter_context(ThreadPoolExecutor(self.n_threads - 1))
        return self

    def __exit__(self, *_: object) -> None:
        self._pool = None
        self._exit.close()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield results of ``function`` in the order of ``items``, few of them in memory."""
        if self._pool is None:
            yield from map(function, items)
            return
        pending: deque[_Task[Item, Result]] = deque()
        try:
            for item in items:
                pending.append(_Task(function, item))
                self._pool.submit(pending[-1].run)
                if len(pending) == _MAX_PENDING * self.n_threads:
                    yield self._next_result(pending)
            while pending:
                yield self._next_result(pending)
        finally:
            # Wait for the threads even if the caller stops early or a task failed.
            wait([task.future for task in pending if not task.claim()])

    def _next_result(self, pending: deque[_Task[Item, Result]]) -> Result:
        """Return the first result; the calling thread works on other items until it is ready."""
        first = pending.popleft()
        first.run()
        for task in pending:
            if first.future.done():
                break
            task.run()
        return first.future.result()

    def each(self, function: Callable[[Item], object], items: Iterable[Item]) -> None:
        """Apply ``function`` to all items and discard the results."""
        for _ in self.map(function, items):
            pass

    def submit(self, function: Callable[[], Result]) -> Callable[[], Result]:
        """Start a function in another thread, if there is one; return a callable for its result."""
        return function if self._pool is None else self._pool.submit(function).result

    def scratch(self, shape: tuple[int, int], dtype: np.dtype[np.floating]) -> Floats:
        """Return an uninitialized array, which the next call in the same thread reuses.

        Allocating new pages would take as long as the work on them.
        """
        n_bytes = shape[0] * shape[1] * dtype.itemsize
        if getattr(self._local, "memory", np.empty(0, np.uint8)).nbytes < n_bytes:
            self._local.memory = np.empty(n_bytes, dtype=np.uint8)
        memory: Floats = self._local.memory[:n_bytes].view(dtype)
        return memory.reshape(shape)


#: The calling thread, with the number of BLAS threads unchanged.
SERIAL = Workers()


class _Task(Generic[Item, Result]):
    """Call of a function, which the first thread that claims it runs."""

    def __init__(self, function: Callable[[Item], Result], item: Item) -> None:
        self._function = function
        self._item = item
        self._claimed = threading.Lock()
        self.future: Future[Result] = Future()

    def claim(self) -> bool:
        """Return True for the first caller only."""
        return self._claimed.acquire(blocking=False)

    def run(self) -> None:
        """Call the function unless another thread has claimed it."""
        if not self.claim():
            return
        try:
            self.future.set_result(self._function(self._item))
        except BaseException as error:
            self.future.set_exception(error)
            if not isinstance(error, Exception):
                raise
