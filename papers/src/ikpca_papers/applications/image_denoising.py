"""Image denoising by kernel components of windows (Günter 2006, section 5.2; Kim 2003)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin

from ikpca import KernelPCA
from ikpca.errors import Choice, InvalidInput, Number, RankWarning, invalid_parameter
from ikpca.kernels import Floats
from ikpca.preimages import FixedPoint
from ikpca_papers.applications.image_patches import PatchGrid, finite_image

Scheme = Literal["groups", "sub-images", "single"]
#: Median of |x| for a standard normal x.
_NORMAL_MEDIAN = 0.674489750196082
#: Default windows per group of similar windows, and pixels per side of a sub-image.
_WINDOWS_PER_GROUP, _SUB_IMAGE_SIDE = 1600, 128
#: Maximum number of components, and σ² divided by the variance of the windows: distances between
#: windows include their noise, which a narrow kernel would model.
_MAX_COMPONENTS, _WIDTH_FACTOR = 64, 32
#: Number of windows to which noise is added to measure its effect on the projections.
_NOISE_PROBES = 1000


def denoise_image(
    image: ArrayLike,
    *,
    noise: float | None = None,
    scheme: Scheme = "groups",
    n_parts: int | None = None,
    size: int | tuple[int, int] = 9,
    stride: int | tuple[int, int] = 2,
    pca: KernelPCA | None = None,
    shrink: bool = True,
    n_training: int | None = 1000,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[Any]:
    """Remove Gaussian noise from a grayscale or color image.

    The image is divided into windows, and the windows into parts. The windows of a part are
    projected on common kernel components, and the image is assembled from the pre-images, averaged
    where they overlap. Grouping similar windows and shrinking projections by their noise improve
    the result most; with both, a linear kernel is as good as the Gaussian.

    Parameters
    ----------
    image : array-like of shape (height, width), (height, width, 1) or (height, width, 3)
        Of any floating-point or integer type, in any unit, without alpha channel.
    noise : float, optional
        Standard deviation of the noise in the unit of the pixels (25.5 for a tenth of the range of
        bytes); estimated from the image by default.
    scheme : {"groups", "sub-images", "single"}, default="groups"
        Parts with common components. "groups": similar windows at any position. "sub-images":
        windows of one region (the multipatch scheme of the paper). "single": all windows.
    n_parts : int, optional
        Number of groups, or of sub-images per side; by default about 1,600 windows per group and
        128 pixels per side.
    size, stride : int or (int, int), default=9 and 2
        Size and stride of the windows, as in :class:`PatchGrid`.
    pca : KernelPCA, optional
        Model that is fitted to every part. By default up to 64 components of a Gaussian kernel
        that is wide compared with the distances between windows.
    shrink : bool, default=True
        If True, shrink each projection by the fraction of its variance that is noise, measured by
        adding noise. If False, only project, as in the papers; the number of components is then
        critical.
    n_training : int, optional
        Number of windows of a part that the model is fitted to; None: all of them.
    random_state : int, default=0
        Seed of the groups, the training windows and the added noise.
    progress : callable, optional
        Called after every part with the number of finished windows and the total; with "groups",
        every window counts twice.

    Returns
    -------
    ndarray of the shape and type of the image
        Integers are rounded and clipped to the range of their type. A constant image, or one
        without noise, is returned unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca_papers.applications import denoise_image
    >>> from ikpca.metrics import signal_to_noise_ratio
    >>> clean = np.add.outer(np.sin(np.arange(64) / 6), np.cos(np.arange(64) / 4))
    >>> noisy = clean + np.random.default_rng(0).normal(scale=0.5, size=clean.shape)
    >>> denoised = denoise_image(noisy)
    >>> gain = signal_to_noise_ratio(clean, denoised) - signal_to_noise_ratio(clean, noisy)
    >>> bool(gain > 10)
    True
    """
    pixels = _validate(image, noise, scheme, n_parts, n_training, pca)
    grid = PatchGrid(pixels.shape, size, stride)
    if grid.n_patches < 2:
        raise invalid_parameter("size", size, "the image is a single window", "pass a smaller size")
    level = estimate_noise(pixels) if noise is None else float(noise)
    if level == 0 or pixels.min() == pixels.max():
        return np.array(image)
    windows = grid.extract(pixels)
    total = (2 if scheme == "groups" else 1) * len(windows)
    n_done = 0

    def denoise(parts: list[NDArray[np.intp]]) -> Floats:
        nonlocal n_done
        denoised = np.empty_like(windows)
        rng = np.random.default_rng(random_state)
        for part in parts:
            denoised[part] = _denoise_part(
                windows[part], level if shrink else None, pca, n_training, rng
            )
            n_done += len(part)
            if progress is not None:
                progress(n_done, total)
        return grid.assemble(denoised)

    if scheme == "sub-images":
        result = denoise(_sub_images(grid, n_parts))
    else:
        result = denoise([np.arange(len(windows))])
    if scheme == "groups":
        # Windows are similar if their first results are.
        result = denoise(_similar_windows(grid.extract(result), n_parts, random_state))
    return _cast_pixels(result, np.asarray(image).dtype)


def estimate_noise(image: ArrayLike) -> float:
    """Estimate the standard deviation of the noise of an image, in the unit of its pixels.

    Second differences in both directions cancel everything that is linear across three pixels and
    leave mostly noise; the median is robust to the remaining edges.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, channels)
        At least three pixels in each direction. Channels are assumed to be equally noisy.

    Returns
    -------
    float
        Zero if most of the image has no noise.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca_papers.applications import estimate_noise
    >>> ramp = np.add.outer(np.linspace(0, 1, 200), np.linspace(0, 1, 200))
    >>> noisy = ramp + np.random.default_rng(0).normal(scale=0.1, size=ramp.shape)
    >>> round(estimate_noise(noisy), 2)
    0.1
    """
    array = finite_image(image).astype(np.float64)
    if min(array.shape[:2]) < 3:
        raise InvalidInput(
            f"image has shape {array.shape}: noise is estimated from three pixels in each "
            "direction; pass noise, its standard deviation."
        )
    differences = np.diff(np.diff(array, 2, axis=0), 2, axis=1)
    # The squares of the weights (1, −2, 1) ⊗ (1, −2, 1) sum to 36.
    return float(np.median(np.abs(differences)) / (6 * _NORMAL_MEDIAN))


def _validate(
    image: ArrayLike,
    noise: float | None,
    scheme: Scheme,
    n_parts: int | None,
    n_training: int | None,
    pca: KernelPCA | None,
) -> Floats:
    """Validate all arguments; return float32 if it represents all pixels, otherwise float64."""
    array = finite_image(image)
    if array.dtype.kind == "b":
        raise InvalidInput("image is of type bool: gray levels are needed; convert it to floats.")
    if array.ndim == 3 and array.shape[2] not in (1, 3):
        raise InvalidInput(
            f"image has {array.shape[2]} channels: it must have one or three; remove alpha with "
            "image[..., :3], or pass the channels one by one."
        )
    Choice(("groups", "sub-images", "single")).check("scheme", scheme)
    if noise is not None:
        Number("must not be negative", "pass None to estimate it", low=0).check("noise", noise)
    for name, value, low in (("n_parts", n_parts, 1), ("n_training", n_training, 2)):
        if value is not None:
            rule = f"must be an integer of at least {low}, or None"
            Number(rule, "pass None", low=low, integer=True).check(name, value)
    if pca is not None and (not isinstance(pca, KernelPCA) or pca.n_components is None):
        rule = "must be a KernelPCA with a number of components, or None"
        raise invalid_parameter("pca", pca, rule, "pass KernelPCA(20, kernel='rbf')")
    small = array.dtype.itemsize <= 2 or array.dtype == np.float32
    return array.astype(np.float32 if small else np.float64)


def _sub_images(grid: PatchGrid, n_parts: int | None) -> list[NDArray[np.intp]]:
    """Group windows by position: ``n_parts`` sub-images per direction (Günter 2006, 5.2)."""
    sides = n_parts or max(1, round(math.sqrt(math.prod(grid.shape[:2])) / _SUB_IMAGE_SIDE))
    places = np.arange(grid.n_patches).reshape(grid.grid_shape)
    return [
        part.ravel()
        for strip in np.array_split(places, min(sides, len(places)), axis=0)
        for part in np.array_split(strip, min(sides, places.shape[1]), axis=1)
    ]


def _similar_windows(
    windows: Floats, n_parts: int | None, random_state: int
) -> list[NDArray[np.intp]]:
    """Group windows by k-means; small groups join the nearest large one."""
    rows = windows.astype(np.float32)
    number = min(n_parts or max(1, round(len(rows) / _WINDOWS_PER_GROUP)), len(rows))
    kmeans = MiniBatchKMeans(number, n_init=3, batch_size=2048, random_state=random_state)
    labels = kmeans.fit_predict(rows)
    sizes = np.bincount(labels, minlength=number)
    # With fewer windows than pixels per window, components would mostly fit noise.
    large = np.flatnonzero(sizes >= min(rows.shape[1], sizes.max()))
    nearest = pairwise_distances_argmin(kmeans.cluster_centers_, kmeans.cluster_centers_[large])
    joined = large[nearest][labels]
    return [np.flatnonzero(joined == label) for label in large]


def _denoise_part(
    rows: Floats,
    noise: float | None,
    pca: KernelPCA | None,
    n_training: int | None,
    rng: np.random.Generator,
) -> Floats:
    """Project windows on common components; shrink the projections if the noise is given."""
    spread = float(rows.var(axis=0, dtype=np.float64).sum())
    if len(rows) < 2 or spread == 0:
        return rows
    training = rows[rng.permutation(len(rows))[:n_training]]
    if pca is None:
        model = KernelPCA(
            min(_MAX_COMPONENTS, rows.shape[1], len(training) - 1),
            kernel="rbf",
            gamma=1 / (2 * _WIDTH_FACTOR * spread),
            tol=1e-3,
            preimage=FixedPoint(max_iter=20, tol=1e-3),
            random_state=0,
            copy_X=False,
        )
    else:
        model = clone(pca)
    with warnings.catch_warnings():
        # Parts with few or similar windows have a smaller rank than n_components.
        warnings.simplefilter("ignore", RankWarning)
        projections = model.fit(training).transform(rows)
        if noise is not None:
            projections = projections * _wiener_factors(model, rows, projections, noise, rng)
        return model.inverse_transform(projections)


def _wiener_factors(
    model: KernelPCA, rows: Floats, projections: Floats, noise: float, rng: np.random.Generator
) -> Floats:
    """Return the signal fraction of the variance of each projection: the Wiener filter.

    The noise of projections is measured by adding noise to the rows. As components fit the
    noise of their training windows, the more the fewer these are, it is increased by a factor.
    """
    probes = rng.permutation(len(rows))[:_NOISE_PROBES]
    added = rng.normal(scale=noise, size=(len(probes), rows.shape[1])).astype(rows.dtype)
    noisier = model.transform(rows[probes] + added)
    variance = np.mean(np.square(noisier - projections[probes]), axis=0, dtype=np.float64)
    total = np.mean(np.square(projections), axis=0, dtype=np.float64)
    overfit_factor = 1 + math.sqrt(rows.shape[1] / len(rows))
    signal = np.clip(total - overfit_factor * variance, 0, None)
    return np.divide(signal, total, out=np.zeros_like(total), where=total > 0)


def _cast_pixels(pixels: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "f":
        return pixels.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(pixels), limits.min, limits.max).astype(dtype)
