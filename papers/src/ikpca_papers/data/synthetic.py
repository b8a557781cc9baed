"""Synthetic data: parabola, Swiss roll, faces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import invalid_parameter
from ikpca.kernels import Floats


class Drift(NamedTuple):
    """Rows in order of time, and the rotation angle of each in radians.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
    angles : ndarray of shape (n,)

    Examples
    --------
    >>> from ikpca_papers.data import drifting_parabola
    >>> drift = drifting_parabola(100)
    >>> drift.X.shape, drift.angles.shape
    ((100, 2), (100,))
    """

    X: Floats
    angles: Floats


class Roll(NamedTuple):
    """Rows, and their coordinates on the sheet, from 0 to 1: along the roll, across it.

    Parameters
    ----------
    X : ndarray of shape (n, 3)
    along, across : ndarray of shape (n,)

    Examples
    --------
    >>> from ikpca_papers.data import perforated_swiss_roll
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
    """Draw x uniformly from −1 to 1, y = curvature · x² + noise (Kim 2003, figure 1).

    Parameters
    ----------
    n : int, default=500
        Rows. A longer draw starts with a shorter one of the same seed.
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
    >>> from ikpca_papers.data import parabola
    >>> X = parabola(200)
    >>> X.shape, bool((X[:50] == parabola(50)).all())
    ((200, 2), True)
    """
    _check_rows(n)
    _check_noise(noise)
    # Two generators: with one, all x would be drawn before the first y, and a longer draw differ.
    x = np.random.default_rng([random_state, 0]).uniform(-1, 1, n)
    y = np.random.default_rng([random_state, 1]).normal(size=n)
    return np.column_stack([x, curvature * x**2 + noise * y])


def drifting_parabola(
    n: int = 2000, noise: float = 0.2, *, turn: float = 2 * np.pi, random_state: int = 0
) -> Drift:
    """Draw a parabola that rotates about the origin over time (Kim 2003, appendix A).

    Parameters
    ----------
    n : int, default=2000
    noise : float, default=0.2
    turn : float, default=2π
        Angle from the first row to the last, in radians; counterclockwise.
    random_state : int, default=0

    Returns
    -------
    Drift
        ``X`` of shape (n, 2) and ``angles`` of shape (n,).

    Examples
    --------
    >>> from ikpca_papers.data import drifting_parabola
    >>> X, angles = drifting_parabola(100)
    >>> X.shape, float(angles[0]), round(float(angles[-1]), 4)
    ((100, 2), 0.0, 6.2832)
    """
    if not np.isfinite(turn):
        raise invalid_parameter("turn", turn, "must be finite", "pass 6.2832 for one whole turn")
    rows = parabola(n, noise, random_state=random_state)
    angles = np.linspace(0.0, turn, n)
    cosine, sine = np.cos(angles), np.sin(angles)
    x, y = rows.T
    return Drift(np.column_stack([cosine * x - sine * y, sine * x + cosine * y]), angles)


def perforated_swiss_roll(
    n: int = 800, *, unit_variance: bool = True, random_state: int = 0
) -> Roll:
    """Draw a Swiss roll with a rectangular hole (Chin and Suter 2006, figure 3).

    Parameters
    ----------
    n : int, default=800
    unit_variance : bool, default=True
        Center the rows and scale every axis to unit variance. The usual radius of 14 is too large
        for the paper's σ = 1. False leaves it at that size.
    random_state : int, default=0

    Returns
    -------
    Roll
        ``X`` of shape (n, 3), ``along`` and ``across`` of shape (n,).

    Examples
    --------
    >>> from ikpca_papers.data import perforated_swiss_roll
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
        # One row has no variance.
        X = (X - X.mean(axis=0)) / (X.std(axis=0) if n > 1 else 1.0)
    return Roll(X, along, across)


def is_in_hole(along: Floats, across: Floats) -> np.ndarray:
    """Return True for points in the hole, about a tenth of the unit sheet."""
    hole: np.ndarray = (np.abs(along - 0.5) < 0.12) & (np.abs(across - 0.5) < 0.2)
    return hole


def _sheet(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw uniformly from the unit square without the hole."""
    kept = np.empty((0, 2))
    while len(kept) < n:
        drawn = rng.random((n, 2))
        kept = np.vstack([kept, drawn[~is_in_hole(*drawn.T)]])
    return kept[:n, 0].copy(), kept[:n, 1].copy()


