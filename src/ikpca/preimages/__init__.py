"""Pre-images: from feature space back to input space."""

from ikpca.preimages.base import PreimageMethod, Preimages, masked_error
from ikpca.preimages.factory import PREIMAGE_NAMES, make_preimage_method
from ikpca.preimages.fixed_point import FixedPoint
from ikpca.preimages.gradient import Gradient
from ikpca.preimages.mds import MDS
from ikpca.preimages.regression import NeighborMean, predict_rows, ridge_coefficients

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
