"""Drawing, and nothing else; the only room that knows the plotting library."""

from ikpca.figures.convergence import convergence
from ikpca.figures.images import png

__all__ = ["convergence", "png"]
