"""The time t that gains see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Clock"]


@dataclass(frozen=True)
class Clock:
    """Ticks at every pattern, or once per pass as in Günter 2006 ("every l iterations")."""

    n_samples: int
    tick: Literal["pattern", "pass"] = "pattern"

    def times(self, seen: int, n_steps: int) -> NDArray[np.floating[Any]]:
        """T before each of the next ``n_steps`` patterns, after ``seen`` of them.

        Examples
        --------
        >>> Clock(4, "pattern").times(5, 3), Clock(4, "pass").times(5, 3)
        (array([5., 6., 7.]), array([4., 4., 4.]))
        """
        if self.tick == "pass":
            return np.full(n_steps, float(seen // self.n_samples * self.n_samples))
        return np.arange(seen, seen + n_steps, dtype=np.float64)
