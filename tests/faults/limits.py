"""Limits of time and memory for reading a file."""

from __future__ import annotations

import contextlib
import resource
import signal
from pathlib import Path

#: No file may take longer to read, or more address space beyond what the process has.
SECONDS, MORE_MEMORY = 5, 256 * 2**20
STATED = {"limits": f"{SECONDS} s and {MORE_MEMORY >> 20} MB of address space per file"}


@contextlib.contextmanager
def bounded():
    """Limit address space and time; yield a function that restarts the timer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, _too_long)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MORE_MEMORY, hard))
    try:
        yield lambda: signal.alarm(SECONDS)
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)


def peak_memory():
    """Return the peak resident memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _address_space():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _too_long(number, frame):
    raise TimeoutError(f"a file took more than {SECONDS} s")
