"""Rows of Chin and Suter 2006, section 6: their parabola and its width, two videos."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ikpca.datasets import parabola
from ikpca.kernels import Floats

__all__ = ["PARABOLA_GAMMA", "frey_faces", "rising_parabola", "teapot"]

#: σ = 1.
PARABOLA_GAMMA = 0.5


def rising_parabola(n_rows: int, seed: int = 0) -> Floats:
    """Chin and Suter's parabola opens upwards."""
    return parabola(n_rows, curvature=1.0, random_state=seed)


def frey_faces(folder: Path) -> Floats:
    """1,965 frames of 28×20 pixels from 0 to 1."""
    return _images(folder / "frey_faces.npz", 255)


def teapot(folder: Path) -> Floats:
    """A hundred views of 38×50 pixels, from 0 to 1."""
    return _images(folder / "teapot_100.npz", 1)


def _images(path: Path, white: float) -> Floats:
    with np.load(path) as data:
        images = np.asarray(data["images"], dtype=np.float64)
    return images.reshape(len(images), -1) / white
