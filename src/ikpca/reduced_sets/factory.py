"""Construction of reductions by name."""

from __future__ import annotations

from typing import Literal

from ikpca.errors import invalid_parameter
from ikpca.kernels import Kernel
from ikpca.reduced_sets.base import Reduction
from ikpca.reduced_sets.iterated_preimages import IteratedPreimages
from ikpca.reduced_sets.joint_preimages import JointPreimages
from ikpca.reduced_sets.select_rows import SelectedRows

REDUCTION_NAMES = ("auto", "preimages", "samples")


def make_reduction(
    reduction: str | Reduction,
    kernel: Kernel,
    *,
    per_vector: int | Literal["auto"] = "auto",
    tol: float = 1e-4,
    seed: int = 0,
) -> Reduction:
    """Return a reduction for a kernel.

    "preimages" optimizes all rows jointly; with a number of pre-images per vector it is the paper's
    method, which finds them one after the other. "auto" is "preimages" for kernels that have
    pre-images, and "samples" for others.

    Parameters
    ----------
    reduction : str or Reduction
        One of ``REDUCTION_NAMES``, or an object.
    kernel : Kernel
    per_vector : int or "auto", default="auto"
        Pre-images per vector, found one after the other; "auto" optimizes all rows jointly.
    tol : float, default=1e-4
        Relative error at which the search for pre-images stops.
    seed : int, default=0

    Returns
    -------
    Reduction

    Examples
    --------
    >>> from ikpca.kernels import Cosine
    >>> from ikpca.reduced_sets import make_reduction
    >>> type(make_reduction("samples", Cosine())).__name__
    'SelectedRows'
    """
    made = _from_name(reduction, kernel, per_vector, tol, seed)
    if not made.supports(kernel):
        raise invalid_parameter(
            "reduction",
            reduction,
            f"{kernel!r} has no gradient for pre-images",
            "choose 'samples'",
        )
    return made


def _from_name(
    reduction: str | Reduction,
    kernel: Kernel,
    per_vector: int | Literal["auto"],
    tol: float,
    seed: int,
) -> Reduction:
    if isinstance(reduction, Reduction):
        return reduction
    if reduction not in REDUCTION_NAMES:
        names = ", ".join(map(repr, REDUCTION_NAMES))
        raise invalid_parameter("reduction", reduction, "is not known", f"choose one of {names}")
    joint = JointPreimages(tol=tol, seed=seed)
    if reduction == "samples" or (reduction == "auto" and not joint.supports(kernel)):
        return SelectedRows(seed=seed)
    if per_vector == "auto":
        return joint
    return IteratedPreimages(per_vector, tol=tol, seed=seed)
