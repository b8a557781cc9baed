"""Base class of the streaming estimators, and drift detection."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ikpca.estimators.base import InverseMixin, SaveMixin
from ikpca.estimators.checkpoint import StreamFingerprint, StreamProgress, load_stream_progress
from ikpca.estimators.input_checks import finite_projections
from ikpca.estimators.validation import FLOAT_DTYPES, check_number
from ikpca.kernels import Floats
from ikpca.subspace import Subspace

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


def check_drift_parameters(model: StreamTransformer) -> None:
    """Validate the parameters of drift detection."""
    check_number("drift_threshold", model.drift_threshold, "must be positive", "pass 25.0",
                 low=0, open_low=True)  # fmt: skip
    check_number("drift_delta", model.drift_delta, "must not be negative", "pass 0.5",
                 low=0)  # fmt: skip


class StreamTransformer(
    InverseMixin,
    SaveMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
    metaclass=ABCMeta,
):
    """Base class of streaming estimators, whose components are combinations of basis rows.

    Subclasses implement ``_set_stream``, which sets ``_view`` (the subspace), ``_scale``, ``mean_``
    and ``eigenvalues_``.
    """

    checkpoint: Any
    resume: bool
    drift_threshold: float
    drift_delta: float

    def transform(self, X: Any) -> Floats:
        """Project rows on the components, one strip of rows at a time.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        X = self._validated_rows(X)
        return finite_projections(lambda: self._subspace.project(X) * self._scale)

    def load_checkpoint(self) -> Self:
        """Load the stream that ``partial_fit`` stored in the checkpoint, to continue after it.

        For streams that cannot be replayed. ``n_samples_seen_`` is the number of rows learned;
        continue with the rows after them.

        Returns
        -------
        self
        """
        self._check_parameters()
        progress = load_stream_progress(self, needed=True)
        assert progress is not None
        self._restore_progress(progress)
        self._trail = progress.trail
        return self

    def _restore_checkpoint(self) -> None:
        """Load the checkpoint before the first batch with ``resume``; its batches are replayed."""
        if hasattr(self, "_stream") or not self.resume:
            return
        progress = load_stream_progress(self, needed=False)
        if progress is not None:
            self._restore_progress(progress)
            self._trail, self._goal = StreamFingerprint(), progress.trail

    def _skip_if_learned(self, batch: Any) -> bool:
        """Return True, and advance, if the batch was learned before the checkpoint was written."""
        if not hasattr(self, "_goal"):
            return False
        trail = self._trail.add_batch(batch)
        trail.check_prefix_of(self._goal)
        self._trail = trail
        if trail == self._goal:
            del self._goal
        return True

    def _reset_fingerprint(self) -> None:
        """Remove the fingerprint of ``partial_fit`` before a fit."""
        for name in ("_trail", "_goal"):
            self.__dict__.pop(name, None)

    def _restore_progress(self, progress: StreamProgress) -> None:
        for name, value in progress.names.items():
            setattr(self, name, value)
        self._set_stream(progress.stream.wrap(self))

    def _set_stream_or_interrupt(self, stream: Any, interrupted: bool) -> None:
        """Set what was learned; re-raise an interrupt."""
        if stream.seen:
            self._set_stream(stream)
        if interrupted:
            raise KeyboardInterrupt

    @abstractmethod
    def _check_parameters(self) -> None:
        """Validate the parameters."""

    @abstractmethod
    def _set_stream(self, stream: Any) -> None:
        """Store a stream and set the fitted attributes."""

    @property
    def _subspace(self) -> Subspace:
        check_is_fitted(self)
        return self._view

    @property
    def _mean_row(self) -> Floats:
        return self.mean_

    def _validated_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, dtype=FLOAT_DTYPES, reset=False)

    def _copy_feature_names(self, model: Any) -> None:
        """Copy the number and names of the features of another model."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)
