"""Kernels k(x, y). Each fills the tile it is given; none knows what the tile is for."""

from ikpca.kernels.callables import Pairwise, Vectorised, vectorised
from ikpca.kernels.choice import KERNEL_NAMES, RADIAL_NAMES, choose_kernel
from ikpca.kernels.cosine import Cosine
from ikpca.kernels.folding import FoldingKernel, Frame, Operand
from ikpca.kernels.inner_products import Linear, Polynomial, Sigmoid, squared_norms
from ikpca.kernels.kernel import (
    DifferentiableKernel,
    Floats,
    Kernel,
    MeasuringKernel,
    RadialKernel,
    Rows,
)
from ikpca.kernels.radial import Gaussian, Laplacian, one_norm_distances

__all__ = [
    "KERNEL_NAMES",
    "RADIAL_NAMES",
    "Cosine",
    "DifferentiableKernel",
    "Floats",
    "FoldingKernel",
    "Frame",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "MeasuringKernel",
    "Operand",
    "Pairwise",
    "Polynomial",
    "RadialKernel",
    "Rows",
    "Sigmoid",
    "Vectorised",
    "choose_kernel",
    "one_norm_distances",
    "squared_norms",
    "vectorised",
]
