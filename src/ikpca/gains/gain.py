"""The port: how far to step."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "Gain"]

Floats: TypeAlias = NDArray[np.floating[Any]]


@runtime_checkable
class Gain(Protocol):
    """A gain per step and component. Gains hold no state; what adapts lives in the sweep.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.gains import Gain, inverse_time
    >>> isinstance(inverse_time(), Gain)
    True
    >>> inverse_time().gains(np.array([0.0, 50.0]), 50, np.ones(3)).shape
    (2, 1)
    """

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return η, of a shape that broadcasts to (steps, components).

        Parameters
        ----------
        times : ndarray of shape (steps,)
            t as the clock shows it: patterns seen before each step.
        n_samples : int
            The number l of rows.
        eigenvalues : ndarray of shape (components,)
            λ as estimated at the start of the pass.
        """
