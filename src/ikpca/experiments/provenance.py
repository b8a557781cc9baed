"""With what a result was made: versions, sources, threads."""

from __future__ import annotations

import hashlib
import json
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["blas_threads", "digest", "sources_checksum", "versions"]

_LIBRARIES = ("ikpca", "numpy", "scipy", "scikit-learn", "numba")
_PACKAGE = Path(__file__).parents[1]
#: Rooms that show results and do not make them.
_SHOWING = ("figures", "reports", "cli")


def versions() -> dict[str, str]:
    """Of Python and of the libraries that compute."""
    found = {library: version(library) for library in _LIBRARIES}
    return {"python": platform.python_version(), **found}


@cache
def sources_checksum() -> str:
    """SHA-256 of all code that computes: a result of other code is no result of this one."""
    total = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        inside = path.relative_to(_PACKAGE)
        if inside.parts[0] not in _SHOWING:
            total.update(inside.as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def digest(value: Any) -> str:
    """SHA-256 of a value as JSON, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def blas_threads() -> int:
    """As found, and not as asked for."""
    from threadpoolctl import threadpool_info

    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(pools, default=1)
