"""Takes of one motion, such as clean, noisy and denoised, projected side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from ikpca.datasets import Motion
from ikpca.errors import InvalidInput, refuse
from ikpca.figures.styles import GHOST, INK, LINES, MUTED
from ikpca.kernels import Floats

__all__ = ["Takes"]

#: Room between neighbours, as a share of the widest pose.
_GAP = 0.05
_SCALE_BAR_METRES = 0.5


@dataclass(frozen=True)
class Takes:
    """Poses as flat drawings on one scale, the root of the first take in the middle of each.

    Parameters
    ----------
    points : dict from str to array of shape (frames, joints, 2)
        To the right and up, by the name of the take.
    parents : array of int, shape (joints,)
    frame_rate : float
    in_metres : bool
    """

    points: dict[str, Floats]
    parents: NDArray[np.intp]
    frame_rate: float
    in_metres: bool

    @classmethod
    def of(cls, takes: Mapping[str, Motion], azimuth: float) -> Takes:
        """Look at the motions from the side, turned by ``azimuth`` degrees towards the front."""
        if not takes:
            raise refuse("takes", dict(takes), "must hold a motion", "pass {'clean': motion}")
        first, *others = takes.values()
        for other in others:
            if other.positions.shape != first.positions.shape:
                raise InvalidInput(
                    f"takes of shapes {first.positions.shape} and {other.positions.shape}: must "
                    "have the same frames and joints; pass takes of one motion."
                )
        angle = np.radians(azimuth)
        # Walking is along z and y is up: seen from the side, z goes to the right.
        view = np.array([[np.sin(angle), 0.0], [0.0, 1.0], [np.cos(angle), 0.0]])
        centre = first.positions[:, :1] @ view
        points = {name: motion.positions @ view - centre for name, motion in takes.items()}
        metres = first.metres_per_unit == 1.0
        return cls(points, first.skeleton.parents, first.frame_rate, metres)

    @property
    def names(self) -> list[str]:
        """Of the takes, in their order."""
        return list(self.points)

    @property
    def n_frames(self) -> int:
        """How many frames each take has."""
        return len(self.points[self.names[0]])

    def colour(self, name: str) -> str:
        """Of a take, wherever it is drawn or named."""
        return LINES[self.names.index(name) % len(LINES)][0]

    @property
    def extent(self) -> tuple[Floats, Floats]:
        """The lower left and the upper right corner of all poses laid over each other."""
        every = np.concatenate([points.reshape(-1, 2) for points in self.points.values()])
        return every.min(axis=0), every.max(axis=0)

    @property
    def spacing(self) -> float:
        """How far apart neighbours stand."""
        low, high = self.extent
        return float((1 + _GAP) * (high - low)[0]) or 1.0

    def draw(self, axes: Axes, name: str, frame: int, place: int) -> list[LineCollection]:
        """Draw one pose at a place of its row, with the first take as a shadow beneath."""
        drawn = [self._bones(name, frame, place, self.colour(name), 1.5)]
        if name != self.names[0]:
            drawn.insert(0, self._bones(self.names[0], frame, place, GHOST, 3.2))
        for bones in drawn:
            axes.add_collection(bones)
        return drawn

    def _bones(
        self, name: str, frame: int, place: int, colour: str, width: float
    ) -> LineCollection:
        points = self.points[name][frame] + [place * self.spacing, 0.0]
        segments = np.stack([points[self.parents[1:]], points[1:]], axis=1)
        return LineCollection(list(segments), colors=colour, linewidths=width, capstyle="round")

    def dress(self, axes: Axes, places: int) -> None:
        """Equal scales, room for so many poses, and no frame around them."""
        low, high = self.extent
        margin = 0.05 * (high - low)[1] or 0.5
        axes.set_aspect("equal")
        axes.set_xlim(low[0] - margin, high[0] + (places - 1) * self.spacing + margin)
        axes.set_ylim(low[1] - margin, high[1] + margin)
        axes.set_axis_off()

    def scale_bar(self, axes: Axes) -> None:
        """Half a metre, where lengths are known to be metres."""
        if not self.in_metres:
            return
        right, bottom = axes.get_xlim()[1], axes.get_ylim()[0]
        axes.plot([right - _SCALE_BAR_METRES, right], [bottom, bottom], color=INK, linewidth=2)
        axes.annotate(
            f"{_SCALE_BAR_METRES:g} m", (right, bottom), xytext=(0, 4), textcoords="offset points",
            ha="right", fontsize=8, color=MUTED,
        )  # fmt: skip
