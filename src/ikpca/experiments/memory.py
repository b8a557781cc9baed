"""Peak memory of this process above where it stood, by the operating system's count."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["PeakMemory"]

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


class PeakMemory:
    """Take the baseline when made; :meth:`above_baseline` tells how far memory rose since.

    On Linux the kernel's peak is reset to the present first. Where that is not permitted, an
    earlier peak may hide a lower one, and the answer errs towards too much.

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
        _give_back_free_memory()
        # Not every system lets a process reset its own peak.
        with suppress(OSError):
            _CLEAR_REFS.write_text(_RESET_PEAK)
        self._baseline = _resident()

    def above_baseline(self) -> int | None:
        """Bytes; None where the system keeps no count."""
        peak = _peak()
        if peak is None or self._baseline is None:
            return None
        return max(peak - self._baseline, 0)


def _give_back_free_memory() -> None:
    """Memory that was freed but kept for reuse would hide as much of what follows."""
    gc.collect()
    # Only glibc has it; elsewhere there is nothing to ask.
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _resident() -> int | None:
    """What is resident now; without a count of it, the peak so far."""
    return _status_bytes("VmRSS") if _STATUS.exists() else _peak()


def _peak() -> int | None:
    return _status_bytes("VmHWM") if _STATUS.exists() else _usage_bytes()


def _status_bytes(field: str) -> int | None:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return None


def _usage_bytes() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts in bytes, every other system in kilobytes.
    return peak if sys.platform == "darwin" else peak * 1024
