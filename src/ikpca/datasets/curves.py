"""Rows from formulas: the papers' parabola, at rest and turning, and the perforated Swiss roll."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ikpca.errors import refuse
from ikpca.kernels import Floats

__all__ = [
    "Drift",
    "Roll",
    "drifting_parabola",
    "in_the_hole",
    "parabola",
    "perforated_swiss_roll",
]


class Drift(NamedTuple):
    """Rows in order of time, and the angle by which each was turned, in radians.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
    angles : ndarray of shape (n,)

    Examples
    --------
    >>> from ikpca.datasets import drifting_parabola
    >>> drift = drifting_parabola(100)
    >>> drift.X.shape, drift.angles.shape
    ((100, 2), (100,))
    """

    X: Floats
    angles: Floats


class Roll(NamedTuple):
    """Rows, and where on the sheet they lie, both from 0 to 1: along the roll, across it.

    Parameters
    ----------
    X : ndarray of shape (n, 3)
    along, across : ndarray of shape (n,)

    Examples
    --------
    >>> from ikpca.datasets import perforated_swiss_roll
    >>> roll = perforated_swiss_roll(100)
    >>> roll.X.shape, roll.along.shape
    ((100, 3), (100,))
    """

    X: Floats
    along: Floats
    across: Floats


def parabola(
    n: int = 500, noise: float = 0.2, *, curvature: float = -1.0, random_state: int = 0
) -> Floats:
    """x uniform from −1 to 1, y = curvature · x² + noise (Kim 2003, figure 1).

    Parameters
    ----------
    n : int, default=500
        Rows. A longer draw begins with a shorter one of the same seed.
    noise : float, default=0.2
        Standard deviation of the Gaussian noise on y.
    curvature : float, default=-1.0
        Chin and Suter's parabola opens upwards: 1.0.
    random_state : int, default=0

    Returns
    -------
    array of shape (n, 2)

    Examples
    --------
    >>> from ikpca.datasets import parabola
    >>> X = parabola(200)
    >>> X.shape, bool((X[:50] == parabola(50)).all())
    ((200, 2), True)
    """
    _check_rows(n)
    _check_noise(noise)
    # Two streams: one stream would draw all x before the first y, and a longer draw would differ.
    x = np.random.default_rng([random_state, 0]).uniform(-1, 1, n)
    y = np.random.default_rng([random_state, 1]).normal(size=n)
    return np.column_stack([x, curvature * x**2 + noise * y])


def drifting_parabola(
    n: int = 2000, noise: float = 0.2, *, turn: float = 2 * np.pi, random_state: int = 0
) -> Drift:
    """The parabola turning about the origin while its rows arrive (Kim 2003, appendix A).

    Parameters
    ----------
    n : int, default=2000
    noise : float, default=0.2
    turn : float, default=2π
        Angle from the first row to the last, in radians; anticlockwise.
    random_state : int, default=0

    Returns
    -------
    Drift
        ``X`` of shape (n, 2) and ``angles`` of shape (n,).

    Examples
    --------
    >>> from ikpca.datasets import drifting_parabola
    >>> X, angles = drifting_parabola(100)
    >>> X.shape, float(angles[0]), round(float(angles[-1]), 4)
    ((100, 2), 0.0, 6.2832)
    """
    if not np.isfinite(turn):
        raise refuse("turn", turn, "must be finite", "pass 6.2832 for one whole turn")
    rows = parabola(n, noise, random_state=random_state)
    angles = np.linspace(0.0, turn, n)
    cosine, sine = np.cos(angles), np.sin(angles)
    x, y = rows.T
    return Drift(np.column_stack([cosine * x - sine * y, sine * x + cosine * y]), angles)


def perforated_swiss_roll(
    n: int = 800, *, unit_variance: bool = True, random_state: int = 0
) -> Roll:
    """A sheet with a rectangular hole in its middle, rolled up (Chin and Suter 2006, figure 3).

    Parameters
    ----------
    n : int, default=800
    unit_variance : bool, default=True
        Centre the rows and scale every axis to unit variance. At the paper's σ = 1 a roll of the
        usual size, radius 14, is all neighbours and no shape. False leaves it at that size.
    random_state : int, default=0

    Returns
    -------
    Roll
        ``X`` of shape (n, 3), ``along`` and ``across`` of shape (n,).

    Examples
    --------
    >>> from ikpca.datasets import perforated_swiss_roll
    >>> X, along, across = perforated_swiss_roll(300)
    >>> hole = (abs(along - 0.5) < 0.12) & (abs(across - 0.5) < 0.2)
    >>> X.shape, int(hole.sum())
    ((300, 3), 0)
    """
    _check_rows(n)
    along, across = _sheet(n, np.random.default_rng(random_state))
    angle = 1.5 * np.pi * (1 + 2 * along)
    X = np.column_stack([angle * np.cos(angle), 21 * across, angle * np.sin(angle)])
    if unit_variance:
        # One row has no spread to scale by.
        X = (X - X.mean(axis=0)) / (X.std(axis=0) if n > 1 else 1.0)
    return Roll(X, along, across)


def in_the_hole(along: Floats, across: Floats) -> np.ndarray:
    """Whether a place of the unit sheet is cut out: about a tenth of it is."""
    hole: np.ndarray = (np.abs(along - 0.5) < 0.12) & (np.abs(across - 0.5) < 0.2)
    return hole


def _sheet(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Uniform on the unit square without its hole, in the order drawn."""
    kept = np.empty((0, 2))
    while len(kept) < n:
        drawn = rng.random((n, 2))
        kept = np.vstack([kept, drawn[~in_the_hole(*drawn.T)]])
    return kept[:n, 0].copy(), kept[:n, 1].copy()


def _check_rows(n: int) -> None:
    if not n >= 1:
        raise refuse("n", n, "must be 1 or more", "pass 500, say")


def _check_noise(noise: float) -> None:
    if not 0 <= noise < np.inf:
        raise refuse("noise", noise, "must be finite and not negative", "pass 0.2")
