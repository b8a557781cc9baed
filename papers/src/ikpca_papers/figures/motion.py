"""Stick figures of motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.kernels import Floats
from ikpca.plotting import LINE_STYLES, MUTED_COLOR, REFERENCE_COLOR, TEXT_COLOR
from ikpca_papers.runner import Results

#: Gap between poses, relative to the widest pose.
_GAP = 0.05
#: Number of poses by default; width of the figure in inches.
_N_POSES, _WIDTH = 7, 8.0


def stick_figures(
    takes: Mapping[str, Floats],
    parents: ArrayLike,
    frame_rate: float,
    *,
    frames: Sequence[int] | None = None,
    azimuth: float = 30.0,
) -> Figure:
    """Draw stick figures: one row per take, one pose per frame, the first take in gray behind.

    Parameters
    ----------
    takes : dict from str to array of shape (frames, joints, 3)
        Positions in meters, such as clean, noisy and denoised ones.
    parents : array of int, shape (joints,)
        Parent of every joint; the root is first.
    frame_rate : float
        Frames per second.
    frames : sequence of int, optional
        Seven frames over the whole time by default.
    azimuth : float, default=30.0
        Degrees from the side view towards the front view.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from ikpca_papers.data import synthetic_walker
    >>> from ikpca_papers.figures import stick_figures
    >>> walk = synthetic_walker(frames=132)
    >>> takes = {"clean": walk.positions, "tall": 1.1 * walk.positions}
    >>> len(stick_figures(takes, walk.parents, walk.frame_rate).axes)
    2
    """
    shapes = {np.shape(positions) for positions in takes.values()}
    if len(shapes) != 1:
        raise InvalidInput(f"takes of shapes {shapes}: must be one or more takes of one motion.")
    chosen = _select_frames(frames, shapes.pop()[0])
    points = _project(takes, azimuth)
    low, high = (
        pick([pick(take, axis=(0, 1)) for take in points.values()], axis=0)
        for pick in (np.min, np.max)
    )
    spacing = float((1 + _GAP) * (high - low)[0]) or 1.0
    row_height = np.clip(_WIDTH * (high - low)[1] / (len(chosen) * spacing), 1.0, 4.0) + 0.3
    size = (_WIDTH, float(len(points) * row_height + 0.3))
    figure = Figure(figsize=size, layout="constrained")
    rows = figure.subplots(len(points), 1, squeeze=False)[:, 0]
    margin = 0.05 * (high - low)[1] or 0.5
    bones = np.stack([np.asarray(parents)[1:], np.arange(1, len(np.asarray(parents)))], axis=1)
    first = next(iter(points.values()))
    for axes, (name, take), (color, _) in zip(rows, points.items(), LINE_STYLES * 3, strict=False):
        for place, frame in enumerate(chosen):
            shift = [place * spacing, 0.0]
            poses = [(take, color, 1.5)]
            if take is not first:
                poses.insert(0, (first, REFERENCE_COLOR, 3.2))
            for poses_of, shade, width in poses:
                segments = list((poses_of[frame] + shift)[bones])
                axes.add_collection(
                    LineCollection(segments, colors=shade, linewidths=width, capstyle="round")
                )
        axes.set_aspect("equal")
        axes.set_xlim(low[0] - margin, high[0] + (len(chosen) - 1) * spacing + margin)
        axes.set_ylim(low[1] - margin, high[1] + margin)
        axes.set_axis_off()
        axes.set_title(name, loc="left", color=color, fontsize=11, fontweight="bold")
    for place, frame in enumerate(chosen):
        rows[-1].annotate(
            f"{frame / frame_rate:.2f} s", (place * spacing, low[1] - margin), xytext=(0, -12),
            textcoords="offset points", ha="center", fontsize=9, color=MUTED_COLOR,
            annotation_clip=False,
        )  # fmt: skip
    right = rows[0].get_xlim()[1]
    rows[0].plot([right - 0.5, right], [low[1] - margin] * 2, color=TEXT_COLOR, linewidth=2)
    rows[0].annotate(
        "0.5 m", (right, low[1] - margin), xytext=(0, 4), textcoords="offset points", ha="right",
        fontsize=8, color=MUTED_COLOR,
    )  # fmt: skip
    return figure


def _select_frames(frames: Sequence[int] | None, n_frames: int) -> list[int]:
    if frames is None:
        return [int(frame) for frame in np.unique(np.linspace(0, n_frames - 1, _N_POSES).round())]
    if not frames or not all(0 <= frame < n_frames for frame in frames):
        rule = f"must be numbers from 0 to {n_frames - 1}"
        raise invalid_parameter("frames", frames, rule, "pass None for frames over the whole time")
    return list(frames)


def _project(takes: Mapping[str, Floats], azimuth: float) -> dict[str, Floats]:
    """Project positions to the plane, centered at the root of the first take."""
    angle = np.radians(azimuth)
    # Walking is along z and y is up: seen from the side, z goes to the right.
    view = np.array([[np.sin(angle), 0.0], [0.0, 1.0], [np.cos(angle), 0.0]])
    center = next(iter(takes.values()))[:, :1] @ view
    return {name: positions @ view - center for name, positions in takes.items()}


def walk_figures(results: Results) -> Figure:
    """Draw the clean, noisy and denoised walk of the experiment."""
    arrays = next(iter(results.arrays.values()))
    takes = {name: arrays[name] for name in ("clean", "noisy", "denoised")}
    return stick_figures(takes, arrays["parents"], float(arrays["frame_rate"]))
