"""Stick figures and animations of motion."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.kernels import Floats
from ikpca.plotting import LINE_STYLES, MUTED_COLOR, REFERENCE_COLOR, TEXT_COLOR
from ikpca_papers.mocap.skeleton import Motion, Skeleton
from ikpca_papers.runner import Results

#: Gap between poses, relative to the widest pose.
_GAP = 0.05
_SCALE_BAR_METRES = 0.5


@dataclass(frozen=True)
class Takes:
    """Poses projected to the plane at one scale, centered at the root of the first take.

    Parameters
    ----------
    points : dict from str to array of shape (frames, joints, 2)
        Coordinates to the right and up, by the name of the take.
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
        """Project motions as seen from the side, turned by ``azimuth`` degrees to the front."""
        if not takes:
            raise invalid_parameter(
                "takes", dict(takes), "must hold a motion", "pass {'clean': motion}"
            )
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
        center = first.positions[:, :1] @ view
        points = {name: motion.positions @ view - center for name, motion in takes.items()}
        meters = first.metres_per_unit == 1.0
        return cls(points, first.skeleton.parents, first.frame_rate, meters)

    @property
    def names(self) -> list[str]:
        """Names of the takes."""
        return list(self.points)

    @property
    def n_frames(self) -> int:
        """Number of frames of each take."""
        return len(self.points[self.names[0]])

    def color(self, name: str) -> str:
        """Return the color of a take."""
        return LINE_STYLES[self.names.index(name) % len(LINE_STYLES)][0]

    @property
    def extent(self) -> tuple[Floats, Floats]:
        """Lower left and upper right corner of all poses."""
        every = np.concatenate([points.reshape(-1, 2) for points in self.points.values()])
        return every.min(axis=0), every.max(axis=0)

    @property
    def spacing(self) -> float:
        """Distance between neighboring poses."""
        low, high = self.extent
        return float((1 + _GAP) * (high - low)[0]) or 1.0

    def draw(self, axes: Axes, name: str, frame: int, place: int) -> list[LineCollection]:
        """Draw one pose at a position of its row, above the first take in gray."""
        drawn = [self._bones(name, frame, place, self.color(name), 1.5)]
        if name != self.names[0]:
            drawn.insert(0, self._bones(self.names[0], frame, place, REFERENCE_COLOR, 3.2))
        for bones in drawn:
            axes.add_collection(bones)
        return drawn

    def _bones(self, name: str, frame: int, place: int, color: str, width: float) -> LineCollection:
        points = self.points[name][frame] + [place * self.spacing, 0.0]
        segments = np.stack([points[self.parents[1:]], points[1:]], axis=1)
        return LineCollection(list(segments), colors=color, linewidths=width, capstyle="round")

    def format_axes(self, axes: Axes, places: int) -> None:
        """Set equal scales, limits for so many poses, and no frame."""
        low, high = self.extent
        margin = 0.05 * (high - low)[1] or 0.5
        axes.set_aspect("equal")
        axes.set_xlim(low[0] - margin, high[0] + (places - 1) * self.spacing + margin)
        axes.set_ylim(low[1] - margin, high[1] + margin)
        axes.set_axis_off()

    def scale_bar(self, axes: Axes) -> None:
        """Draw a bar of half a meter, if lengths are in meters."""
        if not self.in_metres:
            return
        right, bottom = axes.get_xlim()[1], axes.get_ylim()[0]
        axes.plot(
            [right - _SCALE_BAR_METRES, right], [bottom, bottom], color=TEXT_COLOR, linewidth=2
        )
        axes.annotate(
            f"{_SCALE_BAR_METRES:g} m", (right, bottom), xytext=(0, 4), textcoords="offset points",
            ha="right", fontsize=8, color=MUTED_COLOR,
        )  # fmt: skip


def takes_from_results(results: Results) -> dict[str, Motion]:
    """Return takes by name; bone offsets are those of the first clean frame."""
    arrays = next(iter(results.arrays.values()))
    parents, clean = arrays["parents"], arrays["clean"]
    offsets = clean[0] - clean[0][parents.clip(0)]
    names = tuple(f"joint {number}" for number in range(len(parents)))
    skeleton = Skeleton(names, parents, offsets)
    rate = float(arrays["frame_rate"])
    return {
        name: Motion(skeleton, arrays[name], rate, 1.0) for name in ("clean", "noisy", "denoised")
    }


_POSES = 7
#: Inches.
_WIDTH = 8.0


