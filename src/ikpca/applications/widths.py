"""σ chosen on training images alone: some are degraded, and whoever restores them best wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ikpca.applications.greys import Grey
from ikpca.errors import refuse
from ikpca.estimators.gamma import resolve_gamma
from ikpca.kernels import Floats

__all__ = ["choose_gamma", "hold_out"]

#: Widths to begin with, as multiples of the spread of the patches, and steps around the best.
_COARSE, _FINE = (0.25, 0.5, 1.0, 2.0, 4.0), (2**-0.5, 2**0.5)
#: At most this many images are held out, and one in so many.
_HELD, _ONE_IN = 16, 5


def choose_gamma(
    patches: Floats, error: Callable[[float], float]
) -> tuple[float, list[tuple[float, float]]]:
    """Search a coarse grid of widths, then between its best and their neighbours.

    Returns
    -------
    gamma : float
        The best, 1/(2σ²).
    tried : list of (float, float)
        Every γ and its error, by width.
    """
    unit = resolve_gamma("scale", patches, "rbf", 0)
    errors = {width: error(unit / width**2) for width in _COARSE}
    best = min(errors, key=errors.__getitem__)
    errors |= {width: error(unit / width**2) for width in (best * step for step in _FINE)}
    best = min(errors, key=errors.__getitem__)
    return unit / best**2, [(unit / width**2, errors[width]) for width in sorted(errors)]


def hold_out(
    images: Sequence[Grey], size: tuple[int, int], factor: int, rng: np.random.RandomState
) -> tuple[list[Grey], list[Grey]]:
    """Images to learn from, and crops of others to be judged by.

    A single image serves as both. Crops are of three windows each way where there is room, and of
    sizes that the factor divides.
    """
    whole = [_multiple(image.shape, factor) for image in images]
    fit = [number for number, shape in enumerate(whole) if _holds(shape, size)]
    if not fit:
        rule = f"no image holds a window of {size[0]}×{size[1]} once cropped to multiples of factor"
        raise refuse("gamma", "auto", rule, "pass a number, or larger images")
    held = set(rng.permutation(fit)[: max(1, min(_HELD, len(images) // _ONE_IN))].tolist())
    learn = [image for number, image in enumerate(images) if number not in held]
    wanted = (-(-3 * size[0] // factor) * factor, -(-3 * size[1] // factor) * factor)
    # Where few images are held out, each gives several crops.
    crops = [
        _crop(images[number], (min(wanted[0], whole[number][0]), min(wanted[1], whole[number][1])),
              rng)
        for number in np.resize(sorted(held), _HELD)
    ]  # fmt: skip
    return learn or list(images), crops


def _multiple(shape: tuple[int, ...], factor: int) -> tuple[int, int]:
    return shape[0] // factor * factor, shape[1] // factor * factor


def _holds(shape: tuple[int, int], size: tuple[int, int]) -> bool:
    return shape[0] >= size[0] and shape[1] >= size[1]


def _crop(image: Grey, shape: tuple[int, int], rng: np.random.RandomState) -> Grey:
    top, left = (rng.randint(n - m + 1) for n, m in zip(image.shape, shape, strict=True))
    return image[top : top + shape[0], left : left + shape[1]]
