"""Lines that stay apart for every eye, and on paper without colour."""

from __future__ import annotations

from typing import TypeAlias

from matplotlib.axes import Axes

__all__ = ["GHOST", "INK", "LINES", "MUTED", "Dashes", "dress"]

#: A name, or an offset and the lengths of dashes and gaps.
Dashes: TypeAlias = str | tuple[int, tuple[int, ...]]

INK = "0.1"
MUTED = "0.4"
#: For what lies beneath, to compare with.
GHOST = "0.8"
#: Okabe and Ito's palette, each colour with a dash pattern of its own.
LINES: tuple[tuple[str, Dashes], ...] = (
    ("#0072B2", "dashed"),
    ("#CC79A7", "dashdot"),
    ("#009E73", "solid"),
    ("#D55E00", (0, (6, 1, 1, 1, 1, 1))),
)


def dress(axes: Axes, title: str, subtitle: str = "") -> None:
    """Give the axes a title, what was run beneath it, and a grid that stays behind the data."""
    axes.set_title(title, loc="left", fontweight="bold", color=INK, pad=22 if subtitle else 8)
    axes.text(0, 1.025, subtitle, transform=axes.transAxes, fontsize=9, color=MUTED)
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
