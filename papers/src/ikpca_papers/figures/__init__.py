"""Figures of the experiments."""

from ikpca_papers.figures.curves import demo_convergence, png, tracking
from ikpca_papers.figures.drawing import Picture, draw
from ikpca_papers.figures.motion import stick_figures
from ikpca_papers.figures.pictures import picture_grid

__all__ = [
    "Picture",
    "demo_convergence",
    "draw",
    "picture_grid",
    "png",
    "stick_figures",
    "tracking",
]
