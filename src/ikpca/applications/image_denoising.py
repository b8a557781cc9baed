"""Image denoising by kernel components of windows (Günter 2006, section 5.2; Kim 2003)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.cluster import MiniBatchKMeans

from ikpca.applications.image_patches import PatchGrid, Window, image_array
from ikpca.errors import InvalidInput, RankWarning, check_choice, check_number, invalid_parameter
from ikpca.estimators import KernelPCA
from ikpca.kernels import Floats
from ikpca.preimages import FixedPoint

Scheme = Literal["groups", "sub-images", "single"]
#: Indices of windows; the groups partition all windows.
WindowGroups: TypeAlias = list[NDArray[np.intp]]
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
    remove_means: bool = False,
    window: Window = "uniform",
    n_training: int | None = 1000,
    rounds: int = 1,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[Any]:
    """Remove Gaussian noise from a grey or colour image.

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
    remove_means : bool, default=False
        If True, subtract the mean of every window before the fit.
    window : {"uniform", "smooth"}, default="uniform"
        Weights of overlapping windows, as in :meth:`PatchGrid.assemble`.
    n_training : int, optional
        Number of windows of a part that the model is fitted to; None: all of them.
    rounds : int, default=1
        Number of times similar windows are grouped, each time by the last result.
    random_state : int, default=0
        Seed of the groups, the training windows and the added noise.
    progress : callable, optional
        Called after every part with the number of finished windows and the total; every window
        counts once per round, and once before.

    Returns
    -------
    ndarray of the shape and type of the image
        Integers are rounded and clipped to the range of their type. A constant image, or one
        without noise, is returned unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.applications import denoise_image
    >>> from ikpca.metrics import signal_to_noise_ratio
    >>> clean = np.add.outer(np.sin(np.arange(64) / 6), np.cos(np.arange(64) / 4))
    >>> noisy = clean + np.random.default_rng(0).normal(scale=0.5, size=clean.shape)
    >>> denoised = denoise_image(noisy)
    >>> gain = signal_to_noise_ratio(clean, denoised) - signal_to_noise_ratio(clean, noisy)
    >>> bool(gain > 10)
    True
    """
    pixels = _validate_pixels(image)
    check_choice("scheme", scheme, ("groups", "sub-images", "single"))
    _check_numbers(noise, n_parts, n_training, rounds)
    _check_model(pca)
    grid = PatchGrid(pixels.shape, size, stride)
    if grid.n_patches < 2:
        raise invalid_parameter("size", size, "the image is a single window", "pass a smaller size")
    level = estimate_noise(pixels) if noise is None else float(noise)
    if level == 0 or pixels.min() == pixels.max():
        return np.array(image)
    regroupings = rounds if scheme == "groups" else 0
    counter = _Progress(progress, (1 + regroupings) * grid.n_patches)
    step = _Denoiser(
        grid, level, pca, shrink, remove_means, window, n_training, random_state, counter
    )
    windows = grid.extract(pixels)
    if scheme == "sub-images":
        sides = n_parts or max(1, round(math.sqrt(math.prod(pixels.shape[:2])) / _SUB_IMAGE_SIDE))
        result = step(windows, sub_images(grid, sides))
    else:
        result = step(windows, [np.arange(grid.n_patches)])
    for number in range(regroupings):
        result = step(windows, _groups(grid, result, n_parts, random_state + number))
    return _cast_pixels(result, np.asarray(image).dtype)


def estimate_noise(image: ArrayLike) -> float:
    """Estimate the standard deviation of the noise of an image, in the unit of its pixels.

    Second differences in both directions cancel everything that is linear across three pixels and
    leave mostly noise; the median is robust to the remaining edges.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, channels)
        At min_size three pixels in each direction. Channels are assumed to be equally noisy.

    Returns
    -------
    float
        Zero if most of the image has no noise.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.applications import estimate_noise
    >>> ramp = np.add.outer(np.linspace(0, 1, 200), np.linspace(0, 1, 200))
    >>> noisy = ramp + np.random.default_rng(0).normal(scale=0.1, size=ramp.shape)
    >>> round(estimate_noise(noisy), 2)
    0.1
    """
    array = image_array(image).astype(np.float64)
    if min(array.shape[:2]) < 3:
        raise InvalidInput(
            f"image has shape {array.shape}: noise is estimated from three pixels in each "
            "direction; pass noise, its standard deviation."
        )
    if not np.isfinite(array).all():
        raise InvalidInput("image contains NaN or infinite values: replace them.")
    differences = np.diff(np.diff(array, 2, axis=0), 2, axis=1)
    # The squares of the weights (1, −2, 1) ⊗ (1, −2, 1) sum to 36.
    return float(np.median(np.abs(differences)) / (6 * _NORMAL_MEDIAN))


def sub_images(grid: PatchGrid, number: int) -> WindowGroups:
    """Group windows by position: ``number`` sub-images per direction (Günter 2006, 5.2).

    Examples
    --------
    >>> [part.tolist() for part in sub_images(PatchGrid((4, 4), 1), 2)][0]
    [0, 1, 4, 5]
    """
    places = np.arange(grid.n_patches).reshape(grid.grid_shape)
    rows = np.array_split(places, min(number, len(places)), axis=0)
    return [
        part.ravel()
        for strip in rows
        for part in np.array_split(strip, min(number, places.shape[1]), axis=1)
    ]


def similar_windows(rows: Floats, number: int, min_size: int, seed: int) -> WindowGroups:
    """Group windows by k-means; groups smaller than ``min_size`` join the nearest large one."""
    kmeans = MiniBatchKMeans(number, n_init=3, batch_size=2048, random_state=seed)
    labels = kmeans.fit_predict(rows)
    sizes = np.bincount(labels, minlength=number)
    large = np.flatnonzero(sizes >= min(min_size, sizes.max()))
    centers = kmeans.cluster_centers_
    distances = np.square(centers[:, None] - centers[large]).sum(axis=2)
    joined = large[distances.argmin(axis=1)][labels]
    return [np.flatnonzero(joined == label) for label in large]


@dataclass
class _Progress:
    """Counter of finished windows that calls the user's callback."""

    callback: Callable[[int, int], None] | None
    total: int
    number: int = 0

    def add(self, windows: int) -> None:
        self.number += windows
        if self.callback is not None:
            self.callback(self.number, self.total)


