"""Base class of the streaming estimators, and drift detection."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from ikpca.errors import FLAG, Number, ParameterRules, check_parameters, invalid_parameter
from ikpca.estimators.base import FitInterrupted, KernelTransformer
from ikpca.estimators.validation import explain_memory_errors, single_thread
from ikpca.kernels import Floats
from ikpca.solvers.base import plain_interrupts

_RULES: ParameterRules = {
    "n_components": Number("must be a positive integer", "pass an integer such as 10", low=1,
                           integer=True),
    "forgetting": Number("must lie in (0, 1]", "pass 1.0 to forget nothing", low=0, high=1,
                         open_low=True),
    "drift_threshold": Number("must be positive", "pass 25.0", low=0, open_low=True),
    "drift_delta": Number("must not be negative", "pass 0.5", low=0),
    "whiten": FLAG,
}  # fmt: skip
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
        seen, mean, variance, excess = self.seen, self.mean, self.variance, self.excess
        level = 0.0
        for error in map(float, errors):
            weight = max(1 / (seen + 1), 1 / _MEMORY)
            difference = error - mean
            deviation = max(math.sqrt(variance), _ROUNDING * mean)
            if seen >= _WARM_UP and deviation > 0:
                excess = max(0.0, excess + min(difference / deviation, _MAX_DEVIATION) - delta)
                level = max(level, excess / threshold)
            seen += 1
            mean += weight * difference
            # A product becomes infinite where a power would raise OverflowError.
            variance = min((1 - weight) * (variance + weight * difference * difference),
                           _MAX_VARIANCE)  # fmt: skip
            if excess >= threshold:
                seen, mean, variance, excess = 0, 0.0, 0.0, 0.0
        return DriftSignal(seen, mean, variance, excess), level


@contextmanager
def learning() -> Iterator[None]:
    """Learn in one thread, on which the last bits depend; explain errors."""
    remedy = "pass smaller batches, or a smaller max_basis_rows"
    with single_thread(), plain_interrupts(), explain_memory_errors(remedy):
        yield


class StreamTransformer(KernelTransformer):
    """Base class of streaming estimators: validation of batches, and drift detection."""

    forgetting: float
    drift_threshold: float
    drift_delta: float
    mean_: Floats

    def _fit_stream(self, n_steps: int, step: Callable[[int], None]) -> None:
        """Learn from all rows of a data set, a part of them in every step.

        After an interrupt, the model keeps the parts learned so far.
        """
        number = 0
        try:
            with learning():
                for number in range(n_steps):
                    step(number)
        except KeyboardInterrupt:
            if not number:
                raise
            raise FitInterrupted from None

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
        check_parameters(self, _RULES)
        self._check_runtime_parameters()

    def _detect_drift(self, signal: DriftSignal, novelty: Floats) -> DriftSignal:
        """Set ``novelty_``, ``drift_`` and ``drift_detected_`` of a batch; return the signal."""
        # The novelty of the first rows is NaN.
        known = novelty[~np.isnan(novelty)].tolist()
        signal, level = signal.update(known, float(self.drift_threshold), float(self.drift_delta))
        self.novelty_, self.drift_, self.drift_detected_ = novelty, level, level >= 1
        return signal

    @property
    def _mean_row(self) -> Floats:
        return self.mean_

    def _copy_feature_names(self, model: BaseEstimator) -> None:
        """Copy the number and names of the features of another model."""
        for name in _FEATURE_ATTRIBUTES:
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
