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

#: How much the pixels of a window count where windows overlap.
Window = Literal["uniform", "smooth"]
#: No unit makes pixels as large.
_BRIGHTEST = 1e12


def image_array(image: ArrayLike) -> NDArray[Any]:
    """A grey image (height, width) or a colour image (height, width, channels) of numbers."""
    array = np.asarray(image)
    if array.dtype.kind not in "buif":
        raise InvalidInput(
            f"image is of type {array.dtype}: pixels are integers or floating-point numbers; "
            "convert it."
        )
    if array.ndim not in (2, 3) or array.size == 0:
        raise InvalidInput(
            f"image has shape {array.shape}: it must be (height, width) or (height, width, "
            "channels), and hold pixels; pass one image at a time."
        )
    largest = float(np.abs(array).max()) if array.dtype.kind == "f" else 0.0
    if _BRIGHTEST < largest < math.inf:
        raise InvalidInput(
            f"image holds pixels as large as {largest:.3g}: sums of their squares must not "
            f"overflow, and none may be above {_BRIGHTEST:g}; scale it."
        )
    return array


class PatchGrid:
    """Windows at regular places of an image, the last of each row and column at its border.

    Every pixel lies in some window, whatever the size of the image. The grid knows no pixels: the
    same one cuts a noisy image and puts the denoised windows together.

    Parameters
    ----------
    shape : tuple of int
        Of the image: (height, width) or (height, width, channels).
    size : int or (int, int)
        Height and width of a window.
    stride : int or (int, int), default=1
        Rows and columns from a window to the next; no more than the size, or pixels would be left
        out.

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
            raise invalid_parameter("size", size, rule, "choose smaller windows")
        if any(step > part for step, part in zip(self.stride, self.size, strict=True)):
            rule = f"windows of {self.size[0]}×{self.size[1]} pixels would leave pixels out"
            raise invalid_parameter("stride", stride, rule, "choose a stride within the size")
        self._tops, self._lefts = map(_starts, self.shape, self.size, self.stride)

    @property
    def places(self) -> tuple[int, int]:
        """How many windows there are down, and across."""
        return len(self._tops), len(self._lefts)

    @property
    def n_patches(self) -> int:
        """How many windows there are."""
        return len(self._tops) * len(self._lefts)

    @property
    def patch_shape(self) -> tuple[int, ...]:
        """Height, width and, for colour, channels of a window."""
        return (*self.size, *self.shape[2:])

    def extract(self, image: ArrayLike) -> NDArray[Any]:
        """Copy the windows out of an image.

        Parameters
        ----------
        image : array-like of the grid's shape

        Returns
        -------
        ndarray of shape (n_patches, pixels of a window)
            One window per row, in the type of the image; ``reshape(patch_shape)`` shows one.
        """
        array = image_array(image)
        if array.shape != self.shape:
            raise InvalidInput(
                f"image has shape {array.shape}: the grid is for {self.shape}; make one for this "
                "image."
            )
        windows = np.lib.stride_tricks.sliding_window_view(array, self.size, axis=(0, 1))
        chosen = windows[np.ix_(self._tops, self._lefts)]
        if array.ndim == 3:
            chosen = np.moveaxis(chosen, 2, -1)
        return chosen.reshape(self.n_patches, -1)

    def assemble(
        self, patches: ArrayLike, *, window: Window = "uniform", weights: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Put windows back where they came from; where they overlap, average.

        Parameters
        ----------
        patches : array-like of shape (n_patches, pixels of a window)
        window : {"uniform", "smooth"}, default="uniform"
            Whether all pixels of a window count alike, or those at its centre more, which hides its
            border.
        weights : array-like of shape (n_patches,), optional
            How much each window counts; positive.

        Returns
        -------
        ndarray of the grid's shape
            In the type of the patches; averages of integers are rounded.
        """
        rows = self._checked_rows(patches)
        trust = self._checked_weights(weights)
        within = _window(window, self.size)
        # Grey is a single channel here, so that both kinds take one road.
        blocks = rows.reshape(*trust.shape, *self.size, -1)
        total, weight = np.zeros((*self.shape[:2], blocks.shape[-1])), np.zeros(self.shape[:2])
        for i, j in np.ndindex(*self.size):
            # For one pixel of the window, no two windows meet: adding in place is safe.
            here = np.ix_(self._tops + i, self._lefts + j)
            share = within[i, j] * trust
            weight[here] += share
            total[here] += share[..., None] * blocks[:, :, i, j]
        image = (total / weight[..., None]).reshape(self.shape)
        return (np.rint(image) if rows.dtype.kind in "bui" else image).astype(rows.dtype)

    def _checked_rows(self, patches: ArrayLike) -> NDArray[Any]:
        rows = np.asarray(patches)
        expected = (self.n_patches, math.prod(self.patch_shape))
        if rows.shape != expected or rows.dtype.kind not in "buif":
            raise InvalidInput(
                f"patches have shape {rows.shape} and type {rows.dtype}: the grid has windows of "
                f"shape {expected}, of numbers; pass as many rows as extract returned."
            )
        return rows

    def _checked_weights(self, weights: ArrayLike | None) -> NDArray[np.float64]:
        if weights is None:
            return np.ones(self.places)
        array = np.asarray(weights, dtype=np.float64)
        if array.shape != (self.n_patches,) or not (np.isfinite(array) & (array > 0)).all():
            raise InvalidInput(
                f"weights have shape {array.shape}: there must be {self.n_patches} positive finite "
                "numbers; pass one per window, or None."
            )
        return array.reshape(self.places)


