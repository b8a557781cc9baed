"""Drawing, and nothing else; the only room that knows the plotting library."""

from ikpca.figures.convergence import convergence
from ikpca.figures.images import png
from ikpca.figures.pictures import picture_grid

__all__ = ["convergence", "picture_grid", "png"]
