"""What the papers use kernel PCA for."""

from ikpca.applications.cluster import KernelSpectralClustering
from ikpca.applications.patches import PatchGrid

__all__ = ["KernelSpectralClustering", "PatchGrid"]
