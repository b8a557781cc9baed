"""What the papers use kernel PCA for."""

from ikpca.applications.cluster import KernelSpectralClustering
from ikpca.applications.motion import MotionSettings, denoise_motion, motion_settings
from ikpca.applications.patches import PatchGrid

__all__ = [
    "KernelSpectralClustering",
    "MotionSettings",
    "PatchGrid",
    "denoise_motion",
    "motion_settings",
]
