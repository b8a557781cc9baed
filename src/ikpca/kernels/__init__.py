"""Kernels k(x, y)."""

from ikpca.kernels.base import (
    DifferentiableKernel,
    DistanceKernel,
    Floats,
    Indices,
    Kernel,
    RadialKernel,
    Rows,
    squared_norms,
)
from ikpca.kernels.callable import (
    Pairwise,
    Vectorized,
    vectorized,
)
from ikpca.kernels.dot_product import Cosine, Linear, Polynomial, Sigmoid
from ikpca.kernels.radial import FeatureSplit, Gaussian, Laplacian, Operand, one_norm_distances

__all__ = [
    "Cosine",
    "DifferentiableKernel",
    "DistanceKernel",
    "FeatureSplit",
    "Floats",
    "Gaussian",
    "Indices",
    "Kernel",
    "Laplacian",
    "Linear",
    "Operand",
    "Pairwise",
    "Polynomial",
    "RadialKernel",
    "Rows",
    "Sigmoid",
    "Vectorized",
    "one_norm_distances",
    "squared_norms",
    "vectorized",
]
