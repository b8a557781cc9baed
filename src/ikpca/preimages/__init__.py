"""Back from feature space to input space."""

from ikpca.preimages.ridge import predict_rows, ridge_coefficients

__all__ = ["predict_rows", "ridge_coefficients"]