def _check_rows(n: int) -> None:
    if not n >= 1:
        raise invalid_parameter("n", n, "must be 1 or more", "pass 500, say")


def _check_noise(noise: float) -> None:
    if not 0 <= noise < np.inf:
        raise invalid_parameter("noise", noise, "must be finite and not negative", "pass 0.2")


#: Half the height of the image, where half its width is 1.
_TALL = 1.15
#: Share of ambient light.
_AMBIENT = 0.08
#: Relief as bumps: x and y, widths in x and y, height. Bumps with x ≠ 0 are mirrored.
_RELIEF = {
    "nose": (0.0, 0.08, 0.10, 0.26, 0.30),
    "tip": (0.0, 0.26, 0.14, 0.10, 0.16),
    "sockets": (0.40, -0.22, 0.20, 0.12, -0.16),
    "brows": (0.38, -0.40, 0.26, 0.07, 0.08),
    "cheeks": (0.55, 0.18, 0.22, 0.22, 0.10),
    "lips": (0.0, 0.60, 0.26, 0.08, 0.10),
    "chin": (0.0, 0.95, 0.24, 0.14, 0.14),
}
#: Darker areas in the same form; the last number is the share of light absorbed.
_PAINT = {
    "brows": (0.38, -0.42, 0.20, 0.045, 0.65),
    "eyes": (0.40, -0.20, 0.11, 0.045, 0.55),
    "pupils": (0.40, -0.20, 0.035, 0.04, 0.60),
    "nostrils": (0.09, 0.36, 0.04, 0.025, 0.50),
    "mouth": (0.0, 0.60, 0.24, 0.05, 0.35),
}


class Faces(NamedTuple):
    """Images, persons, and directions of the light in degrees.

    Parameters
    ----------
    images : ndarray of uint8 of shape (n, rows, columns)
    subject : ndarray of shape (n,)
        Persons, counted from 1.
    azimuth, elevation : ndarray of shape (n,)
        Of the light; both are 0 for frontal light.

    Examples
    --------
    >>> from ikpca_papers.data import synthetic_faces
    >>> faces = synthetic_faces(2, 3)
    >>> faces.subject.tolist(), int(faces.azimuth[0])
    ([1, 1, 1, 2, 2, 2], 0)
    """

    images: NDArray[np.uint8]
    subject: NDArray[np.uint8]
    azimuth: NDArray[np.int16]
    elevation: NDArray[np.int16]


def synthetic_faces(
    people: int = 30,
    lights: int = 32,
    *,
    shape: tuple[int, int] = (64, 56),
    random_state: int = 0,
) -> Faces:
    """Render synthetic faces of different persons under the same distant lights.

    The arrays have the form of those of the Extended Yale Face Database B. The images of a person
    under all lights are near a subspace of few dimensions, as with photographs; there are no cast
    shadows.

    Parameters
    ----------
    people : int, default=30
        At most 255.
    lights : int, default=32
        The first is frontal. More lights or persons start with fewer of the same seed.
    shape : tuple of int, default=(64, 56)
        Rows and columns of an image.
    random_state : int, default=0

    Returns
    -------
    Faces
        ``images`` of shape (people · lights, rows, columns), 0 to 255, person by person.

    Examples
    --------
    >>> from ikpca_papers.data import synthetic_faces
    >>> faces = synthetic_faces(3, 4)
    >>> faces.images.shape, faces.images.dtype, faces.subject[:5].tolist()
    ((12, 64, 56), dtype('uint8'), [1, 1, 1, 1, 2])
    """
    if not 1 <= people <= 255:
        raise invalid_parameter("people", people, "must be from 1 to 255", "pass 30")
    if not lights >= 1:
        raise invalid_parameter("lights", lights, "must be 1 or more", "pass 32")
    if min(shape) < 8:
        raise invalid_parameter(
            "shape", shape, "must be 8 pixels or more each way", "pass (64, 56)"
        )
    azimuth, elevation = _light_angles(lights, random_state)
    directions = _directions(azimuth, elevation)
    images = [
        _shade(*_head(shape, np.random.default_rng([random_state, 1, person])), directions)
        for person in range(people)
    ]
    return Faces(
        np.concatenate(images),
        np.repeat(np.arange(1, people + 1, dtype=np.uint8), lights),
        np.tile(azimuth, people),
        np.tile(elevation, people),
    )


