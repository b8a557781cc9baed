"""Angles to a moving subspace over a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ikpca.plotting import INK, LINES, MUTED, label_ends
from ikpca_papers.kim2003.online import Rotation, Track


def tracking(tracks: Mapping[Rotation, Sequence[Track]], limit: float = 15.0) -> Figure:
    """One panel per stream, one curve per gain, and the angle that tracking has to stay below.

    Parameters
    ----------
    tracks : mapping of Rotation to sequence of Track
        Streams, and the angles that models had to their truth.
    limit : float, default=15.0
        In degrees.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = Figure(figsize=(7.6, 3.1 * len(tracks)), layout="constrained")
    panels = figure.subplots(len(tracks), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (rotation, curves) in zip(panels, tracks.items(), strict=True):
        for curve, (colour, dashes) in zip(curves, LINES, strict=False):
            axes.plot(
                curve.times,
                curve.angles,
                color=colour,
                linestyle=dashes,
                linewidth=1.5,
                label=curve.name,
            )
        _dress(axes, rotation, limit)
    panels[-1].set_xlabel("Rows of the stream")
    for axes in panels:
        label_ends(figure, axes)
    return figure


def _dress(axes: Axes, rotation: Rotation, limit: float) -> None:
    axes.hlines(limit, 0, rotation.n, color=MUTED, linewidth=0.8)
    axes.set_ylim(0, 90)
    axes.set_xlim(0, rotation.n)
    axes.set_yticks([0, limit, 45, 90])
    axes.set_ylabel("Angle to the truth, °")
    axes.set_title(
        f"{rotation.shape.capitalize()}, a turn in {rotation.period:,.0f} rows",
        loc="left", fontweight="bold", color=INK, fontsize=10,
    )  # fmt: skip
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
