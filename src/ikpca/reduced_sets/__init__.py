"""Feature-space expansions on fewer rows."""

from ikpca.reduced_sets.iterated import IteratedPreimages
from ikpca.reduced_sets.reduction import ReducedSet, Reduction
from ikpca.reduced_sets.samples import ChosenSamples
from ikpca.reduced_sets.subspace import Subspace

__all__ = ["ChosenSamples", "IteratedPreimages", "ReducedSet", "Reduction", "Subspace"]
