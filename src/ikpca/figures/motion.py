"""Some frames of a motion as stick figures side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ikpca.datasets import Motion
from ikpca.errors import refuse
from ikpca.figures.styles import MUTED
from ikpca.figures.takes import Takes

__all__ = ["stick_figures"]

_POSES = 7
#: Inches.
_WIDTH = 8.0


def stick_figures(
    takes: Mapping[str, Motion], *, frames: Sequence[int] | None = None, azimuth: float = 30.0
) -> Figure:
    """One row per take, one pose per chosen frame, the first take as a shadow beneath the others.

    Parameters
    ----------
    takes : dict from str to Motion
        Such as clean, noisy and denoised, of the same frames and joints.
    frames : sequence of int, optional
        Seven frames over the whole time by default.
    azimuth : float, default=30.0
        Degrees from a look at the side towards one at the front.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from ikpca.datasets import synthetic_walker, with_noise
    >>> from ikpca.figures import stick_figures
    >>> clean = synthetic_walker(frames=132)
    >>> figure = stick_figures({"clean": clean, "noisy": with_noise(clean, 0.05, seed=0)})
    >>> len(figure.axes)
    2
    """
    drawing = Takes.of(takes, azimuth)
    chosen = _chosen(frames, drawing.n_frames)
    figure = Figure(figsize=(_WIDTH, _height(drawing, len(chosen))), layout="constrained")
    rows = figure.subplots(len(takes), 1, squeeze=False)[:, 0]
    for axes, name in zip(rows, drawing.names, strict=True):
        for place, frame in enumerate(chosen):
            drawing.draw(axes, name, frame, place)
        drawing.dress(axes, len(chosen))
        axes.set_title(name, loc="left", color=drawing.colour(name), fontsize=11, fontweight="bold")
    _name_times(rows[-1], drawing, chosen)
    drawing.scale_bar(rows[0])
    return figure


def _chosen(frames: Sequence[int] | None, n_frames: int) -> list[int]:
    if frames is None:
        return [int(frame) for frame in np.unique(np.linspace(0, n_frames - 1, _POSES).round())]
    chosen = list(frames)
    if not chosen or not all(0 <= frame < n_frames for frame in chosen):
        rule = f"must be numbers from 0 to {n_frames - 1}"
        raise refuse("frames", chosen, rule, "leave it out for frames over the whole time")
    return chosen


def _height(drawing: Takes, poses: int) -> float:
    """Of the figure in inches, so that rows have the shape of what they show."""
    low, high = drawing.extent
    row = _WIDTH * (high - low)[1] / (poses * drawing.spacing)
    return float(len(drawing.names) * (np.clip(row, 1.0, 4.0) + 0.3) + 0.3)


def _name_times(axes: Axes, drawing: Takes, frames: list[int]) -> None:
    for place, frame in enumerate(frames):
        axes.annotate(
            f"{frame / drawing.frame_rate:.2f} s",
            (place * drawing.spacing, axes.get_ylim()[0]),
            xytext=(0, -12), textcoords="offset points", ha="center", fontsize=9, color=MUTED,
            annotation_clip=False,
        )  # fmt: skip
