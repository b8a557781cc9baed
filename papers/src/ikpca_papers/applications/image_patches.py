"""Patches of images: extraction, averaging, sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.random import sample_without_replacement

from ikpca.errors import InvalidInput, invalid_parameter

GrayImage = NDArray[np.float64]
#: Largest pixel value; sums of squares must not overflow.
_MAX_PIXEL = 1e12


class PatchGrid:
    """Regular grid of windows of an image; the last of each row and column lie at its border.

    Every pixel lies in at least one window. The grid holds no pixels: it extracts windows from one
    image and assembles another image from processed windows.

    Parameters
    ----------
    shape : tuple of int
        Shape of the image: (height, width) or (height, width, channels).
    size : int or (int, int)
        Height and width of a window.
    stride : int or (int, int), default=1
        Rows and columns between neighboring windows; at most the size.

    Attributes
    ----------
    grid_shape : (int, int)
        Number of windows in the vertical and the horizontal direction.
    n_patches : int
        Number of windows.
    patch_shape : tuple of int
        Height, width and, for color images, channels of a window.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca_papers.applications import PatchGrid
    >>> image = np.arange(20.0).reshape(4, 5)
    >>> grid = PatchGrid(image.shape, size=(2, 3), stride=2)
    >>> patches = grid.extract(image)
    >>> patches.shape
    (4, 6)
    >>> patches[1].reshape(2, 3)
    array([[2., 3., 4.],
           [7., 8., 9.]])
    >>> np.array_equal(grid.assemble(patches), image)
    True
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
    ) -> None:
        if len(shape) not in (2, 3) or min(shape) < 1:
            rule = "must be (height, width) or (height, width, channels) of at least one pixel"
            raise invalid_parameter("shape", shape, rule, "pass image.shape")
        self.shape = tuple(int(length) for length in shape)
        self.size, self.stride = _pair("size", size), _pair("stride", stride)
        if any(part > length for part, length in zip(self.size, shape, strict=False)):
            rule = f"is larger than the image of {shape[0]}×{shape[1]} pixels"
            raise invalid_parameter("size", size, rule, "pass a smaller size")
        if any(step > part for step, part in zip(self.stride, self.size, strict=True)):
            rule = f"is larger than the windows of {self.size[0]}×{self.size[1]} pixels"
            raise invalid_parameter("stride", stride, rule, "pass a stride within the size")
        self._tops, self._lefts = map(_starts, self.shape, self.size, self.stride)
        self.grid_shape = len(self._tops), len(self._lefts)
        self.n_patches = len(self._tops) * len(self._lefts)
        self.patch_shape = (*self.size, *self.shape[2:])

    def extract(self, image: ArrayLike) -> NDArray[Any]:
        """Extract the windows of an image.

        Parameters
        ----------
        image : array-like of the grid's shape

        Returns
        -------
        ndarray of shape (n_patches, pixels of a window)
            One window per row, in the type of the image; ``reshape(patch_shape)`` restores one.
        """
        array = image_array(image)
        if array.shape != self.shape:
            raise InvalidInput(
                f"image has shape {array.shape}: the grid has shape {self.shape}; create a grid "
                "for this image."
            )
        windows = np.lib.stride_tricks.sliding_window_view(array, self.size, axis=(0, 1))
        chosen = windows[np.ix_(self._tops, self._lefts)]
        if array.ndim == 3:
            chosen = np.moveaxis(chosen, 2, -1)
        return chosen.reshape(self.n_patches, -1)

    def assemble(self, patches: ArrayLike) -> NDArray[Any]:
        """Assemble an image from windows, averaged where they overlap.

        Parameters
        ----------
        patches : array-like of shape (n_patches, pixels of a window)

        Returns
        -------
        ndarray of the grid's shape
            In the type of the patches; averages of integers are rounded.
        """
        rows = np.asarray(patches)
        expected = (self.n_patches, math.prod(self.patch_shape))
        if rows.shape != expected or rows.dtype.kind not in "buif":
            raise InvalidInput(
                f"patches have shape {rows.shape} and type {rows.dtype}: they must be numbers of "
                f"shape {expected}; pass as many rows as extract returned."
            )
        # A grayscale image is treated as one with a single channel.
        blocks = rows.reshape(*self.grid_shape, *self.size, -1)
        total, count = np.zeros((*self.shape[:2], blocks.shape[-1])), np.zeros(self.shape[:2])
        for i, j in np.ndindex(*self.size):
            # Targets of one pixel of all windows are distinct, so in-place addition is safe.
            here = np.ix_(self._tops + i, self._lefts + j)
            count[here] += 1
            total[here] += blocks[:, :, i, j]
        image = (total / count[..., None]).reshape(self.shape)
        return (np.rint(image) if rows.dtype.kind in "bui" else image).astype(rows.dtype)


