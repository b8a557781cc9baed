"""The port: where A and AK' live. Defined here, implemented by engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["CoefficientStore", "Floats", "Indices"]

Floats: TypeAlias = NDArray[np.floating[Any]]
Indices: TypeAlias = NDArray[np.intp]


class CoefficientStore(Protocol):
    """Rows R (A alone, or A over its companion B) and RK'; no engine knows which gain is in use.

    Three verbs do the work, ``project``, ``transform`` and ``gram``; the others look and undo.
    Whatever leaves the store is small and in double precision.
    """

    @property
    def n_samples(self) -> int:
        """The number l of columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """What the columns are stored in."""

    @property
    def entries(self) -> int:
        """Entries of K evaluated so far."""

    @property
    def mean_diagonal(self) -> float:
        """κ = mean k'(x, x)."""

    @property
    def squared_norm(self) -> float:
        """‖K'‖²_F as far as it is known; NaN where it is not."""

    @property
    def recovery(self) -> str:
        """Empty, or what gave way in the computation of K and what was done about it."""

    def project(self, patterns: Indices, upcoming: Sequence[Indices] = ()) -> tuple[Floats, Floats]:
        """(RK')[:, P] and K'[P, P].

        Kernel rows do not depend on R, so those of the blocks that come next may be made ahead.
        """

    def transform(self, T: Floats, patterns: Indices, C: Floats) -> None:
        """R ← TR, then R[:, P] += C (repeated patterns add up); RK' follows."""

    def gram(self, power: int) -> Floats:
        """R K'^power Rᵀ for power 0, 1, 2."""

    def residuals(self, eigenvalues: Floats) -> Floats:
        """‖K'v_i − λ_i v_i‖/λ_1 for the leading rows."""

    def mark(self) -> None:
        """Remember R and RK' as they are."""

    def rewind(self) -> None:
        """Go back to the mark."""

    def change(self, n_rows: int) -> float:
        """Squared feature-space distance of the leading rows from the mark."""

    def read(self) -> tuple[Floats, Floats]:
        """R and RK' as arrays."""
