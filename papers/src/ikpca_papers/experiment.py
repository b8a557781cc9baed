"""Experiments: parts, inputs, results and provenance."""

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

import ikpca
import ikpca_papers
from ikpca_papers.claims import Rows, Tables

_LIBRARIES = ("ikpca", "numpy", "scipy", "scikit-learn", "numba")
#: Packages and modules that show results and do not compute them.
_PRESENTATION = ("cli", "cli.py", "data_commands.py", "figures", "plotting.py", "report.py")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the numerical libraries."""
    numbers = {library: version(library) for library in _LIBRARIES}
    return {"python": platform.python_version(), **numbers}


@cache
def sources_checksum() -> str:
    """SHA-256 of all code that computes; results of different code are not reused."""
    total = hashlib.sha256()
    for package in (ikpca, ikpca_papers):
        folder = Path(str(package.__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            relative = path.relative_to(folder)
            if relative.parts[0] not in _PRESENTATION:
                name = f"{folder.name}/{relative.as_posix()}"
                total.update(name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def digest(value: Any) -> str:
    """SHA-256 of a value as JSON, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def blas_threads() -> int:
    """Return the number of threads that BLAS uses."""
    from threadpoolctl import threadpool_info

    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(pools, default=1)


Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Inputs:
    """Data of an experiment.

    Parameters
    ----------
    name : str
        Of the view.
    origin : str
        Source of the data sets: embedded, local or download.
    arrays : dict of arrays
    checksum : str
        Of the data sets.
    """

    name: str
    origin: str
    arrays: Arrays
    checksum: str


@dataclass(frozen=True)
class Findings:
    """Results of a part: rows of tables, and arrays for figures."""

    tables: Mapping[str, Rows] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """Independent piece of an experiment, such as one method with one seed.

    Parameters
    ----------
    name : str
        Unique within the experiment; name and settings identify the work.
    task : callable
        Picklable: a function of a module with its arguments.
    """

    name: str
    task: Callable[[], Findings]

    @property
    def slug(self) -> str:
        """File name; a suffix distinguishes similar names."""
        plain = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")
        return f"{plain}-{digest(self.name)[:6]}"


@dataclass(frozen=True)
class Request:
    """Settings, inputs and seed of an experiment."""

    settings: Mapping[str, Any]
    inputs: Inputs
    seed: int = 0


def _no_summary(tables: Tables) -> Mapping[str, Rows]:
    return {}


@dataclass(frozen=True)
class Experiment:
    """Functions that run the experiment of a spec file.

    Parameters
    ----------
    plan : callable
        From a request to the parts.
    summary : callable
        From the tables of all parts to further tables; cheap, so it is not cached.
    """

    plan: Callable[[Request], Sequence[Part]]
    summary: Callable[[Tables], Mapping[str, Rows]] = _no_summary