def _pair(name: str, value: object) -> tuple[int, int]:
    """Return height and width from one positive integer or two."""
    pair: Any = value if isinstance(value, tuple | list) else (value, value)
    integers = all(isinstance(part, Integral) and not isinstance(part, bool) for part in pair)
    if len(pair) != 2 or not integers or min(pair) < 1:
        raise invalid_parameter(
            name, value, "must be a positive integer, or two", "pass 8, or (8, 8)"
        )
    return int(pair[0]), int(pair[1])


def _starts(length: int, size: int, stride: int) -> NDArray[np.intp]:
    """Return regular positions, and one more at the border if they do not reach it."""
    return np.unique(np.append(np.arange(0, length - size + 1, stride), length - size))


def image_array(image: object, name: str = "image") -> NDArray[Any]:
    """Validate a grayscale image (height, width) or a color image (height, width, channels)."""
    try:
        array = np.asarray(image)
    except ValueError:
        raise InvalidInput(
            f"{name} has rows of unequal length: they must have equal length; pad or crop them."
        ) from None
    if array.dtype.kind not in "buif":
        raise InvalidInput(
            f"{name} is of type {array.dtype}: pixels are integers or floating-point numbers; "
            "convert it."
        )
    if array.ndim not in (2, 3) or array.size == 0:
        raise InvalidInput(
            f"{name} has shape {array.shape}: it must be (height, width) or (height, width, "
            "channels) and not empty; pass one image at a time."
        )
    largest = float(np.abs(array).max()) if array.dtype.kind == "f" else 0.0
    if _MAX_PIXEL < largest < math.inf:
        raise InvalidInput(
            f"{name} has pixels as large as {largest:.3g}: they must not exceed {_MAX_PIXEL:g}, as "
            "sums of squares would overflow; scale it."
        )
    return array


def finite_image(image: object, name: str = "image") -> NDArray[Any]:
    """Validate an image of finite numbers."""
    array = image_array(image, name)
    if not np.isfinite(array).all():
        raise InvalidInput(f"{name} contains NaN or infinite pixels: replace them.")
    return array


def as_gray_images(images: ArrayLike | Sequence[ArrayLike]) -> list[GrayImage]:
    """Validate a list of grayscale images or a three-dimensional stack of them."""
    if not isinstance(images, list | tuple | np.ndarray) or is_one_image(images):
        shape = np.shape(images) if isinstance(images, np.ndarray) else type(images).__name__
        raise InvalidInput(
            f"images are {shape}: they must be a list of grayscale images or a stack (number, "
            "height, width); pass [image] for a single one."
        )
    if len(images) == 0:
        raise InvalidInput("images are empty: at least one is needed; pass more images.")
    return [as_gray_image(image, f"images[{number}]") for number, image in enumerate(images)]


def is_one_image(images: object) -> bool:
    """Return True for a single image: an array of two axes, or a list of rows."""
    if isinstance(images, list | tuple):
        return len(images) > 0 and all(np.ndim(row) < 2 for row in images)
    return np.asarray(images).ndim < 3


def as_gray_image(image: object, name: str = "image") -> GrayImage:
    """Validate a grayscale image of finite numbers; copy it only if its type changes."""
    array = finite_image(image, name)
    if array.ndim != 2:
        raise InvalidInput(
            f"{name} has shape {array.shape}: it must be grayscale, (height, width); pass its "
            "brightness, or each channel by itself."
        )
    return array.astype(np.float64, copy=False)


def count_windows(images: Sequence[GrayImage], size: tuple[int, int]) -> int:
    """Return the number of different windows."""
    height, width = size
    return sum((len(image) - height + 1) * (image.shape[1] - width + 1) for image in images)


def draw_patches(
    images: Sequence[GrayImage], size: tuple[int, int], number: int, rng: np.random.RandomState
) -> GrayImage:
    """Draw distinct windows uniformly from all positions of all images, one per row.

    Parameters
    ----------
    images : sequence of gray images
        At least as large as a window.
    size : (int, int)
        Height and width of a window.
    number : int
        Number of windows; all windows if there are no more.
    rng : RandomState
    """
    ends = np.cumsum([count_windows([image], size) for image in images])
    total = int(ends[-1])
    chosen = np.sort(sample_without_replacement(total, min(number, total), random_state=rng))
    rows = []
    for image, end in zip(images, ends, strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(image, size)
        places = chosen[chosen < end] - end + math.prod(windows.shape[:2])
        places = np.unravel_index(places[places >= 0], windows.shape[:2])
        rows.append(windows[places].reshape(-1, math.prod(size)))
    return np.vstack(rows)
