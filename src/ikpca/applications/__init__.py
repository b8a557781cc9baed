"""What the papers use kernel PCA for."""

from ikpca.applications.cluster import KernelSpectralClustering
from ikpca.applications.denoise import denoise_image
from ikpca.applications.noise import estimate_noise
from ikpca.applications.patches import PatchGrid

__all__ = ["KernelSpectralClustering", "PatchGrid", "denoise_image", "estimate_noise"]