@dataclass(frozen=True)
class _Denoiser:
    """Denoising of all windows by parts, and assembly of the image."""

    grid: PatchGrid
    noise: float
    pca: KernelPCA | None
    shrink: bool
    remove_means: bool
    window: Window
    n_training: int | None
    seed: int
    progress: _Progress

    def __call__(self, windows: Floats, parts: WindowGroups) -> Floats:
        means = windows.mean(axis=1, keepdims=True) if self.remove_means else 0
        rows = windows - means
        denoised = np.empty_like(rows)
        rng = np.random.default_rng(self.seed)
        with warnings.catch_warnings():
            # Parts with few or similar windows have a smaller rank than n_components.
            warnings.simplefilter("ignore", RankWarning)
            for part in parts:
                denoised[part] = self._denoise_rows(rows[part], rng)
                self.progress.add(len(part))
        return self.grid.assemble(denoised + means, window=self.window)

    def _denoise_rows(self, rows: Floats, rng: np.random.Generator) -> Floats:
        spread = float(rows.var(axis=0, dtype=np.float64).sum())
        if len(rows) < 2 or spread == 0:
            return rows
        chosen = rng.permutation(len(rows))[: self.n_training]
        model = _gaussian(rows[chosen], spread) if self.pca is None else clone(self.pca)
        projections = model.fit(rows[chosen]).transform(rows)
        if self.shrink:
            projections = projections * self._wiener_factors(model, rows, projections, rng)
        return model.inverse_transform(projections)

    def _wiener_factors(
        self, model: KernelPCA, rows: Floats, projections: Floats, rng: np.random.Generator
    ) -> Floats:
        """Return the signal fraction of the variance of each projection: the Wiener filter.

        The noise of projections is measured by adding noise to the rows. As components fit the
        noise of their training windows, the more the fewer these are, it is increased by a factor.
        """
        probes = rng.permutation(len(rows))[:_NOISE_PROBES]
        added = rng.normal(scale=self.noise, size=(len(probes), rows.shape[1]))
        if self.remove_means:
            added -= added.mean(axis=1, keepdims=True)
        noisier = model.transform(rows[probes] + added.astype(rows.dtype))
        noise = np.mean(np.square(noisier - projections[probes]), axis=0)
        total = np.mean(np.square(projections), axis=0)
        overfit_factor = 1 + math.sqrt(rows.shape[1] / len(rows))
        signal = np.clip(total - overfit_factor * noise, 0, None)
        return np.divide(signal, total, out=np.zeros_like(total), where=total > 0)


