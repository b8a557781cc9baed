"""Reduced sets: components and mean in feature space on fewer rows."""

from ikpca.errors import Choice, invalid_parameter
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
        method = reduction
    else:
        Choice(("auto", "preimages", "samples")).check("reduction", reduction)
        moving = reduction != "samples" and isinstance(kernel, DifferentiableKernel)
        moving |= reduction == "preimages"
        method = SelectedRows("auto" if moving else 0, tol, seed=seed)
    if not method.supports(kernel):
        raise invalid_parameter(
            "reduction",
            reduction,
            f"{kernel!r} has no gradient for pre-images",
            "choose 'samples'",
        )
    return method
