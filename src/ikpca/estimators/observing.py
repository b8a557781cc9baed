"""The observers that constructor arguments ask for, the same for every iterative estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ikpca.estimators.callbacks import CallbackObserver
from ikpca.loop import (
    Observer,
    ProgressLines,
    StopAtChange,
    StopAtResidual,
    StopAtRounding,
)

__all__ = ["requested_observers"]


def requested_observers(
    model: Any,
    name: str,
    passes: int,
    dtype: np.dtype[Any],
    context: Any,
    attributes: Callable[[], dict[str, Any]],
) -> Sequence[Observer[Any, Any]]:
    """Progress, scikit-learn's callbacks, and the two ways to stop.

    Parameters
    ----------
    model : estimator
        With ``verbose``, ``tol`` and ``change_tol``.
    name, passes
        For the progress lines.
    dtype : dtype
        Whose machine precision ``tol=0`` means.
    context : CallbackContext or None
    attributes : callable
        Returns the fitted attributes of the moment.
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
