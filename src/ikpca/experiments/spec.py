"""The demonstration as data."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from ikpca.errors import refuse
from ikpca.kernels import Floats, Gaussian

__all__ = ["DemoSpec"]

#: Rows of scikit-learn's digits.
_ALL_ROWS = 1797
#: Passes after which the table quotes the error; the last pass is always quoted.
_CHECKPOINTS = (1, 5, 10, 20, 50)


@dataclass(frozen=True)
class DemoSpec:
    """Kernel PCA of handwritten digits; refuses bad values before any work.

    Parameters
    ----------
    components, passes : int
    sigma : float
        Width of the Gaussian kernel.
    seed : int
        Of the start and the order of patterns.
    threads : int
        Of BLAS, in every process. One, so that seconds compare algorithms and not schedulers.
    rows : int
        Only so many of the digits.
    """

    components: int = 16
    passes: int = 50
    sigma: float = 2.0
    seed: int = 0
    threads: int = 1
    rows: int = _ALL_ROWS

    def __post_init__(self) -> None:
        for name, least in (("components", 1), ("passes", 1), ("seed", 0), ("threads", 1)):
            if getattr(self, name) < least:
                rule = f"must be at least {least}"
                raise refuse(name, getattr(self, name), rule, f"pass {least} or more")
        if not 2 <= self.rows <= _ALL_ROWS:
            rule = f"the digits have {_ALL_ROWS} rows, and one row has no variance"
            raise refuse("rows", self.rows, rule, f"pass 2 to {_ALL_ROWS}")
        if self.components >= self.rows:
            rule = f"{self.rows} centred rows have fewer directions"
            raise refuse("components", self.components, rule, f"pass at most {self.rows - 1}")
        # Squared, because that is what the kernel divides by, and what may underflow.
        if not (self.sigma > 0 and isfinite(self.sigma) and 0 < self.sigma**2 < np.inf):
            raise refuse("sigma", self.sigma, "must be positive and finite", "pass 2.0")

    @property
    def kernel(self) -> Gaussian:
        """γ = 1/(2σ²)."""
        return Gaussian(1 / (2 * self.sigma**2))

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Passes that the table quotes.

        Examples
        --------
        >>> DemoSpec(passes=12).checkpoints
        (1, 5, 10, 12)
        """
        return (*(number for number in _CHECKPOINTS if number < self.passes), self.passes)

    def load(self) -> Floats:
        """Pixels from 0 to 1; every row is a digit."""
        from sklearn.datasets import load_digits

        # The quotient is an array of its own, so the rows that are not wanted can go.
        return load_digits().data[: self.rows] / 16
