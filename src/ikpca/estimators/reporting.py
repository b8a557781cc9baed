"""Per-pass observers, callbacks and warnings of a fit."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ikpca.errors import DivergenceWarning, RankWarning, RecoveryWarning
from ikpca.solvers import (
    Observer,
    Outcome,
    PassRecord,
    ProgressLines,
    StopAtChange,
    StopAtResidual,
    StopAtRounding,
)

__all__ = [
    "CallbackObserver",
    "CallbackSupport",
    "fit_context",
    "requested_observers",
    "warn_of_divergence",
    "warn_of_rank",
    "warn_of_recovery",
    "warn_of_tolerance",
    "with_callbacks",
]

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks
except ImportError:

    class CallbackSupport:  # type: ignore[no-redef]
        """Placeholder for versions of scikit-learn without callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method unchanged."""
        return method


def fit_context(estimator: Any, max_passes: int) -> Any | None:
    """Open the root task of a fit; None if scikit-learn has no callbacks."""
    if not hasattr(estimator, "_init_callback_context"):
        return None
    context = estimator._init_callback_context(max_subtasks=max_passes)
    context.call_on_fit_task_begin(estimator=estimator)
    return context


class CallbackObserver:
    """Observer that calls scikit-learn's callbacks after every pass; they may stop the fit.

    Parameters
    ----------
    estimator : estimator
    context : CallbackContext
        Root task.
    attributes : callable
        Returns the current fitted attributes; called only if a callback needs them.
    """

    def __init__(
        self, estimator: Any, context: Any, attributes: Callable[[], dict[str, Any]]
    ) -> None:
        self._estimator = estimator
        self._context = context
        self._attributes = attributes

    def on_step_end(self, state: object, report: PassRecord) -> Outcome | None:
        """Report one pass as one task."""
        task = self._context.subcontext(task_name="pass")
        task.call_on_fit_task_begin(estimator=self._estimator)
        stop = task.call_on_fit_task_end(
            estimator=self._estimator, reconstruction_attributes=self._attributes
        )
        return Outcome.STOPPED if stop else None


def requested_observers(
    model: Any,
    name: str,
    passes: int,
    dtype: np.dtype[Any],
    context: Any,
    attributes: Callable[[], dict[str, Any]],
) -> Sequence[Observer[Any, Any]]:
    """Return observers for progress lines, callbacks and the stopping criteria.

    Parameters
    ----------
    model : estimator
        With ``verbose``, ``tol`` and ``change_tol``.
    name, passes
        Solver and maximum number of passes for the progress lines.
    dtype : dtype
        Its machine precision is the tolerance for ``tol=0``.
    context : CallbackContext or None
    attributes : callable
        Returns the current fitted attributes.
    """
    observers: list[Observer[Any, Any]] = []
    if model.verbose:
        observers.append(ProgressLines(name, passes))
    if context is not None:
        observers.append(CallbackObserver(model, context, attributes))
    if model.change_tol is not None:
        observers.append(StopAtChange(model.change_tol))
    tol = max(float(model.tol), float(np.finfo(dtype).eps))
    return [*observers, StopAtResidual(tol), StopAtRounding()]


def _stacklevel() -> int:
    """Return the stack level of the first caller outside of ikpca and scikit-learn."""
    level, frame = 2, sys._getframe(2)
    while frame.f_back and frame.f_globals["__name__"].split(".")[0] in ("ikpca", "sklearn"):
        level, frame = level + 1, frame.f_back
    return level


def warn_of_divergence(gain: Any, records: list[PassRecord]) -> None:
    """Warn about undone passes unless the gain is automatic."""
    troubled = [record for record in records if record.note]
    if troubled and not isinstance(gain, str):
        last = troubled[-1]
        warnings.warn(
            f"gain={gain!r} was too large in {len(troubled)} of {len(records)} passes, the last "
            f"time in pass {last.number}: {last.note}; pass gain='auto' or a smaller number. "
            "history_ has the details.",
            DivergenceWarning,
            stacklevel=_stacklevel(),
        )


def warn_of_recovery(recoveries: Sequence[str]) -> None:
    """Warn about problems that were detected and corrected."""
    notes = [text for text in recoveries if text]
    if notes:
        warnings.warn(
            f"{notes[-1]}; the result is valid. To avoid this, reduce "
            "n_components or pass rows in double precision.",
            RecoveryWarning,
            stacklevel=_stacklevel(),
        )


def warn_of_rank(
    wanted: Any, found: int, rank: int, remedy: str = "reduce it, or set remove_zero_eig=True"
) -> None:
    """Warn about components that are zero."""
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
    warnings.warn(text, RankWarning, stacklevel=_stacklevel())


def warn_of_tolerance(model: Any, outcome: Outcome, records: list[PassRecord]) -> None:
    """Warn if the fit ended before it reached the tolerance."""
    has_tolerance = model.tol > 0 or model.change_tol is not None
    if has_tolerance and outcome is Outcome.PASS_LIMIT:
        residual = float(records[-1].residuals.max())
        warnings.warn(
            f"max_iter={len(records)} passes did not reach tol={model.tol!r}, "
            f"change_tol={model.change_tol!r} (the largest relative residual is {residual:.2g}); "
            "increase max_iter or the tolerance.",
            ConvergenceWarning,
            stacklevel=_stacklevel(),
        )
