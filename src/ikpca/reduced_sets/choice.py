"""From names to reductions."""

from __future__ import annotations

from typing import Literal

from ikpca.errors import refuse
from ikpca.kernels import Kernel
from ikpca.reduced_sets.iterated import IteratedPreimages
from ikpca.reduced_sets.joint import JointPreimages
from ikpca.reduced_sets.reduction import Reduction
from ikpca.reduced_sets.samples import ChosenSamples

__all__ = ["REDUCTION_NAMES", "choose_reduction"]

REDUCTION_NAMES = ("auto", "preimages", "samples")


def choose_reduction(
    compression: str | Reduction,
    kernel: Kernel,
    *,
    per_vector: int | Literal["auto"] = "auto",
    tol: float = 1e-4,
    seed: int = 0,
) -> Reduction:
    """The reduction for a kernel, or an error that names one that serves it.

    "preimages" moves rows jointly; with a number of pre-images per vector it is the paper's own
    way, one after the other. "auto" is pre-images for kernels that have them, else "samples".

    Parameters
    ----------
    compression : str or Reduction
        One of ``REDUCTION_NAMES``, or an object.
    kernel : Kernel
    per_vector : int or "auto", default="auto"
        Pre-images for each vector, one after the other; "auto" moves all of them jointly.
    tol : float, default=1e-4
        Where the search for pre-images stops.
    seed : int, default=0

    Returns
    -------
    Reduction

    Examples
    --------
    >>> from ikpca.kernels import Cosine
    >>> from ikpca.reduced_sets import choose_reduction
    >>> type(choose_reduction("samples", Cosine())).__name__
    'ChosenSamples'
    """
    found = _named(compression, kernel, per_vector, tol, seed)
    if not found.serves(kernel):
        raise refuse("compression", compression, f"{kernel!r} has no gradient for pre-images",
                     "choose 'samples'")  # fmt: skip
    return found


def _named(
    compression: str | Reduction,
    kernel: Kernel,
    per_vector: int | Literal["auto"],
    tol: float,
    seed: int,
) -> Reduction:
    if isinstance(compression, Reduction):
        return compression
    if compression not in REDUCTION_NAMES:
        names = ", ".join(map(repr, REDUCTION_NAMES))
        raise refuse("compression", compression, "is not known", f"choose one of {names}")
    joint = JointPreimages(tol=tol, seed=seed)
    if compression == "samples" or (compression == "auto" and not joint.serves(kernel)):
        return ChosenSamples(seed=seed)
    if per_vector == "auto":
        return joint
    return IteratedPreimages(per_vector, tol=tol, seed=seed)
