"""Grey images of many sizes: checked, and patches drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.random import sample_without_replacement

from ikpca.applications.patches import image_array
from ikpca.errors import InvalidInput

__all__ = ["Grey", "count_places", "draw_patches", "grey_image", "grey_images", "is_one_image"]

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