def stick_figures(
    takes: Mapping[str, Motion], *, frames: Sequence[int] | None = None, azimuth: float = 30.0
) -> Figure:
    """Draw stick figures: one row per take, one pose per frame, the first take in gray behind.

    Parameters
    ----------
    takes : dict from str to Motion
        Such as clean, noisy and denoised, of the same frames and joints.
    frames : sequence of int, optional
        Seven frames over the whole time by default.
    azimuth : float, default=30.0
        Degrees from the side view towards the front view.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from ikpca_papers.mocap import synthetic_walker, with_noise
    >>> from ikpca_papers.figures import stick_figures
    >>> clean = synthetic_walker(frames=132)
    >>> figure = stick_figures({"clean": clean, "noisy": with_noise(clean, 0.05, seed=0)})
    >>> len(figure.axes)
    2
    """
    drawing = Takes.of(takes, azimuth)
    chosen = _select_frames(frames, drawing.n_frames)
    figure = Figure(figsize=(_WIDTH, _height(drawing, len(chosen))), layout="constrained")
    rows = figure.subplots(len(takes), 1, squeeze=False)[:, 0]
    for axes, name in zip(rows, drawing.names, strict=True):
        for place, frame in enumerate(chosen):
            drawing.draw(axes, name, frame, place)
        drawing.format_axes(axes, len(chosen))
        axes.set_title(name, loc="left", color=drawing.color(name), fontsize=11, fontweight="bold")
    _label_times(rows[-1], drawing, chosen)
    drawing.scale_bar(rows[0])
    return figure


def _select_frames(frames: Sequence[int] | None, n_frames: int) -> list[int]:
    if frames is None:
        return [int(frame) for frame in np.unique(np.linspace(0, n_frames - 1, _POSES).round())]
    chosen = list(frames)
    if not chosen or not all(0 <= frame < n_frames for frame in chosen):
        rule = f"must be numbers from 0 to {n_frames - 1}"
        raise invalid_parameter(
            "frames", chosen, rule, "leave it out for frames over the whole time"
        )
    return chosen


def _height(drawing: Takes, poses: int) -> float:
    """Return the height of the figure in inches, for rows without empty space."""
    low, high = drawing.extent
    row = _WIDTH * (high - low)[1] / (poses * drawing.spacing)
    return float(len(drawing.names) * (np.clip(row, 1.0, 4.0) + 0.3) + 0.3)


def _label_times(axes: Axes, drawing: Takes, frames: list[int]) -> None:
    for place, frame in enumerate(frames):
        axes.annotate(
            f"{frame / drawing.frame_rate:.2f} s",
            (place * drawing.spacing, axes.get_ylim()[0]),
            xytext=(0, -12), textcoords="offset points", ha="center", fontsize=9, color=MUTED_COLOR,
            annotation_clip=False,
        )  # fmt: skip


#: GIF counts in hundredths of a second, and viewers slow down below two of them.
_MILLISECONDS = 40
_COLOURS = 64


def motion_gif(takes: Mapping[str, Motion], *, azimuth: float = 30.0, dpi: int = 80) -> bytes:
    """Animate all takes side by side, in real time.

    Parameters
    ----------
    takes : dict from str to Motion
        Such as clean, noisy and denoised, of the same frames and joints.
    azimuth : float, default=30.0
        Degrees from the side view towards the front view.
    dpi : int, default=80
        The image is 7 inches wide.

    Returns
    -------
    bytes
        Of a GIF file that loops for ever.

    Examples
    --------
    >>> from ikpca_papers.mocap import synthetic_walker
    >>> from ikpca_papers.figures import motion_gif
    >>> motion_gif({"clean": synthetic_walker(frames=20)}, dpi=30)[:6]
    b'GIF89a'
    """
    drawing = Takes.of(takes, azimuth)
    figure = Figure(figsize=(7.0, 4.0), dpi=dpi, layout="constrained")
    canvas: Any = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    drawing.format_axes(axes, len(takes))
    drawing.scale_bar(axes)
    for place, name in enumerate(takes):
        axes.text(
            place * drawing.spacing, axes.get_ylim()[1], name, ha="center", va="bottom",
            color=drawing.color(name), fontsize=12, fontweight="bold",
        )  # fmt: skip
    pictures = []
    for frame in _shown_frames(drawing.n_frames, drawing.frame_rate):
        shown = [
            stick for n, name in enumerate(takes) for stick in drawing.draw(axes, name, frame, n)
        ]
        canvas.draw()
        pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB"))
        for stick in shown:
            stick.remove()
    return _gif(pictures)


def _shown_frames(n_frames: int, frame_rate: float) -> list[int]:
    """Return the recorded frame at the time of each image."""
    frames_per_picture = frame_rate * _MILLISECONDS / 1000
    pictures = max(1, round(n_frames / frames_per_picture))
    return [min(int(n * frames_per_picture), n_frames - 1) for n in range(pictures)]


def _gif(pictures: list[Image.Image]) -> bytes:
    """Encode with one palette for all images, or colors would flicker; white stays white."""
    palette = pictures[0].quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE)
    first, *others = (picture.quantize(palette=palette) for picture in pictures)
    content = io.BytesIO()
    first.save(content, "GIF", save_all=True, append_images=others, duration=_MILLISECONDS, loop=0)
    return content.getvalue()
