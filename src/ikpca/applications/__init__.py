"""Applications of kernel PCA to images and motion."""

from ikpca.applications.image_denoising import denoise_image, estimate_noise
from ikpca.applications.image_patches import PatchGrid, draw_patches
from ikpca.applications.motion import denoise_motion, motion_settings
from ikpca.applications.super_resolution import SuperResolution, box_mean, enlarge, make_consistent

__all__ = [
    "PatchGrid",
    "SuperResolution",
    "box_mean",
    "denoise_image",
    "denoise_motion",
    "draw_patches",
    "enlarge",
    "estimate_noise",
    "make_consistent",
    "motion_settings",
]
