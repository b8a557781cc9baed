"""What the papers use kernel PCA for."""

from ikpca.applications.cluster import KernelSpectralClustering
from ikpca.applications.hyperresolve import Hyperresolution
from ikpca.applications.motion import MotionSettings, denoise_motion, motion_settings
from ikpca.applications.patches import PatchGrid
from ikpca.applications.resolution import box_mean, enlarge, make_consistent

__all__ = [
    "Hyperresolution",
    "KernelSpectralClustering",
    "MotionSettings",
    "PatchGrid",
    "box_mean",
    "denoise_motion",
    "enlarge",
    "make_consistent",
    "motion_settings",
]
