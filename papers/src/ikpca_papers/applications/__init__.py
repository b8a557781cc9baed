"""The papers' applications: denoising of images and motion, and super-resolution."""

from ikpca_papers.applications.image_denoising import denoise_image, estimate_noise
from ikpca_papers.applications.image_files import image_files, read_image, write_image
from ikpca_papers.applications.image_patches import PatchGrid, draw_patches
from ikpca_papers.applications.motion import denoise_motion, motion_settings
from ikpca_papers.applications.super_resolution import (
    SuperResolution,
    box_mean,
    enlarge,
    make_consistent,
)

__all__ = [
    "PatchGrid",
    "SuperResolution",
    "box_mean",
    "denoise_image",
    "denoise_motion",
    "draw_patches",
    "enlarge",
    "estimate_noise",
    "image_files",
    "make_consistent",
    "motion_settings",
    "read_image",
    "write_image",
]
