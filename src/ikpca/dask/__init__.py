"""The Dask twins of the estimators: the same fit, on a cluster."""

from ikpca.dask.incremental_kernel_pca import IncrementalKernelPCA
from ikpca.dask.kernel_pca import KernelPCA

__all__ = ["IncrementalKernelPCA", "KernelPCA"]
