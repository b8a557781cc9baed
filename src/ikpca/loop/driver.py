"""The only driver loop: step, observers, stopping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from ikpca.loop.interrupts import held
from ikpca.loop.keeping import FORGETFUL, Keeper
from ikpca.loop.outcome import Outcome

__all__ = ["Observer", "Remembering", "Solution", "run"]

State = TypeVar("State")
State_contra = TypeVar("State_contra", contravariant=True)
Report = TypeVar("Report")
Report_contra = TypeVar("Report_contra", contravariant=True)


class Observer(Protocol[State_contra, Report_contra]):
    """Sees every finished step; a non-empty answer ends the run with that outcome."""

    def see(self, state: State_contra, report: Report_contra) -> Outcome | None:
        """Look at a finished step."""


@runtime_checkable
class Remembering(Protocol):
    """An observer to whom earlier steps matter, also those of a run that this one goes on from."""

    def remember(self, reports: Sequence[Any]) -> None:
        """Hear of steps that were done before."""


@dataclass(frozen=True)
class Solution(Generic[State, Report]):
    """The last state, how the run ended, and a report per step."""

    state: State
    outcome: Outcome
    reports: list[Report]


def run(
    step: Callable[[State], tuple[State, Report, Outcome | None]],
    state: State,
    *,
    max_steps: int,
    observers: Sequence[Observer[Any, Any]] = (),
    keeper: Keeper = FORGETFUL,
) -> Solution[State, Report]:
    """Step until an observer or the step itself names an outcome, or ``max_steps`` are done.

    Steps that the keeper recalls count as done, and a run that had ended is not begun again.

    An interrupt ends the run with what the last finished step left. It is answered only while a
    step works, which sees to it that an unfinished one leaves no trace: between two steps state,
    reports and keeper always agree. The caller re-raises.
    """
    with held() as signals:
        solution: Solution[State, Report] = _run(step, state, max_steps, observers, keeper)
        try:
            # What came while the last step was looked at.
            with signals.answered():
                return solution
        except KeyboardInterrupt:
            return replace(solution, outcome=Outcome.INTERRUPTED)


def _run(
    step: Callable[[State], tuple[State, Report, Outcome | None]],
    state: State,
    max_steps: int,
    observers: Sequence[Observer[Any, Any]],
    keeper: Keeper,
) -> Solution[State, Report]:
    kept = keeper.recall()
    reports: list[Report] = [] if kept is None else list(kept.reports)
    if kept is not None and kept.outcome is not None:
        return Solution(state, kept.outcome, reports)
    for observer in observers:
        if isinstance(observer, Remembering):
            observer.remember(reports)
    try:
        while len(reports) < max_steps:
            state, report, outcome = step(state)
            reports.append(report)
            try:
                # Every observer sees every step, also the last one.
                answers = [outcome, *(observer.see(state, report) for observer in observers)]
            except KeyboardInterrupt:
                # The step is done, whoever did not want to look at it.
                keeper.keep(state, report, outcome)
                raise
            ending = next((answer for answer in answers if answer is not None), None)
            keeper.keep(state, report, ending)
            if ending is not None:
                return Solution(state, ending, reports)
    except KeyboardInterrupt:
        return Solution(state, Outcome.INTERRUPTED, reports)
    return Solution(state, Outcome.PASS_LIMIT, reports)
