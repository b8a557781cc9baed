"""Super-resolution from the kernel components of sharp images (Kim 2003, section 4.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import ikpca
from ikpca import KernelPCA
from ikpca.errors import Choice, InvalidInput, Number, UnreadableFile, invalid_parameter, is_auto
from ikpca.kernels import Floats
from ikpca.preimages import PreimageMethod
from ikpca_papers.applications.image_patches import (
    GrayImage,
    PatchGrid,
    as_gray_image,
    as_gray_images,
    count_windows,
    draw_patches,
    image_array,
    is_one_image,
)

#: Interpolation before the projection.
Enlargement = Literal["nearest", "bilinear", "bicubic"]
#: One image, or several.
Images: TypeAlias = ArrayLike | Sequence[ArrayLike]
Size: TypeAlias = int | tuple[int, int]
_ORDERS = {"nearest": 0, "bilinear": 1, "bicubic": 3}
#: Widths of the coarse grid, in units of the spread of the patches, and steps around the best.
_COARSE_WIDTHS, _FINE_STEPS = (0.25, 0.5, 1.0, 2.0, 4.0), (2**-0.5, 2**0.5)
#: Maximum number of held-out images, and the inverse of their fraction.
_MAX_HELD_OUT, _HELD_OUT_INTERVAL = 16, 5
#: Maximum number of training patches in the search for γ.
_SEARCH_PATCHES = 1200
#: Fitted attributes that a file holds beside the components.
_FITTED = ("gamma_", "gamma_search_", "patch_shape_", "n_patches_")


class SuperResolution(BaseEstimator):
    """Super-resolution by kernel components of patches of sharp images.

    ``fit`` learns Gaussian kernel components of patches of high-resolution images. ``transform``
    enlarges an image of low resolution, projects each window on the components and assembles the
    pre-images.

    Parameters
    ----------
    factor : int, default=4
        Magnification in each direction.
    patch : (int, int), int or None, default=(14, 14)
        Height and width of a window. None: the complete image is one window, for small aligned
        images of equal size, such as faces.
    stride : "auto", int or (int, int), default="auto"
        Distance between neighboring windows; overlaps are averaged. "auto": half the patch.
    n_components : int, default=300
        Number of components; components without variance are removed.
    gamma : "auto" or float, default="auto"
        1/(2σ²), in units of the pixels. "auto": the width with the smallest error on held-out
        training images.
    n_patches : int, default=7000
        Maximum number of training patches, drawn at random.
    enlargement : {"nearest", "bilinear", "bicubic"}, default="nearest"
        Interpolation before the projection; "nearest" in the paper.
    consistent : bool, default=False
        If True, correct the result so that shrinking restores the input, see
        :func:`ikpca_papers.applications.make_consistent`. Correct if pixels are means of squares.
    eigen_solver, tol, max_memory, preimage : as in :class:`ikpca.KernelPCA`
        Here ``tol`` is 1e-3 by default, which is sufficient for pixels.
    random_state : int, RandomState or None, default=None
        Seed of the choice of patches and of the solver.

    Attributes
    ----------
    kernel_pca_ : KernelPCA
        Fitted components.
    gamma_ : float
        Value of ``gamma`` used by the kernel.
    gamma_search_ : list of (float, float)
        Each γ of the search with its mean squared error on held-out images; empty for a given
        ``gamma``.
    patch_shape_ : (int, int)
        Height and width of a window.
    n_patches_ : int
        Number of training patches.

    See Also
    --------
    ikpca_papers.applications.enlarge : Interpolation without learning.
    ikpca_papers.applications.box_mean : Inverse operation, used for training images.

    References
    ----------
    K. I. Kim, M. O. Franz, B. Schölkopf, Kernel Hebbian Algorithm for Iterative Kernel Principal
    Component Analysis, MPI technical report 109, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca_papers.applications import SuperResolution, box_mean, enlarge
    >>> waves = [np.sin(np.add.outer(a * np.arange(48), np.arange(48)) / 6) for a in (0.5, 1, 2)]
    >>> model = SuperResolution(4, 12, n_components=20, n_patches=500, random_state=0)
    >>> sharp = model.fit(waves[:2]).transform(box_mean(waves[0], 4))
    >>> blurred = enlarge(box_mean(waves[0], 4), 4)
    >>> bool(np.var(sharp - waves[0]) < 0.2 * np.var(blurred - waves[0]))
    True
    """

    def __init__(
        self,
        factor: int = 4,
        patch: Size | None = (14, 14),
        *,
        stride: Size | Literal["auto"] = "auto",
        n_components: int = 300,
        gamma: float | Literal["auto"] = "auto",
        n_patches: int = 7000,
        enlargement: Enlargement = "nearest",
        consistent: bool = False,
        eigen_solver: str = "auto",
        tol: float = 1e-3,
        max_memory: int | str | None = None,
        preimage: str | PreimageMethod = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.factor = factor
        self.patch = patch
        self.stride = stride
        self.n_components = n_components
        self.gamma = gamma
        self.n_patches = n_patches
        self.enlargement = enlargement
        self.consistent = consistent
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_memory = max_memory
        self.preimage = preimage
        self.random_state = random_state

    def fit(self, images: Images, y: object = None) -> Self:
        """Learn the components of patches of sharp images.

        Parameters
        ----------
        images : list of arrays (height, width), or array of shape (n_images, height, width)
            Grayscale images, at least as large as a patch; of equal size if ``patch=None``.
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        sharp = as_gray_images(images)
        size = self._window_size(sharp)
        n_patches = min(self.n_patches, count_windows(sharp, size))
        if self.n_components >= n_patches:
            rule = f"there are only {n_patches} patches"
            remedy = "pass a smaller number, or more or larger images"
            raise invalid_parameter("n_components", self.n_components, rule, remedy)
        rng = check_random_state(self.random_state)
        search: list[tuple[float, float]] = []
        gamma = self.gamma
        if isinstance(gamma, str):
            gamma, search = self._search_gamma(sharp, size, rng)
        patches = _draw_unequal_patches(sharp, size, self.n_patches, rng)
        model = self._kernel_pca(gamma, self.n_components, rng.randint(2**31 - 1)).fit(patches)
        self.kernel_pca_: KernelPCA = model
        self.gamma_, self.gamma_search_ = float(gamma), search
        self.patch_shape_, self.n_patches_ = size, len(patches)
        return self

    def transform(self, images: Images) -> Any:
        """Enlarge one or more images of low resolution.

        Parameters
        ----------
        images : array of shape (height, width), or a list or stack of such
            In the same units as the training images.

        Returns
        -------
        ndarray of shape (factor · height, factor · width), or a list of them
        """
        check_is_fitted(self)
        _check_factor(self.factor)
        one = is_one_image(images)
        low = [as_gray_image(images)] if one else as_gray_images(images)
        size = "×".join(map(str, self.patch_shape_))
        rule = f"not be smaller than a patch of {size}; pass a larger image"
        if self.patch is None:
            rule = f"have the size {size} of the training images; crop it"
        for image in low:
            shape = self.factor * np.array(image.shape)
            valid = shape == self.patch_shape_ if self.patch is None else shape >= self.patch_shape_
            if not valid.all():
                raise InvalidInput(
                    f"image of {image.shape[0]}×{image.shape[1]} pixels: enlarged {self.factor} "
                    f"times, it must {rule}."
                )
        sharp = self._sharpen(low, self.kernel_pca_)
        return sharp[0] if one else sharp

    def save(self, path: str | Path) -> None:
        """Write the fitted model atomically to a file: the components, with the parameters.

        Parameters
        ----------
        path : str or Path
            An existing file is overwritten.
        """
        check_is_fitted(self)
        model = copy(self.kernel_pca_)
        fitted = {name: getattr(self, name) for name in _FITTED}
        model.super_resolution_ = [self.get_params(deep=False), fitted]
        model.save(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load a model that :meth:`save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        SuperResolution
        """
        kernel_pca = ikpca.load(path)
        if not hasattr(kernel_pca, "super_resolution_"):
            raise InvalidInput(
                f"{path}: is a {type(kernel_pca).__name__}, not a SuperResolution; pass a model "
                "that SuperResolution.save or 'ikpca-papers upscale --save-model' wrote."
            )
        parameters, fitted = vars(kernel_pca).pop("super_resolution_")
        model = cls(**parameters)
        model.kernel_pca_ = kernel_pca
        for name in _FITTED:
            setattr(model, name, fitted[name])
        if math.prod(model.patch_shape_) != kernel_pca.n_features_in_:
            raise UnreadableFile(f"{path} cannot be read: its parts are not consistent.")
        return model

    def _check_parameters(self) -> None:
        _check_factor(self.factor)
        for name in ("n_components", "n_patches"):
            rule = Number("must be a positive integer", "pass 300", low=1, integer=True)
            rule.check(name, getattr(self, name))
        if not is_auto(self.gamma):
            positive = "must be 'auto' or a positive number", "pass 'auto', or 1/(2σ²)"
            Number(*positive, low=0, open_low=True).check("gamma", self.gamma)
        Choice(_ORDERS).check("enlargement", self.enlargement)
        Choice((True, False)).check("consistent", self.consistent)
        if self.patch is None and not is_auto(self.stride):
            raise invalid_parameter(
                "stride", self.stride, "patch=None has no stride", "pass 'auto'"
            )

    def _window_size(self, images: list[GrayImage]) -> tuple[int, int]:
        """Return height and width of a window; raise an error if an image is smaller."""
        sizes = {self._grid(image.shape).size for image in images}
        if len(sizes) > 1:
            raise InvalidInput(
                "images are of unequal sizes: patch=None needs equal sizes; crop them, or pass a "
                "patch size."
            )
        if self.patch is None:
            # The error if the factor does not divide the size.
            box_mean(images[0], self.factor)
        return sizes.pop()

    def _grid(self, shape: tuple[int, ...]) -> PatchGrid:
        """Return the grid of windows of a large image."""
        if self.patch is None:
            return PatchGrid(shape, (shape[0], shape[1]))
        try:
            size = PatchGrid(shape, self.patch).size
        except InvalidInput as error:
            raise InvalidInput(str(error).replace("size", "patch", 1)) from None
        half = (max(1, size[0] // 2), max(1, size[1] // 2))
        return PatchGrid(shape, size, half if self.stride == "auto" else self.stride)

    def _search_gamma(
        self, images: list[GrayImage], size: tuple[int, int], rng: np.random.RandomState
    ) -> tuple[float, list[tuple[float, float]]]:
        """Choose γ by the error on held-out images; return it and the search."""
        learn, crops = hold_out(images, size, self.factor, rng)
        patches = _draw_unequal_patches(learn, size, min(self.n_patches, _SEARCH_PATCHES), rng)
        shrunk = [box_mean(crop, self.factor) for crop in crops]
        n_components, seed = min(self.n_components, len(patches) - 1), rng.randint(2**31 - 1)

        def error(gamma: float) -> float:
            model = self._kernel_pca(gamma, n_components, seed)
            # For so few patches the automatic choice, an exact solver, is fastest.
            model.set_params(eigen_solver="auto").fit(patches)
            pairs = zip(self._sharpen(shrunk, model), crops, strict=True)
            return float(np.mean([np.mean(np.square(sharp - crop)) for sharp, crop in pairs]))

        return choose_gamma(patches, error)

    def _kernel_pca(self, gamma: float, n_components: int, seed: int) -> KernelPCA:
        names = ("eigen_solver", "tol", "max_memory", "preimage")
        settings = {name: getattr(self, name) for name in names}
        # Constant patches may reduce the rank.
        return KernelPCA(
            n_components, kernel="rbf", gamma=gamma, random_state=seed, remove_zero_eig=True,
            **settings,
        )  # fmt: skip

    def _sharpen(self, low: list[GrayImage], model: KernelPCA) -> list[GrayImage]:
        """Enlarge, project and assemble images; the windows of all images are joined."""
        large = [enlarge(image, self.factor, self.enlargement) for image in low]
        grids = [self._grid(image.shape) for image in large]
        windows = [grid.extract(image) for grid, image in zip(grids, large, strict=True)]
        sharp_windows = model.reconstruct(np.vstack(windows))
        parts = np.split(sharp_windows, np.cumsum([grid.n_patches for grid in grids])[:-1])
        sharp = [grid.assemble(part) for grid, part in zip(grids, parts, strict=True)]
        if not self.consistent:
            return sharp
        return [make_consistent(image, small) for image, small in zip(sharp, low, strict=True)]


def _draw_unequal_patches(
    images: list[GrayImage], size: tuple[int, int], number: int, rng: np.random.RandomState
) -> Floats:
    patches = draw_patches(images, size, number, rng)
    if (patches == patches[0]).all():
        raise InvalidInput(
            f"all {len(patches)} patches are equal: they must differ; pass images that are not "
            "constant."
        )
    return patches


def box_mean(image: ArrayLike, factor: int) -> NDArray[np.float64]:
    """Shrink an image; each pixel is the mean of a factor×factor square.

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
    >>> from ikpca_papers.applications import box_mean
    >>> box_mean(np.arange(8.0).reshape(2, 4), 2)
    array([[2.5, 4.5]])
    """
    _check_factor(factor)
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
    """Enlarge an image by interpolation.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, channels)
    factor : int
    method : {"nearest", "bilinear", "bicubic"}, default="nearest"
        "nearest": each pixel becomes a factor×factor square, as in Kim 2003; ``box_mean`` is the
        exact inverse. The others interpolate between the centers of the pixels.

    Returns
    -------
    ndarray of shape (factor · height, factor · width[, channels])

    Examples
    --------
    >>> from ikpca_papers.applications import enlarge
    >>> enlarge([[1, 2]], 2)
    array([[1., 1., 2., 2.],
           [1., 1., 2., 2.]])
    """
    _check_factor(factor)
    Choice(_ORDERS).check("method", method)
    array = image_array(image).astype(np.float64)
    if method == "nearest":
        return array.repeat(factor, axis=0).repeat(factor, axis=1)
    zooms = (factor, factor, 1)[: array.ndim]
    return ndimage.zoom(array, zooms, order=_ORDERS[method], mode="nearest", grid_mode=True)


def make_consistent(large: ArrayLike, low: ArrayLike) -> NDArray[np.float64]:
    """Correct an enlarged image so that its ``box_mean`` is the image of low resolution.

    Parameters
    ----------
    large : array-like of shape (factor · height, factor · width[, channels])
    low : array-like of shape (height, width[, channels])

    Returns
    -------
    ndarray of the shape of ``large``
        The image nearest to ``large`` whose ``box_mean`` is ``low``.

    Examples
    --------
    >>> from ikpca_papers.applications import box_mean, make_consistent
    >>> box_mean(make_consistent([[0, 1], [2, 3]], [[7]]), 2)
    array([[7.]])
    """
    image, seen = image_array(large).astype(np.float64), image_array(low)
    factor = image.shape[0] // seen.shape[0]
    if image.shape != (factor * seen.shape[0], factor * seen.shape[1], *seen.shape[2:]):
        raise InvalidInput(
            f"large has shape {image.shape} and low {seen.shape}: the ratio must be an integer, "
            "equal in both directions; pass an image and its enlargement."
        )
    return image + enlarge(seen - box_mean(image, factor), factor)


def _check_factor(factor: object) -> None:
    rule, remedy = "must be an integer from 1 to 1,000", "pass 2, 3 or 4"
    Number(rule, remedy, low=1, high=1000, integer=True).check("factor", factor)


def choose_gamma(
    patches: Floats, error: Callable[[float], float]
) -> tuple[float, list[tuple[float, float]]]:
    """Search γ on a coarse grid of widths, then around the best of them.

    Return the best γ, and every γ with its error, sorted by width.
    """
    unit = 1.0 / (patches.shape[1] * float(patches.var()))
    errors = {width: error(unit / width**2) for width in _COARSE_WIDTHS}
    best = min(errors, key=errors.__getitem__)
    errors |= {width: error(unit / width**2) for width in (best * step for step in _FINE_STEPS)}
    best = min(errors, key=errors.__getitem__)
    return unit / best**2, [(unit / width**2, errors[width]) for width in sorted(errors)]


def hold_out(
    images: Sequence[GrayImage], size: tuple[int, int], factor: int, rng: np.random.RandomState
) -> tuple[list[GrayImage], list[GrayImage]]:
    """Return training images, and crops of held-out images for validation.

    A single image is used for both. Crops have up to three windows per side and a size that the
    factor divides.
    """
    whole = np.array([image.shape for image in images]) // factor * factor
    fit = np.flatnonzero((whole >= size).all(axis=1))
    if not len(fit):
        rule = f"no image cropped to a multiple of factor has a window of {size[0]}×{size[1]}"
        raise invalid_parameter("gamma", "auto", rule, "pass a number, or larger images")
    n_held = max(1, min(_MAX_HELD_OUT, len(images) // _HELD_OUT_INTERVAL))
    held = np.sort(rng.permutation(fit)[:n_held])
    learn = [image for number, image in enumerate(images) if number not in held]
    crops = []
    # If few images are held out, each gives several crops.
    for number in np.resize(held, _MAX_HELD_OUT):
        shape = np.minimum(-(-3 * np.array(size) // factor) * factor, whole[number])
        top, left = (
            rng.randint(n - m + 1) for n, m in zip(images[number].shape, shape, strict=True)
        )
        crops.append(images[number][top : top + shape[0], left : left + shape[1]])
    return learn or list(images), crops
