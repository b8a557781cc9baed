"""scikit-learn classes: validate, choose, delegate."""

from ikpca.estimators.compressed import compress
from ikpca.estimators.hebbian_pca import HebbianPCA
from ikpca.estimators.incremental_kernel_pca import IncrementalKernelPCA
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.estimators.online_kernel_pca import OnlineKernelPCA

__all__ = ["HebbianPCA", "IncrementalKernelPCA", "KernelPCA", "OnlineKernelPCA", "compress"]