def _light_angles(lights: int, seed: int) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    draws = np.random.default_rng([seed, 0]).uniform(-1, 1, (lights, 2))
    draws[0] = 0
    # More often from above than from below.
    azimuth, elevation = 75 * draws[:, 0], np.where(draws[:, 1] > 0, 65, 35) * draws[:, 1]
    return np.rint(azimuth).astype(np.int16), np.rint(elevation).astype(np.int16)


def _directions(azimuth: NDArray[np.int16], elevation: NDArray[np.int16]) -> Floats:
    """Return unit vectors towards the lights; x to the right, y down, z to the viewer."""
    a, e = np.deg2rad(azimuth), np.deg2rad(elevation)
    return np.column_stack([np.sin(a) * np.cos(e), -np.sin(e), np.cos(a) * np.cos(e)])


def _head(shape: tuple[int, int], rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return normals of shape (rows, columns, 3), and the albedo."""
    y, x = np.meshgrid(
        np.linspace(-_TALL, _TALL, shape[0]), np.linspace(-1, 1, shape[1]), indexing="ij"
    )
    wide, tall = rng.uniform(1.0, 1.2), rng.uniform(1.3, 1.5)
    relief = _features(_RELIEF, x, y, rng)
    paint = _features(_PAINT, x, y, rng)
    # Smoothed at the rim, where the slope of an ellipsoid is unbounded.
    inside = 1 - (x / wide) ** 2 - (y / tall) ** 2
    height = 0.75 * np.sqrt(np.logaddexp(0, 12 * inside) / 12) + relief
    down, right = np.gradient(height, y[:, 0], x[0])
    normals = np.dstack([-right, -down, np.ones(shape)])
    normals /= np.linalg.norm(normals, axis=2, keepdims=True)
    skin = rng.uniform(0.65, 0.95) * np.exp(-paint)
    hairline = rng.uniform(-1.05, -0.8) + rng.uniform(-0.1, 0.25) * x**2
    hair = 1 / (1 + np.exp((y - hairline) / 0.03))
    behind = 1 / (1 + np.exp(inside / 0.03))
    return normals, skin * (1 - 0.8 * hair) * (1 - 0.75 * behind)


def _features(
    table: Mapping[str, tuple[float, ...]], x: Floats, y: Floats, rng: np.random.Generator
) -> Floats:
    """Sum Gaussian bumps whose positions and sizes vary randomly between faces."""
    total = np.zeros(x.shape)
    for across, down, width, height, strength in table.values():
        moves = rng.normal(size=5)
        at = across * (1 + 0.06 * moves[0]), down + 0.035 * moves[1]
        widths = width * np.exp(0.15 * moves[2]), height * np.exp(0.15 * moves[3])
        for side in (1, -1) if across else (1,):
            squares = ((x - side * at[0]) / widths[0]) ** 2 + ((y - at[1]) / widths[1]) ** 2
            total += strength * np.exp(0.3 * moves[4] - squares / 2)
    return total


def _shade(normals: Floats, albedo: Floats, directions: Floats) -> NDArray[np.uint8]:
    """Render by Lambert's law with ambient light, one image per light."""
    # Not by BLAS, whose order of summation depends on its threads.
    towards = sum(np.multiply.outer(normals[..., axis], directions[:, axis]) for axis in range(3))
    shading = np.clip(towards, 0, None)
    light = albedo[..., None] * (_AMBIENT + (1 - _AMBIENT) * shading)
    return np.rint(255 * np.moveaxis(light, 2, 0)).astype(np.uint8)
