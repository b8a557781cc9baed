"""Kernels k(x, y)."""

from ikpca.kernels.base import (
    DifferentiableKernel,
    DistanceKernel,
    Floats,
    Indices,
    Kernel,
    RadialKernel,
    Rows,
    mean_row,
    squared_norms,
)
from ikpca.kernels.callable import (
    KERNEL_NAMES,
    RADIAL_NAMES,
    Pairwise,
    Vectorized,
    centered_kernel,
    make_kernel,
    vectorized,
)
from ikpca.kernels.dot_product import Cosine, Linear, Polynomial, Sigmoid
from ikpca.kernels.radial import FeatureSplit, Gaussian, Laplacian, Operand, one_norm_distances

__all__ = [
    "KERNEL_NAMES",
    "RADIAL_NAMES",
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
    "centered_kernel",
    "make_kernel",
    "mean_row",
    "one_norm_distances",
    "squared_norms",
    "vectorized",
]
