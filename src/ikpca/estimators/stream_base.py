"""Base class of the streaming estimators, and drift detection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ikpca.estimators.base import InverseMixin, SaveMixin
from ikpca.estimators.checkpoint import StreamFingerprint, StreamProgress, recall_stream
from ikpca.estimators.input_checks import finite_projections
from ikpca.kernels import Floats
from ikpca.subspace import Subspace

#: Errors before the first signal; how many of them the usual error is a mean of, at most.
_WARM_UP, _MEMORY = 100, 1000
#: Standard deviations that an error may lie above the usual one without counting, and the largest
#: number that a single error counts for: one outlier is no drift.
_TOLERANCE, _LARGEST = 0.5, 3.0
#: What the excesses have to add up to.
_THRESHOLD = 25.0
#: Deviations below this share of the usual error are rounding.
_ROUNDING = 1e-3
#: Errors beyond the root of it have no variance that could be written down.
_MOST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class DriftSignal:
    """The Page–Hinkley test on errors in units of their own standard deviation.

    g ← max(0, g + min(z, 3) − ½), z the error less the usual error over the usual deviation; a
    drift is signalled at g ≥ 25, and the usual error is then learned anew. An abrupt change takes
    ten samples or more, one by a standard deviation about fifty; errors that fall while a model
    learns never signal.

    Parameters
    ----------
    seen : int
        Errors since the start or the last signal.
    mean, variance : float
        The usual error.
    excess : float
        The sum g.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.estimators import DriftSignal
    >>> errors = np.random.default_rng(0).exponential(size=1000)
    >>> signal, level = DriftSignal().after(errors)
    >>> level < 1, signal.seen
    (True, 1000)
    """

    seen: int = 0
    mean: float = 0.0
    variance: float = 0.0
    excess: float = 0.0

    def after(self, errors: Iterable[float]) -> tuple[DriftSignal, float]:
        """Take errors in their order.

        Parameters
        ----------
        errors : iterable of float

        Returns
        -------
        signal : DriftSignal
        level : float
            The largest g/25 among them: a drift, if it is 1 or more.

        Examples
        --------
        >>> import numpy as np
        >>> from ikpca.estimators import DriftSignal
        >>> errors = np.random.default_rng(0).exponential(size=1000)
        >>> signal, level = DriftSignal().after(errors)
        >>> level < 1
        True
        >>> signal.after(3 * errors[:50])[1] >= 1
        True
        """
        signal, level = self, 0.0
        for error in errors:
            signal = signal._next(float(error))
            level = max(level, signal.excess / _THRESHOLD)
            if signal.excess >= _THRESHOLD:
                signal = DriftSignal()
        return signal, level

    def _next(self, error: float) -> DriftSignal:
        weight = max(1 / (self.seen + 1), 1 / _MEMORY)
        difference = error - self.mean
        deviation = max(float(np.sqrt(self.variance)), _ROUNDING * self.mean)
        excess = 0.0
        if self.seen >= _WARM_UP and deviation > 0:
            counted = min(difference / deviation, _LARGEST) - _TOLERANCE
            excess = max(0.0, self.excess + counted)
        return replace(
            self,
            seen=self.seen + 1,
            mean=self.mean + weight * difference,
            # A product, as a power of what is too large is an error of its own.
            variance=min((1 - weight) * (self.variance + weight * difference * difference), _MOST),
            excess=excess,
        )


class StreamTransformer(
    InverseMixin, SaveMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Projections on components that a library of rows carries; how they are learned is elsewhere.

    A class has ``_view`` (the subspace), ``_scale``, ``mean_`` and ``eigenvalues_`` once it is
    fitted, and takes them from a stream.
    """

    checkpoint: Any
    resume: bool

    def transform(self, X: Any) -> Floats:
        """Project rows on the components, a strip of rows at a time.

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
        """Take over the stream that ``partial_fit`` left in the checkpoint, to go on after it.

        For streams that cannot be played again. ``n_samples_seen_`` then says how many rows are
        learned already; those after them come next.

        Returns
        -------
        self
        """
        self._check_parameters()
        progress = recall_stream(self, needed=True)
        assert progress is not None
        self._take_progress(progress)
        self._trail = progress.trail
        return self

    def _take_checkpoint(self) -> None:
        """At the first batch with ``resume``: the batches of the checkpoint will come again."""
        if hasattr(self, "_stream") or not self.resume:
            return
        progress = recall_stream(self, needed=False)
        if progress is not None:
            self._take_progress(progress)
            self._trail, self._goal = StreamFingerprint(), progress.trail

    def _knows(self, batch: Any) -> bool:
        """Whether a batch was learned before the checkpoint was written, and is passed over."""
        if not hasattr(self, "_goal"):
            return False
        trail = self._trail.after(batch)
        trail.check_leads_to(self._goal)
        self._trail = trail
        if trail == self._goal:
            del self._goal
        return True

    def _forget_batches(self) -> None:
        """Before a fit, which is no part of a stream."""
        for name in ("_trail", "_goal"):
            self.__dict__.pop(name, None)

    def _take_progress(self, progress: StreamProgress) -> None:
        for name, value in progress.names.items():
            setattr(self, name, value)
        self._take(progress.stream.dressed(self))

    def _take_unless_empty(self, stream: Any, interrupted: bool) -> None:
        """What was learned, also where an interrupt ended it; that goes on then."""
        if stream.seen:
            self._take(stream)
        if interrupted:
            raise KeyboardInterrupt

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _take(self, stream: Any) -> None:
        raise NotImplementedError

    @property
    def _subspace(self) -> Subspace:
        check_is_fitted(self)
        return self._view

    @property
    def _mean_row(self) -> Floats:
        return self.mean_

    def _validated_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)

    def _take_names(self, model: Any) -> None:
        """Width and names of the features of another model."""
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
