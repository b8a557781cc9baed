"""Whether a stream still is what it was: Page's cumulative sum of reconstruction errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

__all__ = ["DriftSignal"]

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
