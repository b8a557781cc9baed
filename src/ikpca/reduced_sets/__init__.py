"""Feature-space expansions on fewer rows."""

from ikpca.reduced_sets.choice import REDUCTION_NAMES, choose_reduction
from ikpca.reduced_sets.compact import CompactSubspace, compact, compact_within
from ikpca.reduced_sets.dropping import AlikeMerged, LeastDropped
from ikpca.reduced_sets.iterated import IteratedPreimages
from ikpca.reduced_sets.joint import JointPreimages
from ikpca.reduced_sets.orthonormal import reorthonormalise
from ikpca.reduced_sets.reduction import ReducedSet, Reduction
from ikpca.reduced_sets.samples import ChosenSamples
from ikpca.reduced_sets.subspace import Subspace

__all__ = [
    "REDUCTION_NAMES",
    "AlikeMerged",
    "ChosenSamples",
    "CompactSubspace",
    "IteratedPreimages",
    "JointPreimages",
    "LeastDropped",
    "ReducedSet",
    "Reduction",
    "Subspace",
    "choose_reduction",
    "compact",
    "compact_within",
    "reorthonormalise",
]