def _pair(name: str, value: object) -> tuple[int, int]:
    """One positive integer for both directions, or two of them."""
    pair: Any = value if isinstance(value, tuple | list) else (value, value)
    integers = all(isinstance(part, Integral) and not isinstance(part, bool) for part in pair)
    if len(pair) != 2 or not integers or min(pair) < 1:
        raise invalid_parameter(
            name, value, "must be a positive integer, or two", "pass 8, or (8, 8)"
        )
    return int(pair[0]), int(pair[1])


def _starts(length: int, size: int, stride: int) -> NDArray[np.intp]:
    """Regular places, and one more at the border where they do not reach it."""
    starts = np.arange(0, length - size + 1, stride)
    border = length - size
    return starts if starts[-1] == border else np.append(starts, border)


def _window(name: str, size: tuple[int, int]) -> NDArray[np.float64]:
    """Weights within a window, positive everywhere; smooth: a raised cosine in each direction."""
    if name == "uniform":
        return np.ones(size)
    if name != "smooth":
        raise invalid_parameter("window", name, "is unknown", "choose 'uniform' or 'smooth'")
    height, width = (np.sin(np.pi * (np.arange(n) + 0.5) / n) ** 2 for n in size)
    return np.outer(height, width)


Grey = NDArray[np.float64]


def grey_image(image: Any, name: str = "image") -> Grey:
    """A grey image of finite numbers, as a new array or the one given."""
    try:
        array = image_array(image)
    except InvalidInput as refused:
        raise InvalidInput(str(refused).replace("image", name, 1)) from None
    except ValueError:
        raise InvalidInput(
            f"{name} has rows of unequal length: pixels form a rectangle; pad or crop them."
        ) from None
    if array.ndim != 2:
        raise InvalidInput(
            f"{name} has shape {array.shape}: it must be grey, (height, width); pass its "
            "brightness, or each channel by itself."
        )
    grey = array.astype(np.float64, copy=False)
    if not np.isfinite(grey).all():
        raise InvalidInput(f"{name} holds NaN or infinite pixels: fill them in first.")
    return grey


def is_one_image(images: Any) -> bool:
    """Whether this is a single image: an array of two axes, or rows of numbers."""
    if isinstance(images, list | tuple):
        return len(images) > 0 and all(np.ndim(row) < 2 for row in images)
    return np.ndim(images) < 3


def grey_images(images: Any) -> list[Grey]:
    """A list of grey images; one array of three axes is a stack of them."""
    if not isinstance(images, list | tuple | np.ndarray) or is_one_image(images):
        shape = np.shape(images) if isinstance(images, np.ndarray) else type(images).__name__
        raise InvalidInput(
            f"images are {shape}: a list of grey images or a stack (number, height, width) is "
            "needed; pass [image] for a single one."
        )
    if len(images) == 0:
        raise InvalidInput("images are empty: there is nothing to learn from; pass at least one.")
    return [grey_image(image, f"images[{number}]") for number, image in enumerate(images)]


def count_places(images: Sequence[Grey], size: tuple[int, int]) -> int:
    """How many different windows there are."""
    height, width = size
    return sum((len(image) - height + 1) * (image.shape[1] - width + 1) for image in images)


def draw_patches(
    images: Sequence[Grey], size: tuple[int, int], number: int, rng: np.random.RandomState
) -> Grey:
    """Windows at different random places, every place of every image as likely; one per row.

    Parameters
    ----------
    images : sequence of grey images
        At least as large as a window.
    size : (int, int)
    number : int
        Where there are no more places than this, all are taken.
    rng : RandomState
    """
    views = [np.lib.stride_tricks.sliding_window_view(image, size) for image in images]
    ends = np.cumsum([count_places([image], size) for image in images])
    total = int(ends[-1])
    chosen = np.sort(sample_without_replacement(total, min(number, total), random_state=rng))
    owners = np.searchsorted(ends, chosen, side="right")
    starts = np.concatenate([[0], ends[:-1]])
    rows = []
    for owner, view in enumerate(views):
        places = np.unravel_index(chosen[owners == owner] - starts[owner], view.shape[:2])
        rows.append(view[places].reshape(-1, size[0] * size[1]))
    return np.vstack(rows)
