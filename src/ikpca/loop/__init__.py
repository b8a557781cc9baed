"""The only driver loop, its clock, observers and outcomes."""

from ikpca.loop.clock import Clock
from ikpca.loop.driver import Observer, Solution, run
from ikpca.loop.interrupts import interruptible
from ikpca.loop.keeping import FORGETFUL, Keeper, Kept
from ikpca.loop.outcome import Outcome
from ikpca.loop.reports import (
    PassRecord,
    ProgressLines,
    StopAtChange,
    StopAtResidual,
    StopAtRounding,
)

__all__ = [
    "FORGETFUL",
    "Clock",
    "Keeper",
    "Kept",
    "Observer",
    "Outcome",
    "PassRecord",
    "ProgressLines",
    "Solution",
    "StopAtChange",
    "StopAtResidual",
    "StopAtRounding",
    "interruptible",
    "run",
]
