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
from ikpca.errors import InvalidInput, RankWarning, invalid_parameter
from ikpca.estimators import KernelPCA
from ikpca.estimators.validation import check_choice, check_number
from ikpca.kernels import Floats
from ikpca.preimages import FixedPoint

#: Median of |x| for a standard normal x.
_MEDIAN_OF_NORMAL = 0.674489750196082


def estimate_noise(image: ArrayLike) -> float:
    """Standard deviation of the noise of an image, in the unit of its pixels.

    Second differences in both directions cancel all that is linear across three pixels; what they
    leave is noise nearly everywhere, and its median does not see the edges that are left too.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, channels)
        Three pixels or more in each direction. Channels are taken to be equally noisy.

    Returns
    -------
    float
        Zero where most of the image is without noise.

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
        raise InvalidInput("image holds NaN or infinite values: replace them.")
    differences = np.diff(np.diff(array, 2, axis=0), 2, axis=1)
    # The squares of the weights (1, −2, 1) ⊗ (1, −2, 1) sum to 36.
    return float(np.median(np.abs(differences)) / (6 * _MEDIAN_OF_NORMAL))


#: Indices of windows; together every window once.
WindowGroups: TypeAlias = list[NDArray[np.intp]]


def sub_images(grid: PatchGrid, number: int) -> WindowGroups:
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


def similar_windows(rows: Floats, number: int, least: int, seed: int) -> WindowGroups:
    """Windows by content: k-means, and groups below ``least`` join those that are nearest."""
    means = MiniBatchKMeans(number, n_init=3, batch_size=2048, random_state=seed)
    labels = means.fit_predict(rows)
    sizes = np.bincount(labels, minlength=number)
    large = np.flatnonzero(sizes >= min(least, sizes.max()))
    centres = means.cluster_centers_
    distances = np.square(centres[:, None] - centres[large]).sum(axis=2)
    joined = large[distances.argmin(axis=1)][labels]
    return [np.flatnonzero(joined == label) for label in large]


Scheme = Literal["groups", "sub-images", "single"]

#: Windows per group of similar ones, and pixels per side of a sub-image, where nothing is asked.
_GROUP, _SUB_IMAGE = 1600, 128
#: Components of a part at most, and σ² over the spread of its windows: the noise of windows is in
#: their distances, and a narrow kernel would take it for structure.
_COMPONENTS, _WIDTH = 64, 32
#: Windows that are made noisier to measure what noise does to the components.
_PROBES = 1000


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

    The image is cut into windows; windows of one part share kernel components, on which they are
    projected; pre-images of the projections are put together, averaged where they overlap. What
    helps most is that similar windows share components and that projections are shrunk by their
    noise; with both, a linear kernel does as well as the Gaussian.

    Parameters
    ----------
    image : array-like of shape (height, width), (height, width, 1) or (height, width, 3)
        Of any floating-point or integer type, in any unit. An alpha channel is no picture: leave it
        out.
    noise : float, optional
        Standard deviation of the noise in the unit of the pixels (25.5 for a tenth of the scale of
        bytes); estimated from the image by default.
    scheme : {"groups", "sub-images", "single"}, default="groups"
        "groups": similar windows share components, wherever they are. "sub-images": windows of one
        region do (the multipatch scheme of the paper). "single": all do.
    n_parts : int, optional
        How many groups, or into how many sub-images each side is cut; about 1,600 windows per group
        and 128 pixels per side by default.
    size, stride : int or (int, int), default=9 and 2
        Of the windows, as in :class:`PatchGrid`.
    pca : KernelPCA, optional
        What is fitted to every part, with its kernel, solver and pre-image. By default a Gaussian
        kernel much wider than the windows of the part are apart, and up to 64 components.
    shrink : bool, default=True
        Shrink each projection by the share of its variance that is noise, measured by adding noise
        once more. False projects, as the papers do: choose the number of components with care.
    remove_means : bool, default=False
        Whether components see windows without their mean grey level.
    window : {"uniform", "smooth"}, default="uniform"
        How overlaps are averaged, as in :meth:`PatchGrid.assemble`.
    n_training : int, optional
        Windows of a part that components are made of; None: all of them.
    rounds : int, default=1
        How often similar windows are grouped, each time as the last result shows them.
    random_state : int, default=0
        Of groups, of training windows and of the noise that is added.
    progress : callable, optional
        Told, after every part, how many windows are done, and how many there are to do: each once
        per round, and once before.

    Returns
    -------
    ndarray of the shape and type of the image
        Integers are rounded, and clipped to the range of their type. An image of one grey level, or
        without noise, is returned as it is.

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
    pixels = _checked_pixels(image)
    check_choice("scheme", scheme, ("groups", "sub-images", "single"))
    _check_numbers(noise, n_parts, n_training, rounds)
    _check_model(pca)
    grid = PatchGrid(pixels.shape, size, stride)
    if grid.n_patches < 2:
        raise invalid_parameter(
            "size", size, "the image is a single window", "choose smaller windows"
        )
    level = estimate_noise(pixels) if noise is None else float(noise)
    if level == 0 or pixels.min() == pixels.max():
        return np.array(image)
    regroupings = rounds if scheme == "groups" else 0
    done = _Progress(progress, (1 + regroupings) * grid.n_patches)
    step = _Denoiser(grid, level, pca, shrink, remove_means, window, n_training, random_state, done)
    windows = grid.extract(pixels)
    if scheme == "sub-images":
        sides = n_parts or max(1, round(math.sqrt(math.prod(pixels.shape[:2])) / _SUB_IMAGE))
        result = step(windows, sub_images(grid, sides))
    else:
        result = step(windows, [np.arange(grid.n_patches)])
    for number in range(regroupings):
        result = step(windows, _groups(grid, result, n_parts, random_state + number))
    return _as_type(result, np.asarray(image).dtype)


@dataclass
class _Progress:
    """How many windows are done, told to whoever wants to know."""

    tell: Callable[[int, int], None] | None
    total: int
    number: int = 0

    def add(self, windows: int) -> None:
        self.number += windows
        if self.tell is not None:
            self.tell(self.number, self.total)


@dataclass(frozen=True)
class _Denoiser:
    """One pass over all windows: parts, one after the other, and then the image."""

    grid: PatchGrid
    noise: float
    pca: KernelPCA | None
    shrink: bool
    remove_means: bool
    window: Window
    n_training: int | None
    seed: int
    done: _Progress

    def __call__(self, windows: Floats, parts: WindowGroups) -> Floats:
        means = windows.mean(axis=1, keepdims=True) if self.remove_means else 0
        rows = windows - means
        denoised = np.empty_like(rows)
        rng = np.random.default_rng(self.seed)
        with warnings.catch_warnings():
            # Parts with few or like windows have fewer directions than components were asked for.
            warnings.simplefilter("ignore", RankWarning)
            for part in parts:
                denoised[part] = self._denoised(rows[part], rng)
                self.done.add(len(part))
        return self.grid.assemble(denoised + means, window=self.window)

    def _denoised(self, rows: Floats, rng: np.random.Generator) -> Floats:
        spread = float(rows.var(axis=0, dtype=np.float64).sum())
        if len(rows) < 2 or spread == 0:
            return rows
        chosen = rng.permutation(len(rows))[: self.n_training]
        model = _gaussian(rows[chosen], spread) if self.pca is None else clone(self.pca)
        projections = model.fit(rows[chosen]).transform(rows)
        if self.shrink:
            projections = projections * self._signal_shares(model, rows, projections, rng)
        return model.inverse_transform(projections)

    def _signal_shares(
        self, model: KernelPCA, rows: Floats, projections: Floats, rng: np.random.Generator
    ) -> Floats:
        """What share of the variance of each projection is signal: Wiener's factor.

        The noise of projections is measured where the kernel makes it: by adding it once more.
        Components follow the noise of the windows they were made of, the more so the fewer these
        are, hence the factor above one.
        """
        probes = rng.permutation(len(rows))[:_PROBES]
        added = rng.normal(scale=self.noise, size=(len(probes), rows.shape[1]))
        if self.remove_means:
            added -= added.mean(axis=1, keepdims=True)
        noisier = model.transform(rows[probes] + added.astype(rows.dtype))
        noise = np.mean(np.square(noisier - projections[probes]), axis=0)
        total = np.mean(np.square(projections), axis=0)
        followed = 1 + math.sqrt(rows.shape[1] / len(rows))
        left = np.clip(total - followed * noise, 0, None)
        return np.divide(left, total, out=np.zeros_like(total), where=total > 0)


def _gaussian(rows: Floats, spread: float) -> KernelPCA:
    return KernelPCA(
        min(_COMPONENTS, rows.shape[1], len(rows) - 1),
        kernel="rbf",
        gamma=1 / (2 * _WIDTH * spread),
        tol=1e-3,
        preimage=FixedPoint(max_iter=20, tol=1e-3),
        random_state=0,
        copy_X=False,
    )


def _groups(grid: PatchGrid, image: Floats, n_parts: int | None, seed: int) -> WindowGroups:
    rows = grid.extract(image).astype(np.float32)
    number = n_parts or max(1, round(grid.n_patches / _GROUP))
    # With fewer windows than pixels in them, components would be mostly noise.
    return similar_windows(rows, min(number, len(rows)), rows.shape[1], seed)


def _checked_pixels(image: ArrayLike) -> Floats:
    """Pixels in single precision if that holds them, otherwise in double."""
    array = image_array(image)
    if array.dtype.kind == "b":
        raise InvalidInput("image is of type bool: it has no grey levels; convert it to floats.")
    if array.ndim == 3 and array.shape[2] not in (1, 3):
        raise InvalidInput(
            f"image has {array.shape[2]} channels: one or three are denoised; leave out alpha, as "
            "in image[..., :3], or pass channels one by one."
        )
    small = array.dtype.itemsize <= 2 or array.dtype == np.float32
    pixels: Floats = array.astype(np.float32 if small else np.float64)
    if not np.isfinite(pixels).all():
        raise InvalidInput("image holds NaN or infinite values: replace them.")
    return pixels


def _check_numbers(noise: Any, n_parts: Any, n_training: Any, rounds: Any) -> None:
    if noise is not None:
        check_number("noise", noise, "must not be negative", "pass None to estimate it", low=0)
    if n_parts is not None:
        check_number("n_parts", n_parts, "must be a positive integer or None", "pass None", low=1,
                     integer=True)  # fmt: skip
    if n_training is not None:
        check_number("n_training", n_training, "must be at least 2, or None", "pass 1000", low=2,
                     integer=True)  # fmt: skip
    check_number("rounds", rounds, "must be a positive integer", "pass 1", low=1, integer=True)


def _check_model(pca: Any) -> None:
    if pca is not None and not isinstance(pca, KernelPCA):
        raise invalid_parameter(
            "pca", pca, "must be a KernelPCA or None", "pass KernelPCA(20, kernel='rbf')"
        )
    if pca is not None and pca.n_components is None:
        raise invalid_parameter(
            "pca", pca, "keeps all components, and with them the noise", "set its n_components"
        )


def _as_type(pixels: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "f":
        return pixels.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(pixels), limits.min, limits.max).astype(dtype)
