"""The port: who remembers where a run is, so that another can go on from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ikpca.loop.outcome import Outcome

__all__ = ["FORGETFUL", "Keeper", "Kept"]


@dataclass(frozen=True, eq=False)
class Kept:
    """What was remembered.

    Parameters
    ----------
    progress : object
        The solver's own description of where it was; going on from it gives the same bits.
    reports : list
        One per finished step.
    outcome : Outcome or None
        How the run had ended; None where it was cut short or may simply go on.
    """

    progress: Any
    reports: list[Any]
    outcome: Outcome | None = None


class Keeper(Protocol):
    """Told of every step of a run, and asked, by another run, where it was."""

    def recall(self) -> Kept | None:
        """Where an earlier run was; None to begin at the beginning."""

    def describe_with(self, describe: Callable[[Any], Any]) -> None:
        """Hear how a state is turned into all that going on from it takes."""

    def keep(self, state: Any, report: Any, outcome: Outcome | None) -> None:
        """Remember a finished step, and how the run ends with it if it does."""


class _Forgetful:
    """Remembers nothing."""

    def recall(self) -> Kept | None:
        """Begin at the beginning."""
        return None

    def describe_with(self, describe: Callable[[Any], Any]) -> None:
        """Not interested."""

    def keep(self, state: Any, report: Any, outcome: Outcome | None) -> None:
        """Not interested either."""


FORGETFUL: Keeper = _Forgetful()
