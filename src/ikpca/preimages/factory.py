"""Pre-image methods by name, and the default method of a kernel."""

from __future__ import annotations

from ikpca.errors import invalid_parameter
from ikpca.kernels import DifferentiableKernel, Kernel, RadialKernel
from ikpca.preimages.base import PreimageMethod
from ikpca.preimages.fixed_point import FixedPoint
from ikpca.preimages.gradient import Gradient
from ikpca.preimages.mds import MDS
from ikpca.preimages.regression import NeighborMean

_METHODS: dict[str, PreimageMethod] = {
    "fixed-point": FixedPoint(),
    "gradient": Gradient(),
    "mds": MDS(),
    "neighbours": NeighborMean(),
}
#: "ridge" is learned in the fit; the others need nothing but the fitted model.
PREIMAGE_NAMES = ("auto", *_METHODS, "ridge")


def make_preimage_method(preimage: str | PreimageMethod, kernel: Kernel) -> PreimageMethod:
    """The method for a kernel, or an error that names those it has.

    "auto" is the fixed point for kernels of a distance, the gradient for others that have one, and
    the mean of the nearest rows for those without.

    Parameters
    ----------
    preimage : str or PreimageMethod
        One of ``METHOD_NAMES`` but "ridge", which is learned in the fit; or an object.
    kernel : Kernel

    Returns
    -------
    PreimageMethod

    Examples
    --------
    >>> from ikpca.kernels import Gaussian
    >>> from ikpca.preimages import make_preimage_method
    >>> type(choose_method("auto", Gaussian(1.0))).__name__
    'FixedPoint'
    """
    if preimage == "auto":
        if isinstance(kernel, RadialKernel):
            return _METHODS["fixed-point"]
        return _METHODS["gradient" if isinstance(kernel, DifferentiableKernel) else "neighbours"]
    method = _METHODS[preimage] if isinstance(preimage, str) else preimage
    if not method.serves(kernel):
        names = [name for name, known in _METHODS.items() if known.serves(kernel)]
        raise invalid_parameter(
            "preimage",
            preimage,
            f"does not serve {kernel!r}",
            f"choose one of {', '.join(map(repr, [*names, 'ridge']))}",
        )
    return method