def _gaussian(rows: Floats, spread: float) -> KernelPCA:
    return KernelPCA(
        min(_MAX_COMPONENTS, rows.shape[1], len(rows) - 1),
        kernel="rbf",
        gamma=1 / (2 * _WIDTH_FACTOR * spread),
        tol=1e-3,
        preimage=FixedPoint(max_iter=20, tol=1e-3),
        random_state=0,
        copy_X=False,
    )


def _groups(grid: PatchGrid, image: Floats, n_parts: int | None, seed: int) -> WindowGroups:
    rows = grid.extract(image).astype(np.float32)
    number = n_parts or max(1, round(grid.n_patches / _WINDOWS_PER_GROUP))
    # With fewer windows than pixels per window, components would mostly fit noise.
    return similar_windows(rows, min(number, len(rows)), rows.shape[1], seed)


def _validate_pixels(image: ArrayLike) -> Floats:
    """Validate an image; return float32 if it represents all values, otherwise float64."""
    array = image_array(image)
    if array.dtype.kind == "b":
        raise InvalidInput("image is of type bool: grey levels are needed; convert it to floats.")
    if array.ndim == 3 and array.shape[2] not in (1, 3):
        raise InvalidInput(
            f"image has {array.shape[2]} channels: it must have one or three; remove alpha with "
            "image[..., :3], or pass the channels one by one."
        )
    small = array.dtype.itemsize <= 2 or array.dtype == np.float32
    pixels: Floats = array.astype(np.float32 if small else np.float64)
    if not np.isfinite(pixels).all():
        raise InvalidInput("image contains NaN or infinite values: replace them.")
    return pixels


def _check_numbers(noise: Any, n_parts: Any, n_training: Any, rounds: Any) -> None:
    if noise is not None:
        check_number("noise", noise, "must not be negative", "pass None to estimate it", low=0)
    if n_parts is not None:
        check_number("n_parts", n_parts, "must be a positive integer or None", "pass None", low=1,
                     integer=True)  # fmt: skip
    if n_training is not None:
        check_number("n_training", n_training, "must be at min_size 2, or None", "pass 1000", low=2,
                     integer=True)  # fmt: skip
    check_number("rounds", rounds, "must be a positive integer", "pass 1", low=1, integer=True)


def _check_model(pca: Any) -> None:
    if pca is not None and not isinstance(pca, KernelPCA):
        raise invalid_parameter(
            "pca", pca, "must be a KernelPCA or None", "pass KernelPCA(20, kernel='rbf')"
        )
    if pca is not None and pca.n_components is None:
        raise invalid_parameter(
            "pca", pca, "keeps all components, including the noise", "set its n_components"
        )


def _cast_pixels(pixels: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "f":
        return pixels.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(pixels), limits.min, limits.max).astype(dtype)
