"""Error of a streamed subspace over the stream, one curve per variant."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from ikpca.experiments.ablation import Course
from ikpca.figures.styles import LINES, dress

__all__ = ["drift_plot"]


def drift_plot(courses: Sequence[Course], subtitle: str) -> Figure:
    """Error against batch on the rows so far, one panel per library, one curve per omission."""
    libraries = list(dict.fromkeys(course.library for course in courses))
    figure = Figure(figsize=(4.4 * len(libraries) + 1.5, 4.2), layout="constrained")
    panels = figure.subplots(1, len(libraries), sharey=True, squeeze=False)[0]
    for axes, library in zip(panels, libraries, strict=True):
        here = [course for course in courses if course.library == library]
        for course, (colour, dashes) in zip(here, LINES, strict=False):
            axes.plot(
                course.rows, course.errors, color=colour, linestyle=dashes, linewidth=1.8,
                label=f"without {course.left_out}" if course.left_out != "nothing" else "all steps",
            )  # fmt: skip
        axes.set_yscale("log")
        axes.set(xlabel="Rows seen")
        dress(axes, library, subtitle if axes is panels[0] else " ")
    panels[0].set_ylabel("Error against batch")
    panels[-1].legend(frameon=False, fontsize=9)
    return figure
