"""Claims that can fail, judged from written tables alone."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Any

from ikpca.experiments.selections import Selection, Tables

__all__ = ["COMPARISONS", "Claim", "Comparison", "Decrease", "Status", "Verdict", "judge"]

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}


class Status(Enum):
    """What became of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Comparison:
    """One figure against a number or another figure."""

    figure: Selection
    sign: str
    bound: float | Selection

    def check(self, tables: Tables) -> tuple[bool | None, str]:
        """Whether it holds, None where a figure is missing; and the figures as text."""
        left = self.figure.value(tables)
        fixed = isinstance(self.bound, int | float)
        right = self.bound if isinstance(self.bound, int | float) else self.bound.value(tables)
        if left is None or right is None:
            return None, "–"
        shown = _text(left) if fixed else f"{_text(left)} against {_text(right)}"
        return COMPARISONS[self.sign](left, right), shown


@dataclass(frozen=True)
class Decrease:
    """Figures that must fall from each to the next."""

    figures: tuple[Selection, ...]
    names: tuple[str, ...]

    def check(self, tables: Tables) -> tuple[bool | None, str]:
        """Whether every figure is below the one before it; and all of them as text."""
        values = [figure.value(tables) for figure in self.figures]
        found = [value for value in values if value is not None]
        if len(found) < len(values):
            return None, "–"
        named = zip(self.names, found, strict=True)
        shown = ", ".join(f"{name} {_text(value)}" for name, value in named)
        return all(after < before for before, after in pairwise(found)), shown


@dataclass(frozen=True)
class Claim:
    """A sentence, what the paper reports, and what must be true of the tables.

    Parameters
    ----------
    id, sentence : str
    paper : str
        The paper's own figure, as text.
    forms : tuple
        All must hold.
    sizes : tuple of str
        Where it is judged.
    note : str
        What a reader should know about it, such as why it does not hold.
    """

    id: str
    sentence: str
    paper: str
    forms: tuple[Comparison | Decrease, ...]
    sizes: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """A claim with what was found."""

    claim: Claim
    status: Status
    ours: str

    def as_row(self) -> Mapping[str, Any]:
        """For tables and JSON."""
        return {
            "claim": self.claim.id,
            "sentence": self.claim.sentence,
            "paper": self.claim.paper,
            "ours": self.ours,
            "status": self.status.value,
            "note": self.claim.note,
        }


def judge(claim: Claim, size: str, tables: Tables | None) -> Verdict:
    """Compare the tables of a run with a claim; without tables, or at another size: not run."""
    if tables is None or size not in claim.sizes:
        return Verdict(claim, Status.NOT_RUN, "–")
    checks = [form.check(tables) for form in claim.forms]
    ours = "; ".join(shown for _, shown in checks)
    if any(held is None for held, _ in checks):
        return Verdict(claim, Status.NOT_RUN, "–")
    held = all(held for held, _ in checks)
    return Verdict(claim, Status.HOLDS if held else Status.FAILS, ours)


def _text(value: float) -> str:
    return f"{value:.4g}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.1e}"
