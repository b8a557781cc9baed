"""Base class of the streaming estimators, and drift detection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ikpca.errors import check_number, invalid_parameter
from ikpca.estimators.base import FitInterrupted, KernelTransformer, atomic
from ikpca.estimators.validation import (
    FLOAT_DTYPES,
    check_values,
    draw_seed,
    explain_memory_errors,
    single_thread,
)
from ikpca.kernels import Floats
from ikpca.solvers.base import plain_interrupts

_FEATURE_ATTRIBUTES = ("n_features_in_", "feature_names_in_")
#: Number of errors before the first signal, and the window of the running mean.
_WARM_UP, _MEMORY = 100, 1000
#: Largest deviation that counts, in standard deviations: a single outlier is not a drift.
_MAX_DEVIATION = 3.0
#: Standard deviations below this fraction of the mean are rounding errors.
_ROUNDING = 1e-3
#: Upper limit of the variance, which would overflow otherwise.
_MAX_VARIANCE = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class DriftSignal:
    """Page–Hinkley drift detection on standardized errors.

    g ← max(0, g + min(z, 3) − δ), where z is the deviation of the error from its running mean in
    running standard deviations. g above the threshold signals a drift and resets the statistics.
    With the default parameters an abrupt change is detected after ten samples or more, a change by
    one standard deviation after about fifty; errors that decrease while a model learns never
    signal.

    Parameters
    ----------
    seen : int
        Number of errors since the start or the last signal.
    mean, variance : float
        Running mean and variance of the errors.
    excess : float
        The sum g.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.estimators import DriftSignal
    >>> errors = np.random.default_rng(0).exponential(size=1000)
    >>> signal, level = DriftSignal().update(errors)
    >>> level < 1, signal.seen
    (True, 1000)
    """

    seen: int = 0
    mean: float = 0.0
    variance: float = 0.0
    excess: float = 0.0

    def update(
        self, errors: Iterable[float], threshold: float = 25.0, delta: float = 0.5
    ) -> tuple[DriftSignal, float]:
        """Update the test with errors in their order.

        Parameters
        ----------
        errors : iterable of float
        threshold : float, default=25.0
            Value of g that signals a drift.
        delta : float, default=0.5
            Deviation δ, in standard deviations, that does not count.

        Returns
        -------
        signal : DriftSignal
        level : float
            Largest g divided by the threshold; values ≥ 1 signal a drift.

        Examples
        --------
        >>> import numpy as np
        >>> from ikpca.estimators import DriftSignal
        >>> errors = np.random.default_rng(0).exponential(size=1000)
        >>> signal, level = DriftSignal().update(errors)
        >>> level < 1
        True
        >>> signal.update(3 * errors[:50])[1] >= 1
        True
        """
        signal, level = self, 0.0
        for error in errors:
            signal = signal._next(float(error), delta)
            level = max(level, signal.excess / threshold)
            if signal.excess >= threshold:
                signal = DriftSignal()
        return signal, level

    def _next(self, error: float, delta: float) -> DriftSignal:
        weight = max(1 / (self.seen + 1), 1 / _MEMORY)
        difference = error - self.mean
        deviation = max(float(np.sqrt(self.variance)), _ROUNDING * self.mean)
        excess = 0.0
        if self.seen >= _WARM_UP and deviation > 0:
            deviation_excess = min(difference / deviation, _MAX_DEVIATION) - delta
            excess = max(0.0, self.excess + deviation_excess)
        return replace(
            self,
            seen=self.seen + 1,
            mean=self.mean + weight * difference,
            # A product becomes infinite where a power would raise OverflowError.
            variance=min(
                (1 - weight) * (self.variance + weight * difference * difference), _MAX_VARIANCE
            ),
            excess=excess,
        )


@contextmanager
def learning() -> Iterator[None]:
    """Learn in one thread, on which the last bits depend; explain errors."""
    remedy = "pass smaller batches, or a smaller max_basis_rows"
    with single_thread(), plain_interrupts(), explain_memory_errors(remedy):
        yield


class Stream(Protocol):
    """State of a streaming estimator between batches."""

    @property
    def seen(self) -> int:
        """Number of rows learned."""

    @property
    def gamma(self) -> float:
        """Value of gamma, computed from the first batch."""


StreamT = TypeVar("StreamT", bound=Stream)


class StreamTransformer(KernelTransformer, Generic[StreamT]):
    """Base class of streaming estimators, whose components are combinations of basis rows.

    Subclasses implement ``_initial_stream``, ``_step`` and ``_set_stream``, which sets ``_stream``,
    ``_subspace``, ``_scale``, ``mean_`` and ``eigenvalues_``.
    """

    forgetting: float
    drift_threshold: float
    drift_delta: float
    mean_: Floats
    _stream: StreamT

    @atomic
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one batch of rows in their order.

        An invalid batch, for example with NaN, leaves the model unchanged.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            At least one row.
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        earlier: StreamT | None = getattr(self, "_stream", None)
        X = self._validate_batch(X, earlier)
        with learning():
            if earlier is None:
                stream = self._initial_stream(X, draw_seed(self.random_state))
            else:
                stream = self._with_settings(earlier)
            stream = self._step(stream, X)
        self._set_stream(stream)
        return self

    def _fit_stream(
        self, stream: StreamT, step: Callable[[StreamT], StreamT], n_steps: int
    ) -> StreamT:
        """Learn from all rows of a data set, a part of them in every step.

        After an interrupt, the model keeps the parts learned so far.
        """
        self.__dict__.pop("n_iter_", None)
        try:
            with learning():
                for _ in range(n_steps):
                    stream = step(stream)
        except KeyboardInterrupt:
            if not stream.seen:
                raise
            self._set_stream(stream)
            raise FitInterrupted from None
        return stream

    @abstractmethod
    def _initial_stream(self, rows: Any, seed: int) -> StreamT:
        """Return the stream before the first batch, with the parameters that depend on it."""

    @abstractmethod
    def _step(self, stream: StreamT, rows: Any) -> StreamT:
        """Return the stream after learning from rows."""

    @abstractmethod
    def _set_stream(self, stream: StreamT) -> None:
        """Store a stream and set the fitted attributes."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Validate the parameters."""

    def _with_settings(self, stream: StreamT) -> StreamT:
        """Return the stream with the current parameters; all but the kernel may change."""
        return stream

    def _check_stream_parameters(self) -> None:
        """Validate the parameters that streaming estimators share."""
        if self._is_precomputed:
            raise invalid_parameter(
                "kernel",
                self.kernel,
                "a stream needs kernel values of future rows",
                "pass rows and a kernel, or use KernelPCA for a kernel matrix",
            )
        self._check_kernel_parameters()
        self._check_preimage("ridge")
        check_number("forgetting", self.forgetting, "must lie in (0, 1]",
                     "pass 1.0 to forget nothing", low=0, high=1, open_low=True)  # fmt: skip
        check_number("drift_threshold", self.drift_threshold, "must be positive", "pass 25.0",
                     low=0, open_low=True)  # fmt: skip
        check_number("drift_delta", self.drift_delta, "must not be negative", "pass 0.5",
                     low=0)  # fmt: skip
        self._check_flags("whiten")
        self._check_runtime_parameters()

    def _validate_batch(self, X: Any, stream: StreamT | None) -> Any:
        """Return a valid batch as float32 or float64; ``stream`` is None for the first one."""
        X = validate_data(
            self, X, reset=stream is None, dtype=FLOAT_DTYPES, ensure_all_finite=False
        )
        check_values(X, 0 if stream is None else stream.seen)
        return X

    @property
    def _mean_row(self) -> Floats:
        return self.mean_

    def _copy_feature_names(self, model: BaseEstimator) -> None:
        """Copy the number and names of the features of another model."""
        for name in _FEATURE_ATTRIBUTES:
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
