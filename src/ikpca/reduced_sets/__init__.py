"""Reduced sets: components and mean in feature space on fewer rows."""

from ikpca.errors import check_choice, invalid_parameter
from ikpca.kernels import DifferentiableKernel, Kernel
from ikpca.reduced_sets.base import ReducedSet, Reduction, ReductionProblem
from ikpca.reduced_sets.iterated_preimages import GrowingBasis, IteratedPreimages
from ikpca.reduced_sets.joint_preimages import JointPreimages
from ikpca.reduced_sets.select_rows import SelectedRows

__all__ = [
    "GrowingBasis",
    "IteratedPreimages",
    "JointPreimages",
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

    "preimages" optimizes all rows jointly. "auto" is "preimages" for kernels that have pre-images,
    and "samples" for others.
    """
    if not isinstance(reduction, Reduction):
        check_choice("reduction", reduction, ("auto", "preimages", "samples"))
        if reduction == "samples" or (
            reduction == "auto" and not isinstance(kernel, DifferentiableKernel)
        ):
            return SelectedRows(seed=seed)
    method = reduction if isinstance(reduction, Reduction) else JointPreimages(tol=tol, seed=seed)
    if not method.supports(kernel):
        raise invalid_parameter(
            "reduction",
            reduction,
            f"{kernel!r} has no gradient for pre-images",
            "choose 'samples'",
        )
    return method
