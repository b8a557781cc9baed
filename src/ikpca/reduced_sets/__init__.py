"""Reduced sets: components and mean in feature space on fewer rows."""

from ikpca.errors import Choice
from ikpca.kernels import DifferentiableKernel, Kernel
from ikpca.reduced_sets.base import ReducedSet, Reduction, ReductionProblem
from ikpca.reduced_sets.iterated_preimages import GrowingBasis, IteratedPreimages
from ikpca.reduced_sets.select_rows import SelectedRows

__all__ = [
    "GrowingBasis",
    "IteratedPreimages",
    "ReducedSet",
    "Reduction",
    "ReductionProblem",
    "SelectedRows",
    "make_reduction",
]


def make_reduction(
    reduction: str | Reduction, kernel: Kernel, *, tol: float = 1e-4, seed: int = 0
) -> Reduction:
    """Return a reduction for a kernel.

    "samples" selects rows, and "preimages" moves them, too. "auto" is "preimages" for kernels that
    have pre-images, and "samples" for others.
    """
    if isinstance(reduction, Reduction):
        return reduction
    Choice(("auto", "preimages", "samples")).check("reduction", reduction)
    moving = reduction != "samples" and isinstance(kernel, DifferentiableKernel)
    moving |= reduction == "preimages"
    return SelectedRows("auto" if moving else 0, tol, seed=seed)
