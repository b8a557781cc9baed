"""What the papers use kernel PCA for."""

from ikpca.applications.motion import MotionSettings, denoise_motion, motion_settings

__all__ = ["MotionSettings", "denoise_motion", "motion_settings"]
