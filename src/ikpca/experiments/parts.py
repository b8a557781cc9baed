"""An experiment in parts: each is run once, kept, and not run again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from ikpca.experiments.inputs import Inputs
from ikpca.experiments.provenance import digest
from ikpca.experiments.selections import Rows, Tables

__all__ = ["Experiment", "Findings", "Part", "Request"]


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
