"""Lines that stay apart for every eye, and on paper without colour."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["GHOST", "INK", "LINES", "MUTED", "Dashes"]

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
