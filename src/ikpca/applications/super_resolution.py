"""Super-resolution from the kernel components of sharp images (Kim 2003, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ikpca.applications.image_patches import (
    Grey,
    PatchGrid,
    count_places,
    draw_patches,
    grey_image,
    grey_images,
    image_array,
    is_one_image,
)
from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.estimators import KernelPCA
from ikpca.estimators.base import SaveMixin
from ikpca.estimators.validation import (
    check_choice,
    check_kernel_pca,
    check_number,
    is_auto,
    resolve_gamma,
)
from ikpca.kernels import Floats

#: How pixels are filled in before anything has been learned.
Enlargement = Literal["nearest", "bilinear", "bicubic"]
ENLARGEMENTS: tuple[Enlargement, ...] = ("nearest", "bilinear", "bicubic")
_ORDERS = {"bilinear": 1, "bicubic": 3}


def box_mean(image: ArrayLike, factor: int) -> NDArray[np.float64]:
    """Shrink an image: each factor×factor square becomes one pixel, its mean.

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
    >>> from ikpca.applications import box_mean
    >>> box_mean(np.arange(8.0).reshape(2, 4), 2)
    array([[2.5, 4.5]])
    """
    check_factor(factor)
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
    """Blow an image up, without any knowledge of what images are like.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, channels)
    factor : int
    method : {"nearest", "bilinear", "bicubic"}, default="nearest"
        "nearest": each pixel becomes a factor×factor square, as in Kim 2003; ``box_mean`` is its
        exact inverse. The others interpolate between the centres of the pixels.

    Returns
    -------
    ndarray of shape (factor · height, factor · width[, channels])

    Examples
    --------
    >>> from ikpca.applications import enlarge
    >>> enlarge([[1, 2]], 2)
    array([[1., 1., 2., 2.],
           [1., 1., 2., 2.]])
    """
    check_factor(factor)
    array = image_array(image).astype(np.float64)
    if method == "nearest":
        return array.repeat(factor, axis=0).repeat(factor, axis=1)
    if method not in _ORDERS:
        raise invalid_parameter(
            "method", method, "is unknown", f"choose one of {', '.join(ENLARGEMENTS)}"
        )
    zooms = (factor, factor, *(1 for _ in array.shape[2:]))
    return ndimage.zoom(array, zooms, order=_ORDERS[method], mode="nearest", grid_mode=True)


def make_consistent(large: ArrayLike, low: ArrayLike) -> NDArray[np.float64]:
    """Add to an enlarged image what it lacks to be the given one when shrunk again.

    Parameters
    ----------
    large : array-like of shape (factor · height, factor · width[, channels])
    low : array-like of shape (height, width[, channels])

    Returns
    -------
    ndarray of the shape of ``large``
        The nearest image whose ``box_mean`` is ``low``.

    Examples
    --------
    >>> from ikpca.applications import box_mean, make_consistent
    >>> box_mean(make_consistent([[0, 1], [2, 3]], [[7]]), 2)
    array([[7.]])
    """
    image, seen = image_array(large).astype(np.float64), image_array(low)
    factor = image.shape[0] // seen.shape[0]
    if image.shape != (factor * seen.shape[0], factor * seen.shape[1], *seen.shape[2:]):
        raise InvalidInput(
            f"large has shape {image.shape} and low {seen.shape}: one must be a multiple of the "
            "other, the same in both directions; pass an image and its enlargement."
        )
    return image + enlarge(seen - box_mean(image, factor), factor)


def check_factor(factor: object) -> None:
    """Refuse what is no magnification."""
    if isinstance(factor, bool) or not isinstance(factor, Integral) or factor < 1:
        raise invalid_parameter("factor", factor, "must be a positive integer", "pass 2, 3 or 4")


#: Widths to begin with, as multiples of the spread of the patches, and steps around the best.
_COARSE, _FINE = (0.25, 0.5, 1.0, 2.0, 4.0), (2**-0.5, 2**0.5)
#: At most this many images are held out, and one in so many.
_HELD, _ONE_IN = 16, 5


def choose_gamma(
    patches: Floats, error: Callable[[float], float]
) -> tuple[float, list[tuple[float, float]]]:
    """Search a coarse grid of widths, then between its best and their neighbours.

    Returns
    -------
    gamma : float
        The best, 1/(2σ²).
    tried : list of (float, float)
        Every γ and its error, by width.
    """
    unit = resolve_gamma("scale", patches, "rbf", 0)
    errors = {width: error(unit / width**2) for width in _COARSE}
    best = min(errors, key=errors.__getitem__)
    errors |= {width: error(unit / width**2) for width in (best * step for step in _FINE)}
    best = min(errors, key=errors.__getitem__)
    return unit / best**2, [(unit / width**2, errors[width]) for width in sorted(errors)]


def hold_out(
    images: Sequence[Grey], size: tuple[int, int], factor: int, rng: np.random.RandomState
) -> tuple[list[Grey], list[Grey]]:
    """Images to learn from, and crops of others to be judged by.

    A single image serves as both. Crops are of three windows each way where there is room, and of
    sizes that the factor divides.
    """
    whole = [_multiple(image.shape, factor) for image in images]
    fit = [number for number, shape in enumerate(whole) if _holds(shape, size)]
    if not fit:
        rule = f"no image holds a window of {size[0]}×{size[1]} once cropped to multiples of factor"
        raise invalid_parameter("gamma", "auto", rule, "pass a number, or larger images")
    held = set(rng.permutation(fit)[: max(1, min(_HELD, len(images) // _ONE_IN))].tolist())
    learn = [image for number, image in enumerate(images) if number not in held]
    wanted = (-(-3 * size[0] // factor) * factor, -(-3 * size[1] // factor) * factor)
    # Where few images are held out, each gives several crops.
    crops = [
        _crop(images[number], (min(wanted[0], whole[number][0]), min(wanted[1], whole[number][1])),
              rng)
        for number in np.resize(sorted(held), _HELD)
    ]  # fmt: skip
    return learn or list(images), crops


def _multiple(shape: tuple[int, ...], factor: int) -> tuple[int, int]:
    return shape[0] // factor * factor, shape[1] // factor * factor


def _holds(shape: tuple[int, int], size: tuple[int, int]) -> bool:
    return shape[0] >= size[0] and shape[1] >= size[1]


def _crop(image: Grey, shape: tuple[int, int], rng: np.random.RandomState) -> Grey:
    top, left = (rng.randint(n - m + 1) for n, m in zip(image.shape, shape, strict=True))
    return image[top : top + shape[0], left : left + shape[1]]


#: Patches that the search for a width learns from: a choice needs fewer than a result.
_SEARCH_PATCHES = 1200


class Hyperresolution(SaveMixin, BaseEstimator):
    """Enlarge images by what patches of sharp images are like.

    ``fit`` learns Gaussian kernel components of patches of high-resolution images. ``transform``
    blows an image of low resolution up, projects each window on the components, and puts the
    pre-images together.

    Parameters
    ----------
    factor : int, default=4
        Pixels of high resolution per pixel of low resolution, in each direction.
    patch : (int, int), int or None, default=(14, 14)
        Height and width of a window. None: a whole image is one window, for small images that are
        aligned and of one size, such as faces.
    stride : "auto", int or (int, int), default="auto"
        From a window to the next; overlaps are averaged. "auto": half the patch. As large as the
        patch: block by block.
    n_components : int, default=300
        Fewer where patches have no more.
    gamma : "auto" or float, default="auto"
        1/(2σ²), in units of the pixels. "auto": of some widths, the one that enlarges
        held-out training images best, having learned from others.
    n_patches : int, default=7000
        How many patches to learn from, at most; drawn at random.
    enlargement : {"nearest", "bilinear", "bicubic"}, default="nearest"
        What windows are before the projection. The paper has squares of equal pixels.
    consistent : bool, default=False
        Whether to add what the result lacks to be exactly the given image when shrunk again, see
        :func:`ikpca.applications.make_consistent`. Right where pixels are means of squares.
    eigen_solver, tol, max_memory, preimage : as in :class:`ikpca.KernelPCA`
        Here ``tol`` is 1e-3 by default: no pixel shows more.
    random_state : int, RandomState or None, default=None
        Of the choice of patches and of the solver.

    Attributes
    ----------
    kernel_pca_ : KernelPCA
        The components.
    gamma_ : float
    gamma_search_ : list of (float, float)
        Each γ that was tried, with its mean squared error on what was held out; empty for a given
        ``gamma``.
    patch_shape_ : (int, int)
        Height and width of a window.
    n_patches_ : int
        How many patches there were to learn from.

    See Also
    --------
    ikpca.applications.enlarge : Without learning.
    ikpca.applications.box_mean : How training images lose their resolution here.

    References
    ----------
    K. I. Kim, M. O. Franz, B. Schölkopf, Kernel Hebbian Algorithm for Iterative Kernel Principal
    Component Analysis, MPI technical report 109, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.applications import Hyperresolution, box_mean, enlarge
    >>> waves = [np.sin(np.add.outer(a * np.arange(48), np.arange(48)) / 6) for a in (0.5, 1, 2)]
    >>> model = Hyperresolution(4, 12, n_components=20, n_patches=500, random_state=0)
    >>> sharp = model.fit(waves[:2]).transform(box_mean(waves[0], 4))
    >>> blurred = enlarge(box_mean(waves[0], 4), 4)
    >>> bool(np.var(sharp - waves[0]) < 0.2 * np.var(blurred - waves[0]))
    True
    """

    def __init__(
        self,
        factor: int = 4,
        patch: Any = (14, 14),
        *,
        stride: Any = "auto",
        n_components: int = 300,
        gamma: Any = "auto",
        n_patches: int = 7000,
        enlargement: Any = "nearest",
        consistent: bool = False,
        eigen_solver: str = "auto",
        tol: float = 1e-3,
        max_memory: Any = None,
        preimage: Any = "auto",
        random_state: Any = None,
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

    def fit(self, images: Any, y: Any = None) -> Self:
        """Learn what patches of sharp images are like.

        Parameters
        ----------
        images : list of arrays (height, width), or array of shape (n_images, height, width)
            Grey, in any sizes no smaller than a patch; of one size where ``patch=None``.
        y : Ignored

        Returns
        -------
        self
        """
        self._check()
        greys = grey_images(images)
        self.patch_shape_ = self._window_size(greys)
        self._check_components(min(self.n_patches, count_places(greys, self.patch_shape_)))
        rng = check_random_state(self.random_state)
        self.gamma_search_: list[tuple[float, float]] = []
        self.gamma_ = self._searched_gamma(greys, rng) if is_auto(self.gamma) else float(self.gamma)
        patches = self._patches(greys, self.n_patches, rng)
        model = self._kernel_pca(self.gamma_, self.n_components, rng.randint(2**31 - 1))
        self.kernel_pca_, self.n_patches_ = model.fit(patches), len(patches)
        return self

    def transform(self, images: Any) -> Any:
        """Enlarge an image of low resolution, or each of several.

        Parameters
        ----------
        images : array of shape (height, width), or a list or stack of such
            In the same units as the training images.

        Returns
        -------
        ndarray of shape (factor · height, factor · width), or a list of them
        """
        check_is_fitted(self)
        one = is_one_image(images)
        low = [grey_image(images)] if one else grey_images(images)
        for image in low:
            self._check_size(image)
        sharp = self._sharpened(low, self.kernel_pca_)
        return sharp[0] if one else sharp

    def _check(self) -> None:
        check_factor(self.factor)
        for name in ("n_components", "n_patches"):
            check_number(name, getattr(self, name), "must be a positive integer", "pass 300", low=1,
                         integer=True)  # fmt: skip
        if not is_auto(self.gamma):
            check_number("gamma", self.gamma, "must be 'auto' or a positive number",
                         "pass 'auto', or 1/(2σ²)", low=0, open_low=True)  # fmt: skip
        check_choice("enlargement", self.enlargement, ENLARGEMENTS)
        check_choice("consistent", self.consistent, (True, False))
        check_kernel_pca(self._kernel_pca(1.0, 1, 0))
        if self.patch is None and not is_auto(self.stride):
            raise invalid_parameter(
                "stride", self.stride, "whole images have no windows", "leave it 'auto'"
            )

    def _window_size(self, greys: list[Grey]) -> tuple[int, int]:
        """Height and width of a window, if every image has room for it."""
        if self.patch is not None:
            sizes = {self._grid(grey.shape).size for grey in greys}
            return sizes.pop()
        shape = greys[0].shape
        if any(grey.shape != shape for grey in greys):
            raise InvalidInput(
                "images are of unequal sizes: with patch=None each is one window; crop them alike, "
                "or pass a patch size."
            )
        if shape[0] % self.factor or shape[1] % self.factor:
            raise InvalidInput(
                f"images of {shape[0]}×{shape[1]} pixels: factor={self.factor} does not divide "
                "their height and width; crop them to a multiple."
            )
        return shape[0], shape[1]

    def _check_components(self, n_patches: int) -> None:
        if self.n_components >= n_patches:
            raise invalid_parameter(
                "n_components",
                self.n_components,
                f"there are only {n_patches} patches",
                "ask for fewer components, or pass more or larger images",
            )

    def _check_size(self, low: Grey) -> None:
        """Refuse images that are too small, or not of the only size there is."""
        height, width = (self.factor * length for length in low.shape)
        rows, columns = self.patch_shape_
        if self.patch is None and (height, width) != (rows, columns):
            raise InvalidInput(
                f"image of {low.shape[0]}×{low.shape[1]} pixels: enlarged {self.factor} times it "
                f"must be of the training images' {rows}×{columns}; crop it."
            )
        if height < rows or width < columns:
            raise InvalidInput(
                f"image of {low.shape[0]}×{low.shape[1]} pixels: enlarged {self.factor} times it "
                f"does not hold a patch of {rows}×{columns}; pass a larger image."
            )

    def _grid(self, shape: tuple[int, ...]) -> PatchGrid:
        """The windows of a large image."""
        if self.patch is None:
            return PatchGrid(shape, (shape[0], shape[1]))
        try:
            size = PatchGrid(shape, self.patch).size
        except InvalidInput as refused:
            raise InvalidInput(str(refused).replace("size", "patch", 1)) from None
        half = (max(1, size[0] // 2), max(1, size[1] // 2))
        return PatchGrid(shape, size, half if is_auto(self.stride) else self.stride)

    def _searched_gamma(self, greys: list[Grey], rng: np.random.RandomState) -> float:
        """γ by what it does for held-out images, learned from fewer patches of the others."""
        learn, crops = hold_out(greys, self.patch_shape_, self.factor, rng)
        patches = self._patches(learn, min(self.n_patches, _SEARCH_PATCHES), rng)
        shrunk = [box_mean(crop, self.factor) for crop in crops]
        n_components, seed = min(self.n_components, len(patches) - 1), rng.randint(2**31 - 1)

        def error(gamma: float) -> float:
            model = self._kernel_pca(gamma, n_components, seed)
            # So few patches are quickest done exactly, whatever solves the real problem.
            model.set_params(eigen_solver="auto").fit(patches)
            pairs = zip(self._sharpened(shrunk, model), crops, strict=True)
            return float(np.mean([np.mean(np.square(sharp - crop)) for sharp, crop in pairs]))

        gamma, self.gamma_search_ = choose_gamma(patches, error)
        return gamma

    def _patches(self, greys: list[Grey], number: int, rng: np.random.RandomState) -> Floats:
        patches = draw_patches(greys, self.patch_shape_, number, rng)
        if (patches == patches[0]).all():
            raise InvalidInput(
                f"all {len(patches)} patches are equal: there is nothing to learn from them; pass "
                "images with something on them."
            )
        return patches

    def _kernel_pca(self, gamma: float, n_components: int, seed: int) -> KernelPCA:
        return KernelPCA(
            n_components,
            kernel="rbf",
            gamma=gamma,
            eigen_solver=self.eigen_solver,
            tol=self.tol,
            max_memory=self.max_memory,
            preimage=self.preimage,
            random_state=seed,
            # Flat patches may leave fewer components than were asked for, which is no loss here.
            remove_zero_eig=True,
        )

    def _sharpened(self, low: list[Grey], model: KernelPCA) -> list[Grey]:
        """Enlarged, projected, put together; windows of all images go through at once."""
        large = [enlarge(image, self.factor, self.enlargement) for image in low]
        grids = [self._grid(image.shape) for image in large]
        windows = [grid.extract(image) for grid, image in zip(grids, large, strict=True)]
        found = model.reconstruct(np.vstack(windows))
        parts = np.split(found, np.cumsum([grid.n_patches for grid in grids])[:-1])
        sharp = [grid.assemble(part) for grid, part in zip(grids, parts, strict=True)]
        if not self.consistent:
            return sharp
        return [make_consistent(image, seen) for image, seen in zip(sharp, low, strict=True)]
