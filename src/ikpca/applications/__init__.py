"""What the papers use kernel PCA for."""

from ikpca.applications.patches import PatchGrid

__all__ = ["PatchGrid"]
