"""Kim 2003, figure 5: super-resolution of photographs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_sample_image
from sklearn.decomposition import PCA

from ikpca import KernelPCA
from ikpca.kernels import Floats, Gaussian
from ikpca.metrics import signal_to_noise_ratio
from ikpca_papers.applications import PatchGrid, SuperResolution, box_mean, enlarge, make_consistent
from ikpca_papers.as_printed import KIM_PREIMAGE, NATURAL_PASSES, PHOTOGRAPH_SIGMA
from ikpca_papers.claims import Rows
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.kim2003.gains import kha_model, tune_gain

#: Linear PCA is shown at the best of these for each image, in its favor.
_RANKS = (5, 10, 15, 20, 30, 50, 100, 150)
#: Weights of red, green and blue (ITU-R BT.601).
_LUMA = (0.299, 0.587, 0.114)
#: Width of a dark frame of some photographs.
_FRAME = 2


@dataclass(frozen=True)
class Enlarged:
    """Photograph enlarged by every method.

    Parameters
    ----------
    name : str
    sharp, low : ndarray
        The photograph at high and at low resolution.
    images : dict of ndarray
        By method.
    """

    name: str
    sharp: Floats
    low: Floats
    images: dict[str, Floats]

    @property
    def ratios(self) -> dict[str, float]:
        """Signal-to-noise ratios in decibels, by method."""
        return {
            name: signal_to_noise_ratio(self.sharp, image) for name, image in self.images.items()
        }

    @property
    def structure(self) -> dict[str, float]:
        """Deviation from the means of squares of pixels, relative to the photograph's."""
        whole = self._detail(self.sharp)
        return {name: self._detail(image) / whole for name, image in self.images.items()}

    def _detail(self, image: Floats) -> float:
        factor = len(image) // len(self.low)
        return float(np.std(image - enlarge(box_mean(image, factor), factor)))


@dataclass(frozen=True)
class EnlargementModels:
    """Models of the same patches of the training photographs.

    Parameters
    ----------
    kha : KernelPCA
        As printed.
    exact : KernelPCA
        Exact components for the paper's σ.
    ours : SuperResolution
        Exact components for a σ that is chosen on training photographs.
    linear : PCA
    gains : list of dict
        Gains of the search, with their errors.
    """

    kha: KernelPCA
    exact: KernelPCA
    ours: SuperResolution
    linear: PCA
    gains: Rows

    @classmethod
    def fit(
        cls, images: Sequence[Floats], factor: int, n_patches: int, n_components: int,
        n_tuning: int, passes: int = NATURAL_PASSES, seed: int = 0,
    ) -> EnlargementModels:  # fmt: skip
        """Fit all models; the gain of KHA is chosen on the first ``n_tuning`` patches."""
        ours = SuperResolution(
            factor, n_patches=n_patches, n_components=n_components, eigen_solver="krylov",
            random_state=seed,
        ).fit(images)  # fmt: skip
        X = ours.kernel_pca_.X_fit_
        gamma = 1 / (2 * PHOTOGRAPH_SIGMA**2)
        gain, gains = tune_gain(Gaussian(gamma), X[:n_tuning], n_components, passes, seed)
        shared: dict[str, Any] = {"kernel": "rbf", "gamma": gamma, "preimage": KIM_PREIMAGE}
        kha = kha_model(n_components, len(X), passes, gain, seed, **shared)
        exact = KernelPCA(
            n_components, eigen_solver="krylov", tol=1e-3, random_state=seed, **shared
        )
        linear = PCA(max(_RANKS), svd_solver="full").fit(X)
        return cls(kha.fit(X.astype(np.float32)), exact.fit(X), ours, linear, gains)

    def enlarge(self, name: str, sharp: Floats) -> Enlarged:
        """Reduce a photograph, and enlarge it with every method.

        A star marks images that were made consistent with the low resolution; bicubic interpolation
        has it, too, to show the gain by that alone.
        """
        model = self.ours
        size, factor = model.patch_shape_, model.factor
        low = box_mean(sharp, factor)
        large = enlarge(low, factor)
        # "Slightly overlapping": by one pixel of the low resolution.
        overlapping = PatchGrid(sharp.shape, size, (size[0] - factor, size[1] - factor))
        blocks = PatchGrid(sharp.shape, size, size)
        bicubic = enlarge(low, factor, "bicubic")
        images = {
            "nearest": large,
            "linear PCA": self._linear(sharp, overlapping, large),
            "bilinear": enlarge(low, factor, "bilinear"),
            "KHA": _restore(self.kha, overlapping, large),
            "KHA block-wise": _restore(self.kha, blocks, large),
            "KPCA": _restore(self.exact, overlapping, large),
            "bicubic": bicubic,
            "bicubic*": make_consistent(bicubic, low),
            "ours": model.transform(low),
            "ours block-wise": copy(model).set_params(stride=size).transform(low),
        }
        images["ours*"] = make_consistent(images["ours"], low)
        return Enlarged(name, sharp, low, images)

    def _linear(self, sharp: Floats, grid: PatchGrid, large: Floats) -> Floats:
        """Enlarge by linear PCA of the same windows, at the best of all ranks."""
        scores = self.linear.transform(grid.extract(large))
        axes, mean = self.linear.components_, self.linear.mean_
        images = [grid.assemble(scores[:, :rank] @ axes[:rank] + mean) for rank in _RANKS]
        return max(images, key=lambda image: signal_to_noise_ratio(sharp, image))


