"""Memory and threads of a fit: budgets, pages of memory maps, and threads that share tiles."""

from __future__ import annotations

import mmap
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import psutil
import scipy.linalg  # noqa: F401
from threadpoolctl import ThreadpoolController

from ikpca.errors import invalid_parameter
from ikpca.gram.lazy_rows import LazyRows
from ikpca.kernels import Floats, Rows

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Share of the machine's memory that a fit may use by default.
DEFAULT_MEMORY_FRACTION = 0.25
#: Number, prefix of the unit, and "i" of binary units.
_AMOUNT = r"\s*(\d+\.?\d*|\.\d+)\s*(?:(?:([kmgt])(i?))?b)?\s*"
#: Results per thread that may wait for an earlier one.
_MAX_PENDING = 4
#: Threads of BLAS and OpenMP. The libraries of NumPy and SciPy, which are loaded above, are
#: searched once, as that takes as long as a small fit.
THREAD_POOLS: Any = ThreadpoolController()


@dataclass(frozen=True)
class Budget:
    """Memory limit in bytes."""

    n_bytes: int
    #: True if the user set the limit; only then does the size of the tiles depend on it.
    explicit: bool
    #: Bytes that are in use before a plan is made.
    used: int = 0

    @property
    def available(self) -> int:
        """Bytes that a plan may use; negative if more is used than the limit allows."""
        return self.n_bytes - self.used

    def require(self, n_bytes: int, purpose: str, remedy: str) -> None:
        """Raise an error if the user's limit does not allow this many bytes more."""
        if self.explicit and n_bytes > self.available:
            needed = f"{purpose} needs at least {self.used + n_bytes} bytes"
            raise invalid_parameter("max_memory", self.n_bytes, needed, remedy)


def read_budget(max_memory: str | int | None) -> Budget:
    """Parse a memory limit: "500MB", "2GiB", a number, or None for a quarter of the machine.

    Examples
    --------
    >>> read_budget("500MB").n_bytes, read_budget(2_000_000).n_bytes
    (500000000, 2000000)
    """
    if max_memory is None:
        return Budget(int(DEFAULT_MEMORY_FRACTION * machine_memory()), explicit=False)
    is_amount = isinstance(max_memory, str | int | np.integer) and not isinstance(max_memory, bool)
    match = re.fullmatch(_AMOUNT, str(max_memory).lower()) if is_amount else None
    n_bytes = 0
    if match is not None:
        base, power = 1024 if match[3] else 1000, " kmgt".index(match[2] or " ")
        n_bytes = int(float(match[1]) * base**power)
    if n_bytes <= 0:
        remedy = "pass bytes, or a string such as '500MB' or '2GB'"
        raise invalid_parameter(
            "max_memory", max_memory, "is not a positive amount of memory", remedy
        )
    return Budget(n_bytes, explicit=True)


def machine_memory() -> int:
    """Return the memory of the machine, or of the container if it has a lower limit, in bytes."""
    total = int(psutil.virtual_memory().total)
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text("ascii").strip() if limit.exists() else "max"
    return min(total, int(text)) if text.isdigit() else total


def memory_map(X: Rows) -> mmap.mmap | None:
    """Return the memory map beneath an array of rows, or None."""
    if isinstance(X, LazyRows):
        X = getattr(X, "_array", None)
    while isinstance(X, np.ndarray):
        # Discarding pages of a private map would undo changes to them.
        if isinstance(X, np.memmap) and getattr(X, "mode", "c") == "c":
            return None
        X = X.base
    return X if isinstance(X, mmap.mmap) else None


def release_pages(X: Rows) -> None:
    """Let the system drop the pages of a memory map that were read, which it can read again."""
    mapped = memory_map(X)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


class SingleThreadedBlas:
    """Limit of BLAS to one thread, which holds for the whole process.

    Contexts may overlap in any order, also in several threads: the last one to end restores the
    number of threads before the first, which those of threadpoolctl do not.
    """

    def __init__(self) -> None:
        self._pools = THREAD_POOLS.select(user_api="blas")
        self._lock = threading.Lock()
        self._n_open = 0
        self._limit: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Limit BLAS to one thread."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._lock:
            if not self._n_open:
                self._limit = self._pools.limit(limits=1)
            self._n_open += change
            if not self._n_open:
                self._limit.restore_original_limits()
            # From threadpoolctl 3.8 on, no other thread can set a limit before this is released.
            for pool in self._pools.lib_controllers:
                if hasattr(pool, "clear_controlling_thread"):
                    pool.clear_controlling_thread()


single_threaded_blas = SingleThreadedBlas()


class Workers:
    """Thread pool that applies functions to tiles and returns the results in order.

    As a context manager it starts the threads and limits BLAS to one; otherwise it runs in the
    calling thread and leaves BLAS unchanged. Results do not depend on the number of threads.
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None
        self._exit = ExitStack()
        self._local = threading.local()

    def __enter__(self) -> Self:
        self._exit.enter_context(single_threaded_blas())
        if self.n_threads > 1:
            self._pool = self._exit.enter_context(ThreadPoolExecutor(self.n_threads))
        return self

    def __exit__(self, *_: object) -> None:
        self._pool = None
        self._exit.close()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield results of ``function`` in the order of ``items``, few of them in memory."""
        if self._pool is None:
            yield from map(function, items)
            return
        pending: deque[Future[Result]] = deque()
        try:
            for item in items:
                pending.append(self._pool.submit(function, item))
                if len(pending) == _MAX_PENDING * self.n_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            # Wait for the threads even if the caller stops early or a call failed.
            wait([future for future in pending if not future.cancel()])

    def for_each(self, function: Callable[[Item], object], items: Iterable[Item]) -> None:
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
