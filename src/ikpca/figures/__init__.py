"""Drawing, and nothing else; the only room that knows the plotting library."""

from ikpca.figures.animation import motion_gif
from ikpca.figures.convergence import convergence
from ikpca.figures.drawing import Picture, draw
from ikpca.figures.images import png
from ikpca.figures.motion import stick_figures
from ikpca.figures.pictures import picture_grid
from ikpca.figures.tracking import tracking

__all__ = [
    "Picture",
    "convergence",
    "draw",
    "motion_gif",
    "picture_grid",
    "png",
    "stick_figures",
    "tracking",
]
