"""Reduced sets: components and mean in feature space on fewer rows."""

from ikpca.reduced_sets.base import (
    ReducedSet,
    Reduction,
    ReductionProblem,
    least_squares_on,
    make_reduced_set,
)
from ikpca.reduced_sets.compact_subspace import (
    REDUCTION_NAMES,
    ReducedSubspace,
    make_reduction,
    reduce_subspace,
    reduce_to_tolerance,
    reorthonormalize,
)
from ikpca.reduced_sets.iterated_preimages import GrowingBasis, IteratedPreimages
from ikpca.reduced_sets.joint_preimages import JointPreimages
from ikpca.reduced_sets.select_rows import SelectedRows

__all__ = [
    "REDUCTION_NAMES",
    "GrowingBasis",
    "IteratedPreimages",
    "JointPreimages",
    "ReducedSet",
    "ReducedSubspace",
    "Reduction",
    "ReductionProblem",
    "SelectedRows",
    "least_squares_on",
    "make_reduced_set",
    "make_reduction",
    "reduce_subspace",
    "reduce_to_tolerance",
    "reorthonormalize",
]
