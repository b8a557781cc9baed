"""Photographs of scikit-learn as grayscale images and patches."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ikpca.errors import invalid_parameter
from ikpca.kernels import Floats

PHOTOGRAPHS = ("china", "flower")
#: Weights of red, green and blue (ITU-R BT.601).
_LUMA = (0.299 / 255, 0.587 / 255, 0.114 / 255)


def photograph(name: str) -> Floats:
    """Load a photograph in grayscale: 427 rows, 640 columns, pixels from 0 to 1.

    Parameters
    ----------
    name : {"china", "flower"}

    Returns
    -------
    ndarray of shape (427, 640)

    See Also
    --------
    sklearn.datasets.load_sample_image : In color.

    Examples
    --------
    >>> from ikpca_papers.data import photograph
    >>> photograph("china").shape
    (427, 640)
    """
    if name not in PHOTOGRAPHS:
        raise invalid_parameter("name", name, "must be 'china' or 'flower'", "pass one of them")
    from sklearn.datasets import load_sample_image

    colors = np.moveaxis(load_sample_image(f"{name}.jpg"), 2, 0)
    red, green, blue = (weight * one for weight, one in zip(_LUMA, colors, strict=True))
    # Not by BLAS, whose order of summation depends on its threads.
    gray: Floats = red + green + blue
    return gray


def square_photograph(name: str = "flower", size: int = 256) -> Floats:
    """Crop the central square of a photograph, and reduce it by averaging areas.

    Parameters
    ----------
    name : {"china", "flower"}, default="flower"
    size : int, default=256
        Rows and columns; at most 427.

    Returns
    -------
    ndarray of shape (size, size)

    Examples
    --------
    >>> from ikpca_papers.data import square_photograph
    >>> square_photograph().shape
    (256, 256)
    """
    image = photograph(name)
    rows, columns = image.shape
    if not 1 <= size <= rows:
        raise invalid_parameter("size", size, f"must be from 1 to {rows}", "pass 256")
    left = (columns - rows) // 2
    means = _area_means(rows, size)
    half = means @ image[:, left : left + rows]
    square: Floats = (means @ half.T).T
    return np.ascontiguousarray(square)


def photograph_patches(
    name: str = "china", n: int = 40_000, *, size: int = 14, random_state: int = 0
) -> Floats:
    """Draw distinct square patches of a photograph at random positions, one per row.

    Parameters
    ----------
    name : {"china", "flower"}, default="china"
    n : int, default=40000
        A longer draw starts with a shorter one.
    size : int, default=14
        Rows and columns of a patch.
    random_state : int, default=0

    Returns
    -------
    array of shape (n, size²), float32
        Pixels from 0 to 1.

    Examples
    --------
    >>> from ikpca_papers.data import photograph_patches
    >>> photograph_patches(n=100).shape
    (100, 196)
    """
    image = photograph(name).astype(np.float32)
    if not 1 <= size <= min(image.shape):
        raise invalid_parameter("size", size, f"must be from 1 to {min(image.shape)}", "pass 14")
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size))
    places = windows.shape[0] * windows.shape[1]
    if not 1 <= n <= places:
        raise invalid_parameter(
            "n", n, f"must be from 1 to {places}, the number of patches", "pass fewer"
        )
    chosen = np.random.default_rng(random_state).permutation(places)[:n]
    return windows[np.unravel_index(chosen, windows.shape[:2])].reshape(n, -1)


def _area_means(many: int, few: int) -> csr_array:
    """Return the matrix that averages ``many`` pixels over ``few`` equal intervals."""
    edges = np.arange(few + 1) * (many / few)
    # Share of every pixel left of every edge.
    left = np.clip(edges[:, None] - np.arange(many), 0, 1)
    return csr_array(np.diff(left, axis=0) * (few / many))
