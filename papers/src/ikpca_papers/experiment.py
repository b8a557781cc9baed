"""Experiments as lists of parts that run once and are kept."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ikpca_papers.claims import Rows, Tables

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


Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Inputs:
    """Data in memory.

    Parameters
    ----------
    name : str
        Of the view.
    origin : str
        Where its data sets came from: embedded, local or download.
    arrays : dict of arrays
    checksum : str
        Over those of the data sets.
    """

    name: str
    origin: str
    arrays: Arrays
    checksum: str


@dataclass(frozen=True)
class Findings:
    """What a part found: rows for tables, and arrays that pictures are drawn from."""

    tables: Mapping[str, Rows] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A piece of work that stands for itself, such as one method with one seed.

    Parameters
    ----------
    name : str
        Unique within the experiment; the settings and the name say all about the work.
    task : callable
        Picklable: a function of a module with its arguments.
    """

    name: str
    task: Callable[[], Findings]

    @property
    def slug(self) -> str:
        """A file name; the end keeps apart what looks alike."""
        plain = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")
        return f"{plain}-{digest(self.name)[:6]}"


@dataclass(frozen=True)
class Request:
    """What an experiment is told."""

    settings: Mapping[str, Any]
    inputs: Inputs
    seed: int = 0


def _no_summary(tables: Tables) -> Mapping[str, Rows]:
    return {}


@dataclass(frozen=True)
class Experiment:
    """The work behind a spec file.

    Parameters
    ----------
    plan : callable
        From a request to the parts.
    summary : callable
        From the tables of all parts to further tables; cheap, and done anew every time.
    """

    plan: Callable[[Request], Sequence[Part]]
    summary: Callable[[Tables], Mapping[str, Rows]] = _no_summary
