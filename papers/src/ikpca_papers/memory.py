"""Peak memory of the current process."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
from contextlib import suppress
from pathlib import Path

import psutil

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


class PeakMemory:
    """Peak memory above a baseline that is taken on construction.

    On Linux the kernel's peak is reset first. Where that is not permitted, an earlier peak may hide
    a lower one, and the result is too large.

    Examples
    --------
    >>> import numpy as np
    >>> memory = PeakMemory()
    >>> size = np.ones(5_000_000).nbytes
    >>> peak = memory.above_baseline()
    >>> peak is None or peak > 0.9 * size
    True
    """

    def __init__(self) -> None:
        _release_free_memory()
        # Not every system lets a process reset its own peak.
        with suppress(OSError):
            _CLEAR_REFS.write_text(_RESET_PEAK, encoding="ascii")
        self._baseline = psutil.Process().memory_info().rss

    def above_baseline(self) -> int | None:
        """Return bytes; None where the system does not report them."""
        peak = _peak()
        return None if peak is None else max(peak - self._baseline, 0)


def _release_free_memory() -> None:
    """Return freed memory to the system; kept for reuse, it would hide later allocations."""
    gc.collect()
    # Only glibc has it.
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _peak() -> int | None:
    """Return the largest number of resident bytes; only Linux can reset it."""
    if _STATUS.exists():
        match = re.search(r"^VmHWM:\s+(\d+) kB$", _STATUS.read_text("utf-8"), re.MULTILINE)
        return None if match is None else int(match[1]) * 1024
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts in bytes, every other system in kilobytes.
    return peak if sys.platform == "darwin" else peak * 1024
