"""scikit-learn classes: validate, choose, delegate."""

from ikpca.estimators.kernel_pca import KernelPCA

__all__ = ["KernelPCA"]
