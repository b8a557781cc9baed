"""Kernels k(x, y). Each fills the tile it is given; none knows what the tile is for."""

from ikpca.kernels.callables import Pairwise, Vectorised, vectorised
from ikpca.kernels.choice import KERNEL_NAMES, RADIAL_NAMES, choose_kernel
from ikpca.kernels.inner_products import Cosine, Linear, Polynomial, Sigmoid
from ikpca.kernels.kernel import Floats, FoldingKernel, Kernel, Rows
from ikpca.kernels.radial import Gaussian, Laplacian, one_norm_distances

__all__ = [
    "KERNEL_NAMES",
    "RADIAL_NAMES",
    "Cosine",
    "Floats",
    "FoldingKernel",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Pairwise",
    "Polynomial",
    "Rows",
    "Sigmoid",
    "Vectorised",
    "choose_kernel",
    "one_norm_distances",
    "vectorised",
]
