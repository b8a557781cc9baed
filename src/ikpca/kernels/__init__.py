"""Kernels k(x, y)."""

from ikpca.kernels.base import (
    DifferentiableKernel,
    DistanceKernel,
    Floats,
    Indices,
    Kernel,
    RadialKernel,
    Rows,
)
from ikpca.kernels.callable import Pairwise, Vectorized, vectorized
from ikpca.kernels.dot_product import Cosine, Linear, Polynomial, Sigmoid
from ikpca.kernels.factory import KERNEL_NAMES, RADIAL_NAMES, centered_kernel, make_kernel
from ikpca.kernels.operands import (
    FeatureSplit,
    MatmulKernel,
    Operand,
    mean_row,
    squared_norms,
)
from ikpca.kernels.radial import Gaussian, Laplacian, one_norm_distances

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
    "MatmulKernel",
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
