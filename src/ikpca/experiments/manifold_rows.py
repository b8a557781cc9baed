"""Rows of Chin and Suter 2006, section 6: the parabola, the Swiss roll, two videos."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ikpca.kernels import Floats

__all__ = ["PARABOLA_GAMMA", "frey_faces", "parabola", "swiss_roll", "teapot"]

#: σ = 1.
PARABOLA_GAMMA = 0.5


def parabola(n_rows: int, seed: int = 0) -> Floats:
    """y = x² + N(0, 0.2), x uniform from −1 to 1; a longer draw begins with a shorter one."""
    # By columns: a generator that drew all x first would give other rows for another length.
    draws = np.random.default_rng(seed).random((n_rows, 1))
    noise = np.random.default_rng([seed, 1]).normal(scale=0.2, size=(n_rows, 1))
    x = 2 * draws - 1
    return np.hstack([x, x**2 + noise])


def swiss_roll(n_rows: int = 800, seed: int = 0) -> tuple[Floats, Floats]:
    """A sheet with a hole, rolled up, of unit variance; and where its rows lie along it.

    The paper's roll has an inherently low-dimensional spectrum at σ = 1, which a roll of the usual
    size (radius 14) has not; at unit variance it has.
    """
    rng = np.random.default_rng(seed)
    along, across = rng.random((2, 3 * n_rows))
    hole = (np.abs(along - 0.5) < 0.12) & (np.abs(across - 0.5) < 0.2)
    along, across = along[~hole][:n_rows], across[~hole][:n_rows]
    angle = 1.5 * np.pi * (1 + 2 * along)
    rows = np.column_stack([angle * np.cos(angle), 21 * across, angle * np.sin(angle)])
    rows -= rows.mean(axis=0)
    return rows / rows.std(), along


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
