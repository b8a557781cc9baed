"""Iterative and incremental kernel PCA."""

from importlib.metadata import version

from ikpca.estimators import HebbianPCA, KernelPCA
from ikpca.kernels import vectorised

__all__ = ["HebbianPCA", "KernelPCA", "__version__", "vectorised"]

__version__ = version("ikpca")
