"""Which windows of an image share components."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans

from ikpca.applications.patches import PatchGrid
from ikpca.kernels import Floats

__all__ = ["Parts", "similar_windows", "sub_images"]

#: Indices of windows; together every window once.
Parts: TypeAlias = list[NDArray[np.intp]]


def sub_images(grid: PatchGrid, number: int) -> Parts:
    """Windows by place: the image cut ``number`` times in each direction (Günter 2006, 5.2).

    Examples
    --------
    >>> [part.tolist() for part in sub_images(PatchGrid((4, 4), 1), 2)][0]
    [0, 1, 4, 5]
    """
    places = np.arange(grid.n_patches).reshape(grid.places)
    rows = np.array_split(places, min(number, len(places)), axis=0)
    return [
        part.ravel()
        for strip in rows
        for part in np.array_split(strip, min(number, places.shape[1]), axis=1)
    ]


def similar_windows(rows: Floats, number: int, least: int, seed: int) -> Parts:
    """Windows by content: k-means, and groups below ``least`` join those that are nearest."""
    means = MiniBatchKMeans(number, n_init=3, batch_size=2048, random_state=seed)
    labels = means.fit_predict(rows)
    sizes = np.bincount(labels, minlength=number)
    large = np.flatnonzero(sizes >= min(least, sizes.max()))
    centres = means.cluster_centers_
    distances = np.square(centres[:, None] - centres[large]).sum(axis=2)
    joined = large[distances.argmin(axis=1)][labels]
    return [np.flatnonzero(joined == label) for label in large]
