"""Figures of the experiments."""

from ikpca_papers.figures.curves import png, tracking
from ikpca_papers.figures.drawing import Picture, draw
from ikpca_papers.figures.motion import stick_figures
from ikpca_papers.figures.pictures import picture_grid

__all__ = [
    "Picture",
    "draw",
    "picture_grid",
    "png",
    "stick_figures",
    "tracking",
]
