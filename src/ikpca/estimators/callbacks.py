"""scikit-learn's callback interface (1.9 and later); earlier versions simply have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ikpca.loop import Outcome, PassRecord

__all__ = ["CallbackObserver", "CallbackSupport", "fit_context", "with_callbacks"]

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks
except ImportError:

    class CallbackSupport:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Method) -> Method:
        """Leave the method as it is."""
        return method


def fit_context(estimator: Any, max_passes: int) -> Any | None:
    """Open the root task of a fit, or None where there is no callback interface."""
    if not hasattr(estimator, "_init_callback_context"):
        return None
    context = estimator._init_callback_context(max_subtasks=max_passes)
    context.call_on_fit_task_begin(estimator=estimator)
    return context


class CallbackObserver:
    """Tells scikit-learn's callbacks of every finished pass; a callback may stop the fit.

    Parameters
    ----------
    estimator : estimator
    context : CallbackContext
        The root task.
    attributes : callable
        Returns the fitted attributes as of this pass; called only if a callback asks for them.
    """

    def __init__(
        self, estimator: Any, context: Any, attributes: Callable[[], dict[str, Any]]
    ) -> None:
        self._estimator = estimator
        self._context = context
        self._attributes = attributes

    def see(self, state: object, report: PassRecord) -> Outcome | None:
        """Report one pass as one task."""
        task = self._context.subcontext(task_name="pass")
        task.call_on_fit_task_begin(estimator=self._estimator)
        stop = task.call_on_fit_task_end(
            estimator=self._estimator, reconstruction_attributes=self._attributes
        )
        return Outcome.STOPPED if stop else None
