"""A share of the variance takes rounds of more and more components; one checkpoint serves all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ikpca.loop import Keeper, Kept, Outcome, PassRecord

__all__ = ["Round", "RoundProgress", "first_round"]


@dataclass(frozen=True, eq=False)
class RoundProgress:
    """Where a fit for a share of the variance is.

    Parameters
    ----------
    number : int
        Components of the round.
    records : list of PassRecord
        Of the rounds before it.
    progress : object
        The solver's own.
    """

    number: int
    records: list[PassRecord]
    progress: Any


class Round:
    """The keeper of one round, which writes into that of the whole fit.

    Parameters
    ----------
    keeper : Keeper
    number : int
    records : list of PassRecord
        Of the rounds before.
    """

    def __init__(self, keeper: Keeper, number: int, records: list[PassRecord]) -> None:
        self._keeper = keeper
        self._number = number
        self._records = records

    def recall(self) -> Kept | None:
        """Where this round was, if it is the one that was cut short."""
        kept = self._keeper.recall()
        if kept is None or kept.progress.number != self._number:
            return None
        return Kept(kept.progress.progress, kept.reports[len(self._records) :], kept.outcome)

    def describe_with(self, describe: Callable[[Any], Any]) -> None:
        """Put the number of components beside what the solver says."""
        self._keeper.describe_with(
            lambda state: RoundProgress(self._number, self._records, describe(state))
        )

    def keep(self, state: Any, report: Any, outcome: Outcome | None) -> None:
        """As the whole fit does."""
        self._keeper.keep(state, report, outcome)


def first_round(keeper: Keeper, number: int) -> tuple[int, list[PassRecord]]:
    """Components to begin with, and the records of earlier rounds."""
    kept = keeper.recall()
    if kept is None:
        return number, []
    return int(kept.progress.number), list(kept.progress.records)
