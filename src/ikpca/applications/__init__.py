"""What the papers use kernel PCA for."""

from ikpca.applications.cluster import KernelSpectralClustering
from ikpca.applications.hyperresolve import Hyperresolution
from ikpca.applications.patches import PatchGrid
from ikpca.applications.resolution import box_mean, enlarge, make_consistent

__all__ = [
    "Hyperresolution",
    "KernelSpectralClustering",
    "PatchGrid",
    "box_mean",
    "enlarge",
    "make_consistent",
]
