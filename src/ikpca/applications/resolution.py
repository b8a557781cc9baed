"""Fewer pixels, and more of them: how images lose resolution, and how it is faked."""

from __future__ import annotations

from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from ikpca.applications.patches import image_array
from ikpca.errors import InvalidInput, refuse

__all__ = ["ENLARGEMENTS", "Enlargement", "box_mean", "check_factor", "enlarge", "make_consistent"]

#: How pixels are filled in before anything has been learned.
Enlargement = Literal["nearest", "bilinear", "bicubic"]
ENLARGEMENTS: tuple[Enlargement, ...] = ("nearest", "bilinear", "bicubic")
_ORDERS = {"bilinear": 1, "bicubic": 3}


def box_mean(image: ArrayLike, factor: int) -> NDArray[np.float64]:
    """Shrink an image: each factor×factor square becomes one pixel, its mean.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, channels)
    factor : int
        Must divide height and width.

    Returns
    -------
    ndarray of shape (height / factor, width / factor[, channels])

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.applications import box_mean
    >>> box_mean(np.arange(8.0).reshape(2, 4), 2)
    array([[2.5, 4.5]])
    """
    check_factor(factor)
    array = image_array(image)
    height, width, *channels = array.shape
    if height % factor or width % factor:
        raise InvalidInput(
            f"image of {height}×{width} pixels: factor={factor} does not divide its height and "
            "width; crop it to a multiple."
        )
    squares = array.reshape(height // factor, factor, width // factor, factor, *channels)
    return squares.mean(axis=(1, 3), dtype=np.float64)


def enlarge(image: ArrayLike, factor: int, method: Enlargement = "nearest") -> NDArray[np.float64]:
    """Blow an image up, without any knowledge of what images are like.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, channels)
    factor : int
    method : {"nearest", "bilinear", "bicubic"}, default="nearest"
        "nearest": each pixel becomes a factor×factor square, as in Kim 2003; ``box_mean`` is its
        exact inverse. The others interpolate between the centres of the pixels.

    Returns
    -------
    ndarray of shape (factor · height, factor · width[, channels])

    Examples
    --------
    >>> from ikpca.applications import enlarge
    >>> enlarge([[1, 2]], 2)
    array([[1., 1., 2., 2.],
           [1., 1., 2., 2.]])
    """
    check_factor(factor)
    array = image_array(image).astype(np.float64)
    if method == "nearest":
        return array.repeat(factor, axis=0).repeat(factor, axis=1)
    if method not in _ORDERS:
        raise refuse("method", method, "is unknown", f"choose one of {', '.join(ENLARGEMENTS)}")
    zooms = (factor, factor, *(1 for _ in array.shape[2:]))
    return ndimage.zoom(array, zooms, order=_ORDERS[method], mode="nearest", grid_mode=True)


def make_consistent(large: ArrayLike, low: ArrayLike) -> NDArray[np.float64]:
    """Add to an enlarged image what it lacks to be the given one when shrunk again.

    Parameters
    ----------
    large : array-like of shape (factor · height, factor · width[, channels])
    low : array-like of shape (height, width[, channels])

    Returns
    -------
    ndarray of the shape of ``large``
        The nearest image whose ``box_mean`` is ``low``.

    Examples
    --------
    >>> from ikpca.applications import box_mean, make_consistent
    >>> box_mean(make_consistent([[0, 1], [2, 3]], [[7]]), 2)
    array([[7.]])
    """
    image, seen = image_array(large).astype(np.float64), image_array(low)
    factor = image.shape[0] // seen.shape[0]
    if image.shape != (factor * seen.shape[0], factor * seen.shape[1], *seen.shape[2:]):
        raise InvalidInput(
            f"large has shape {image.shape} and low {seen.shape}: one must be a multiple of the "
            "other, the same in both directions; pass an image and its enlargement."
        )
    return image + enlarge(seen - box_mean(image, factor), factor)


def check_factor(factor: object) -> None:
    """Refuse what is no magnification."""
    if isinstance(factor, bool) or not isinstance(factor, Integral) or factor < 1:
        raise refuse("factor", factor, "must be a positive integer", "pass 2, 3 or 4")
