"""How far to step. Gains multiply: ``0.05 * inverse_time() * reciprocal_eigenvalues()``."""

from ikpca.gains.gain import Gain
from ikpca.gains.meta_descent import MetaDescent, meta_descent
from ikpca.gains.schedules import (
    Constant,
    InverseTime,
    Product,
    ReciprocalEigenvalues,
    constant,
    inverse_time,
    reciprocal_eigenvalues,
)

__all__ = [
    "Constant",
    "Gain",
    "InverseTime",
    "MetaDescent",
    "Product",
    "ReciprocalEigenvalues",
    "constant",
    "inverse_time",
    "meta_descent",
    "reciprocal_eigenvalues",
]
