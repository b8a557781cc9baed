"""What a user should know after a fit: one warning for each thing, with its remedy."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ikpca.errors import DivergenceWarning, RankWarning, RecoveryWarning
from ikpca.loop import Outcome, PassRecord

__all__ = ["warn_of_divergence", "warn_of_rank", "warn_of_recovery", "warn_of_tolerance"]


def _caller() -> int:
    """Frames from the helper up to the first line that is neither ours nor scikit-learn's."""
    level, frame = 2, sys._getframe(2)
    while frame.f_back and frame.f_globals["__name__"].split(".")[0] in ("ikpca", "sklearn"):
        level, frame = level + 1, frame.f_back
    return level


def warn_of_divergence(gain: Any, records: list[PassRecord]) -> None:
    """Tell of undone passes, unless the gain was the library's own choice."""
    troubled = [record for record in records if record.note]
    if troubled and not isinstance(gain, str):
        last = troubled[-1]
        warnings.warn(
            f"gain={gain!r} was too large in {len(troubled)} of {len(records)} passes, the last "
            f"time in pass {last.number}: {last.note}; pass gain='auto' or a smaller number. "
            "history_ has the details.",
            DivergenceWarning,
            stacklevel=_caller(),
        )


def warn_of_recovery(recoveries: Sequence[str]) -> None:
    """Tell of what gave way and was mended."""
    told = [text for text in recoveries if text]
    if told:
        warnings.warn(
            f"{told[-1]}; the result stands. Free some memory, ask for fewer components or pass "
            "rows in double precision to be spared this.",
            RecoveryWarning,
            stacklevel=_caller(),
        )


def warn_of_rank(
    wanted: Any, found: int, rank: int, remedy: str = "ask for fewer, or set remove_zero_eig=True"
) -> None:
    """Tell of components that are zero."""
    if rank == 0:
        text = (
            "the kernel has no variance on these rows: all components are zero; check that rows "
            "differ and that gamma fits their scale."
        )
    elif rank < found:
        text = (
            f"n_components={wanted!r} exceeds the numerical rank {rank} of the centred kernel "
            f"matrix: the other components are zero; {remedy}."
        )
    else:
        return
    warnings.warn(text, RankWarning, stacklevel=_caller())


def warn_of_tolerance(model: Any, outcome: Outcome, records: list[PassRecord]) -> None:
    """Tell that passes ran out before an accuracy that was asked for."""
    asked = model.tol > 0 or model.change_tol is not None
    if asked and outcome is Outcome.PASS_LIMIT:
        residual = float(records[-1].residuals.max())
        warnings.warn(
            f"max_iter={len(records)} passes did not reach tol={model.tol!r}, "
            f"change_tol={model.change_tol!r} (the largest relative residual is {residual:.2g}); "
            "raise max_iter, or ask for less.",
            ConvergenceWarning,
            stacklevel=_caller(),
        )
