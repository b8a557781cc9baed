"""Back from feature space to input space: one file per method, all points at once."""

from ikpca.preimages.choice import METHOD_NAMES, choose_method
from ikpca.preimages.expansion import Expansion
from ikpca.preimages.fixed_point import FixedPoint
from ikpca.preimages.gradient import Gradient
from ikpca.preimages.neighbours import NeighbourMean
from ikpca.preimages.preimage import PreimageMethod, Preimages
from ikpca.preimages.ridge import predict_rows, ridge_coefficients

__all__ = [
    "METHOD_NAMES",
    "Expansion",
    "FixedPoint",
    "Gradient",
    "NeighbourMean",
    "PreimageMethod",
    "Preimages",
    "choose_method",
    "predict_rows",
    "ridge_coefficients",
]
