"""Faces from formulas, under many lights: for where no photographs of people may be had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import refuse
from ikpca.kernels import Floats

__all__ = ["Faces", "synthetic_faces"]

#: Half the height of the frame, where half its width is 1.
_TALL = 1.15
#: Share of the light that comes from everywhere.
_AMBIENT = 0.08
#: What relief consists of: x and y of a bump, its widths in x and y, its height. Pairs mirror x.
_RELIEF = {
    "nose": (0.0, 0.08, 0.10, 0.26, 0.30),
    "tip": (0.0, 0.26, 0.14, 0.10, 0.16),
    "sockets": (0.40, -0.22, 0.20, 0.12, -0.16),
    "brows": (0.38, -0.40, 0.26, 0.07, 0.08),
    "cheeks": (0.55, 0.18, 0.22, 0.22, 0.10),
    "lips": (0.0, 0.60, 0.26, 0.08, 0.10),
    "chin": (0.0, 0.95, 0.24, 0.14, 0.14),
}
#: What is darker than skin, in the same terms; the last is the share of light swallowed.
_PAINT = {
    "brows": (0.38, -0.42, 0.20, 0.045, 0.65),
    "eyes": (0.40, -0.20, 0.11, 0.045, 0.55),
    "pupils": (0.40, -0.20, 0.035, 0.04, 0.60),
    "nostrils": (0.09, 0.36, 0.04, 0.025, 0.50),
    "mouth": (0.0, 0.60, 0.24, 0.05, 0.35),
}


class Faces(NamedTuple):
    """Pictures with who is on them and where the light stood, in degrees.

    Parameters
    ----------
    images : ndarray of uint8 of shape (n, rows, columns)
    subject : ndarray of shape (n,)
        People, counted from 1.
    azimuth, elevation : ndarray of shape (n,)
        Of the light; both 0 from the front.

    Examples
    --------
    >>> from ikpca.datasets import synthetic_faces
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
    """Matt heads of different features, each under the same distant lights.

    The arrays are those of the Extended Yale Face Database B as this library reads it. A person
    under all lights lies near a subspace of few dimensions, as with photographs; what is missing
    is cast shadows, hair and skin.

    Parameters
    ----------
    people : int, default=30
        At most 255.
    lights : int, default=32
        The first is frontal. More lights begin with fewer of the same seed, and so do people.
    shape : tuple of int, default=(64, 56)
        Rows and columns of a picture.
    random_state : int, default=0

    Returns
    -------
    Faces
        ``images`` of shape (people · lights, rows, columns), 0 to 255, person by person.

    Examples
    --------
    >>> from ikpca.datasets import synthetic_faces
    >>> faces = synthetic_faces(3, 4)
    >>> faces.images.shape, faces.images.dtype, faces.subject[:5].tolist()
    ((12, 64, 56), dtype('uint8'), [1, 1, 1, 1, 2])
    """
    if not 1 <= people <= 255:
        raise refuse("people", people, "must be from 1 to 255", "pass 30")
    if not lights >= 1:
        raise refuse("lights", lights, "must be 1 or more", "pass 32")
    if min(shape) < 8:
        raise refuse("shape", shape, "must be 8 pixels or more each way", "pass (64, 56)")
    azimuth, elevation = _places(lights, random_state)
    directions = _directions(azimuth, elevation)
    images = [
        _lit(*_head(shape, np.random.default_rng([random_state, 1, person])), directions)
        for person in range(people)
    ]
    return Faces(
        np.concatenate(images),
        np.repeat(np.arange(1, people + 1, dtype=np.uint8), lights),
        np.tile(azimuth, people),
        np.tile(elevation, people),
    )


def _places(lights: int, seed: int) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    draws = np.random.default_rng([seed, 0]).uniform(-1, 1, (lights, 2))
    draws[0] = 0
    # Above more often than below, as lamps are.
    azimuth, elevation = 75 * draws[:, 0], np.where(draws[:, 1] > 0, 65, 35) * draws[:, 1]
    return np.rint(azimuth).astype(np.int16), np.rint(elevation).astype(np.int16)


def _directions(azimuth: NDArray[np.int16], elevation: NDArray[np.int16]) -> Floats:
    """Unit vectors towards the lights; x to the right, y down, z to the viewer."""
    a, e = np.deg2rad(azimuth), np.deg2rad(elevation)
    return np.column_stack([np.sin(a) * np.cos(e), -np.sin(e), np.cos(a) * np.cos(e)])


def _head(shape: tuple[int, int], rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Normals of shape (rows, columns, 3), and the share of light given back."""
    y, x = np.meshgrid(
        np.linspace(-_TALL, _TALL, shape[0]), np.linspace(-1, 1, shape[1]), indexing="ij"
    )
    wide, tall = rng.uniform(1.0, 1.2), rng.uniform(1.3, 1.5)
    relief = _features(_RELIEF, x, y, rng)
    paint = _features(_PAINT, x, y, rng)
    # Softened at the rim, where an ellipsoid's slope has no bound.
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
    """The sum of Gaussian bumps, every one a little elsewhere and of another size in every face."""
    total = np.zeros(x.shape)
    for across, down, width, height, strength in table.values():
        moves = rng.normal(size=5)
        at = across * (1 + 0.06 * moves[0]), down + 0.035 * moves[1]
        widths = width * np.exp(0.15 * moves[2]), height * np.exp(0.15 * moves[3])
        for side in (1, -1) if across else (1,):
            squares = ((x - side * at[0]) / widths[0]) ** 2 + ((y - at[1]) / widths[1]) ** 2
            total += strength * np.exp(0.3 * moves[4] - squares / 2)
    return total


def _lit(normals: Floats, albedo: Floats, directions: Floats) -> NDArray[np.uint8]:
    """Lambert's law, and a little light from everywhere; one picture per light."""
    # Summed here, since BLAS sums in an order that depends on its threads.
    towards = sum(np.multiply.outer(normals[..., axis], directions[:, axis]) for axis in range(3))
    shading = np.clip(towards, 0, None)
    light = albedo[..., None] * (_AMBIENT + (1 - _AMBIENT) * shading)
    return np.rint(255 * np.moveaxis(light, 2, 0)).astype(np.uint8)
