"""Error of a streamed subspace over the stream, one curve per variant."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from ikpca.experiments.ablation import Course
from ikpca.figures.labels import label_ends
from ikpca.figures.styles import LINES, dress

__all__ = ["drift_plot"]


def drift_plot(courses: Sequence[Course], subtitle: str) -> Figure:
    """Largest angle to batch on the rows so far; without a step of the update it drifts."""
    figure = Figure(figsize=(7.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for course, (colour, dashes) in zip(courses, LINES, strict=False):
        axes.plot(
            course.rows, course.angles, color=colour, linestyle=dashes, linewidth=1.8,
            label=course.variant,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set(xlabel="Rows seen", ylabel="Largest angle to batch, degrees")
    dress(axes, "What each step of the update is for", subtitle)
    label_ends(figure, axes)
    return figure
