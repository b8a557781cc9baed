"""Iterative and incremental kernel PCA."""

from importlib.metadata import version

from ikpca.estimators import (
    HebbianPCA,
    IncrementalKernelPCA,
    KernelPCA,
    OnlineKernelPCA,
    compress,
)
from ikpca.gram import open_rows
from ikpca.kernels import vectorised

__all__ = [
    "HebbianPCA",
    "IncrementalKernelPCA",
    "KernelPCA",
    "OnlineKernelPCA",
    "__version__",
    "compress",
    "open_rows",
    "vectorised",
]

__version__ = version("ikpca")
