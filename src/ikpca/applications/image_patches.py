"""Patches of images: extraction, averaging, sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.random import sample_without_replacement

from ikpca.errors import InvalidInput, invalid_parameter

#: Weights of the pixels of a window where windows overlap.
Window = Literal["uniform", "smooth"]
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
        Rows and columns between neighbouring windows; at most the size.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.applications import PatchGrid
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

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Number of windows in the vertical and the horizontal direction."""
        return len(self._tops), len(self._lefts)

    @property
    def n_patches(self) -> int:
        """Number of windows."""
        return len(self._tops) * len(self._lefts)

    @property
    def patch_shape(self) -> tuple[int, ...]:
        """Height, width and, for colour images, channels of a window."""
        return (*self.size, *self.shape[2:])

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

    def assemble(
        self, patches: ArrayLike, *, window: Window = "uniform", weights: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Assemble an image from windows, averaged where they overlap.

        Parameters
        ----------
        patches : array-like of shape (n_patches, pixels of a window)
        window : {"uniform", "smooth"}, default="uniform"
            "uniform": equal weights within a window. "smooth": larger weights at its centre, which
            hides its border.
        weights : array-like of shape (n_patches,), optional
            Positive weight of each window.

        Returns
        -------
        ndarray of the grid's shape
            In the type of the patches; averages of integers are rounded.
        """
        rows = self._checked_rows(patches)
        patch_weights = self._checked_weights(weights)
        window_weights = _window(window, self.size)
        # A grey image is treated as one with a single channel.
        blocks = rows.reshape(*patch_weights.shape, *self.size, -1)
        total, weight = np.zeros((*self.shape[:2], blocks.shape[-1])), np.zeros(self.shape[:2])
        for i, j in np.ndindex(*self.size):
            # Targets of one pixel of all windows are distinct, so in-place addition is safe.
            here = np.ix_(self._tops + i, self._lefts + j)
            share = window_weights[i, j] * patch_weights
            weight[here] += share
            total[here] += share[..., None] * blocks[:, :, i, j]
        image = (total / weight[..., None]).reshape(self.shape)
        return (np.rint(image) if rows.dtype.kind in "bui" else image).astype(rows.dtype)

    def _checked_rows(self, patches: ArrayLike) -> NDArray[Any]:
        rows = np.asarray(patches)
        expected = (self.n_patches, math.prod(self.patch_shape))
        if rows.shape != expected or rows.dtype.kind not in "buif":
            raise InvalidInput(
                f"patches have shape {rows.shape} and type {rows.dtype}: they must be numbers of "
                f"shape {expected}; pass as many rows as extract returned."
            )
        return rows

    def _checked_weights(self, weights: ArrayLike | None) -> NDArray[np.float64]:
        if weights is None:
            return np.ones(self.grid_shape)
        array = np.asarray(weights, dtype=np.float64)
        if array.shape != (self.n_patches,) or not (np.isfinite(array) & (array > 0)).all():
            raise InvalidInput(
                f"weights have shape {array.shape}: there must be {self.n_patches} positive finite "
                "numbers; pass one per window, or None."
            )
        return array.reshape(self.grid_shape)


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
    starts = np.arange(0, length - size + 1, stride)
    border = length - size
    return starts if starts[-1] == border else np.append(starts, border)


def _window(name: str, size: tuple[int, int]) -> NDArray[np.float64]:
    """Return positive weights within a window; smooth: a raised cosine in each direction."""
    if name == "uniform":
        return np.ones(size)
    if name != "smooth":
        raise invalid_parameter("window", name, "is unknown", "choose 'uniform' or 'smooth'")
    height, width = (np.sin(np.pi * (np.arange(n) + 0.5) / n) ** 2 for n in size)
    return np.outer(height, width)


def image_array(image: ArrayLike) -> NDArray[Any]:
    """Return a grey image (height, width) or a colour image (height, width, channels)."""
    array = np.asarray(image)
    if array.dtype.kind not in "buif":
        raise InvalidInput(
            f"image is of type {array.dtype}: pixels are integers or floating-point numbers; "
            "convert it."
        )
    if array.ndim not in (2, 3) or array.size == 0:
        raise InvalidInput(
            f"image has shape {array.shape}: it must be (height, width) or (height, width, "
            "channels) and not empty; pass one image at a time."
        )
    largest = float(np.abs(array).max()) if array.dtype.kind == "f" else 0.0
    if _MAX_PIXEL < largest < math.inf:
        raise InvalidInput(
            f"image has pixels as large as {largest:.3g}: they must not exceed {_MAX_PIXEL:g}, as "
            "sums of squares would overflow; scale it."
        )
    return array


def as_gray_image(image: Any, name: str = "image") -> GrayImage:
    """Validate a grey image of finite numbers; copy it only if its type changes."""
    try:
        array = image_array(image)
    except InvalidInput as error:
        raise InvalidInput(str(error).replace("image", name, 1)) from None
    except ValueError:
        raise InvalidInput(
            f"{name} has rows of unequal length: they must have equal length; pad or crop them."
        ) from None
    if array.ndim != 2:
        raise InvalidInput(
            f"{name} has shape {array.shape}: it must be grey, (height, width); pass its "
            "brightness, or each channel by itself."
        )
    pixels = array.astype(np.float64, copy=False)
    if not np.isfinite(pixels).all():
        raise InvalidInput(f"{name} contains NaN or infinite pixels: replace them.")
    return pixels


def as_gray_images(images: Any) -> list[GrayImage]:
    """Validate a list of grey images or a three-dimensional stack of them."""
    if not isinstance(images, list | tuple | np.ndarray) or is_one_image(images):
        shape = np.shape(images) if isinstance(images, np.ndarray) else type(images).__name__
        raise InvalidInput(
            f"images are {shape}: they must be a list of grey images or a stack (number, height, "
            "width); pass [image] for a single one."
        )
    if len(images) == 0:
        raise InvalidInput("images are empty: at least one is needed; pass more images.")
    return [as_gray_image(image, f"images[{number}]") for number, image in enumerate(images)]


def is_one_image(images: Any) -> bool:
    """Return True for a single image: an array of two axes, or a list of rows."""
    if isinstance(images, list | tuple):
        return len(images) > 0 and all(np.ndim(row) < 2 for row in images)
    return np.ndim(images) < 3


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
    images : sequence of grey images
        At least as large as a window.
    size : (int, int)
        Height and width of a window.
    number : int
        Number of windows; all windows if there are no more.
    rng : RandomState
    """
    views = [np.lib.stride_tricks.sliding_window_view(image, size) for image in images]
    ends = np.cumsum([count_windows([image], size) for image in images])
    total = int(ends[-1])
    chosen = np.sort(sample_without_replacement(total, min(number, total), random_state=rng))
    owners = np.searchsorted(ends, chosen, side="right")
    starts = np.concatenate([[0], ends[:-1]])
    rows = []
    for owner, view in enumerate(views):
        places = np.unravel_index(chosen[owners == owner] - starts[owner], view.shape[:2])
        rows.append(view[places].reshape(-1, size[0] * size[1]))
    return np.vstack(rows)
