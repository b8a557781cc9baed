"""What the papers use kernel PCA for."""

from ikpca.applications.cluster import KernelSpectralClustering
from ikpca.applications.denoise import denoise_image
from ikpca.applications.hyperresolve import Hyperresolution
from ikpca.applications.motion import MotionSettings, denoise_motion, motion_settings
from ikpca.applications.noise import estimate_noise
from ikpca.applications.patches import PatchGrid
from ikpca.applications.resolution import box_mean, enlarge, make_consistent

__all__ = [
    "Hyperresolution",
    "KernelSpectralClustering",
    "MotionSettings",
    "PatchGrid",
    "box_mean",
    "denoise_image",
    "denoise_motion",
    "enlarge",
    "estimate_noise",
    "make_consistent",
    "motion_settings",
]
