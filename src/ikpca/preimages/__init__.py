"""Pre-images: from feature space back to input space."""

from ikpca.errors import invalid_parameter
from ikpca.kernels import DifferentiableKernel, Kernel, RadialKernel
from ikpca.preimages.base import PreimageMethod, Preimages, masked_error
from ikpca.preimages.descent import FixedPoint, Gradient
from ikpca.preimages.direct import MDS, NeighborMean, predict_rows, ridge_coefficients

__all__ = [
    "MDS",
    "PREIMAGE_NAMES",
    "FixedPoint",
    "Gradient",
    "NeighborMean",
    "PreimageMethod",
    "Preimages",
    "make_preimage_method",
    "masked_error",
    "predict_rows",
    "ridge_coefficients",
]

_METHODS: dict[str, PreimageMethod] = {
    "fixed-point": FixedPoint(),
    "gradient": Gradient(),
    "mds": MDS(),
    "neighbors": NeighborMean(),
}
#: "ridge" is fitted with the model; the others need only the fitted model.
PREIMAGE_NAMES = ("auto", *_METHODS, "ridge")


def make_preimage_method(preimage: str | PreimageMethod, kernel: Kernel) -> PreimageMethod:
    """Return the method for a kernel; raise an error if the method does not support it.

    "auto" is the fixed point for radial kernels, the gradient method for other differentiable
    kernels, and the mean of the nearest rows otherwise.
    """
    if preimage == "auto":
        if isinstance(kernel, RadialKernel):
            return _METHODS["fixed-point"]
        return _METHODS["gradient" if isinstance(kernel, DifferentiableKernel) else "neighbors"]
    method = _METHODS[preimage] if isinstance(preimage, str) else preimage
    if not method.supports(kernel):
        names = [name for name, other in _METHODS.items() if other.supports(kernel)]
        raise invalid_parameter(
            "preimage",
            preimage,
            f"does not support {kernel!r}",
            f"choose one of {', '.join(map(repr, [*names, 'ridge']))}",
        )
    return method