def _restore(model: KernelPCA, grid: PatchGrid, large: Floats) -> Floats:
    """Restore every window, and average where windows overlap."""
    return grid.assemble(np.asarray(model.reconstruct(grid.extract(large)), dtype=np.float64))


def photographs(folder: Path | None) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Load training and test photographs in grayscale, pixels from 0 to 1.

    With a folder: BSDS, every second photograph for training. Without one: scikit-learn's two
    photographs, the left half of each for training and the right half for the test.
    """
    if folder is None:
        gray = {name: load_sample_image(f"{name}.jpg") @ _LUMA for name in ("china", "flower")}
        return split_halves({name: image / 255 for name, image in gray.items()})
    with np.load(folder / "bsds_grey.npz") as data:
        return split_alternating(data["images"], data["ids"])


def split_halves(photos: Mapping[str, Floats]) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Split photographs into left halves for training and right halves for the test."""
    parts = {name: np.array_split(image, 2, axis=1) for name, image in photos.items()}
    return ({name: left for name, (left, _) in parts.items()},
            {name: right for name, (_, right) in parts.items()})  # fmt: skip


def split_alternating(
    images: NDArray[np.uint8], ids: NDArray[Any]
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Crop the frame of photographs of bytes; every second is for training."""
    inner = images[:, _FRAME:-_FRAME, _FRAME:-_FRAME] / 255
    photos = dict(zip(map(str, ids), inner, strict=True))
    names = list(photos)
    return {name: photos[name] for name in names[::2]}, {name: photos[name] for name in names[1::2]}


def crop_center(image: Floats, size: tuple[int, int], factor: int) -> Floats:
    """Crop the center of an image: at most ``size``, and a multiple of the factor."""
    height, width = (
        min(length, part) // factor * factor for length, part in zip(image.shape, size, strict=True)
    )
    top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
    return image[top : top + height, left : left + width]


def kernel_width(model: SuperResolution) -> float:
    """Return σ of the Gaussian kernel."""
    return float((2 * model.gamma_) ** -0.5)


#: Photographs in the figure.
_N_SHOWN = 2


def plan(request: Request) -> list[Part]:
    """Plan a single part, because training takes most of the time."""
    photos = {name: np.asarray(image) for name, image in request.inputs.arrays.items()}
    return [Part("photographs", partial(_enlarge, photos, request.settings, request.seed))]


def _enlarge(photos: dict[str, Floats], settings: Mapping[str, Any], seed: int) -> Findings:
    train = [image for name, image in photos.items() if name.startswith("train/")]
    tests = {name.removeprefix("test/"): image for name, image in photos.items()
             if name.startswith("test/")}  # fmt: skip
    factor, n_patches = settings["factor"], settings["patches"]
    models = EnlargementModels.fit(
        train, factor, n_patches, settings["components"], settings["tuning"], seed=seed
    )
    rows: Rows = []
    arrays: dict[str, Floats] = {}
    for number, (name, photo) in enumerate(tests.items()):
        sharp = crop_center(photo, (settings["height"], settings["width"]), factor)
        enlarged = models.enlarge(name, sharp)
        structure = enlarged.structure
        rows += [{"image": name, "method": method, "snr": ratio, "structure": structure[method]}
                 for method, ratio in enlarged.ratios.items()]  # fmt: skip
        if number < _N_SHOWN:
            arrays |= _pictures(enlarged)
    widths: Rows = [{"width": "chosen on training images", "sigma": kernel_width(models.ours)}]
    tables = {"ratios": rows, "margins": margins(rows), "gains": models.gains, "widths": widths}
    return Findings(tables, arrays)


def _pictures(enlarged: Enlarged) -> dict[str, Floats]:
    images = {"original": enlarged.sharp, "low resolution": enlarged.low, **enlarged.images}
    return {f"{enlarged.name}/{method}": image for method, image in images.items()}


def margins(rows: Rows) -> Rows:
    """Compute per image the gain of one method over all others, in decibels."""
    by_image: dict[str, dict[str, float]] = {}
    for row in rows:
        by_image.setdefault(str(row["image"]), {})[str(row["method"])] = float(row["snr"] or 0)
    return [
        {"image": image, "method": method, "against": other, "decibels": ratios[method] - ratio}
        for image, ratios in by_image.items()
        for method in ("KHA", "bilinear", "ours")
        for other, ratio in ratios.items()
        if other != method
    ]
