"""Iterative and incremental kernel PCA."""

from importlib.metadata import version

from ikpca.estimators import HebbianPCA, KernelPCA
from ikpca.gram import open_rows
from ikpca.kernels import vectorised
from ikpca.loading import load

__all__ = ["HebbianPCA", "KernelPCA", "__version__", "load", "open_rows", "vectorised"]

__version__ = version("ikpca")
