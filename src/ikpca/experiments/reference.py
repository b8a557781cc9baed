"""What errors are measured against: all of K', and its exact leading eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass

from ikpca.experiments.spec import DemoSpec
from ikpca.gram import CentredGram, ComputedGram, PrecomputedGram, centred, whole
from ikpca.kernels import Floats
from ikpca.measures import excess_error

__all__ = ["Reference"]


@dataclass(frozen=True)
class Reference:
    """Lives in the parent, so that no contestant's memory holds it."""

    gram: CentredGram
    squared_norm: float
    eigenvalues: Floats

    @classmethod
    def of(cls, spec: DemoSpec, X: Floats, eigenvalues: Floats) -> Reference:
        """Evaluate K once."""
        gram, _ = centred(PrecomputedGram(whole(ComputedGram(spec.kernel, X))))
        return cls(gram, gram.squared_norm(), eigenvalues)

    def excess_error(self, projections: Floats) -> float:
        """E/E_min − 1."""
        return excess_error(self.gram, projections, self.eigenvalues, self.squared_norm)
