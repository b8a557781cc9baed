"""A motion as stick figures that move."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from ikpca.datasets import Motion
from ikpca.figures.takes import Takes

__all__ = ["motion_gif"]

#: The format counts in hundredths of a second, and viewers slow down below two of them.
_MILLISECONDS = 40
_COLOURS = 64


def motion_gif(takes: Mapping[str, Motion], *, azimuth: float = 30.0, dpi: int = 80) -> bytes:
    """All takes next to each other, moving at the pace of the recording.

    Parameters
    ----------
    takes : dict from str to Motion
        Such as clean, noisy and denoised, of the same frames and joints.
    azimuth : float, default=30.0
        Degrees from a look at the side towards one at the front.
    dpi : int, default=80
        The picture is 7 inches wide.

    Returns
    -------
    bytes
        Of a GIF file that repeats for ever.

    Examples
    --------
    >>> from ikpca.datasets import synthetic_walker
    >>> from ikpca.figures import motion_gif
    >>> motion_gif({"clean": synthetic_walker(frames=20)}, dpi=30)[:6]
    b'GIF89a'
    """
    drawing = Takes.of(takes, azimuth)
    figure = Figure(figsize=(7.0, 4.0), dpi=dpi, layout="constrained")
    canvas: Any = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    drawing.dress(axes, len(takes))
    drawing.scale_bar(axes)
    for place, name in enumerate(takes):
        axes.text(
            place * drawing.spacing, axes.get_ylim()[1], name, ha="center", va="bottom",
            color=drawing.colour(name), fontsize=12, fontweight="bold",
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
    """The recorded frame at the time of each picture."""
    frames_per_picture = frame_rate * _MILLISECONDS / 1000
    pictures = max(1, round(n_frames / frames_per_picture))
    return [min(int(n * frames_per_picture), n_frames - 1) for n in range(pictures)]


def _gif(pictures: list[Image.Image]) -> bytes:
    """One palette for all, or colours would flicker; this way of choosing it keeps white white."""
    palette = pictures[0].quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE)
    first, *others = (picture.quantize(palette=palette) for picture in pictures)
    content = io.BytesIO()
    first.save(content, "GIF", save_all=True, append_images=others, duration=_MILLISECONDS, loop=0)
    return content.getvalue()
