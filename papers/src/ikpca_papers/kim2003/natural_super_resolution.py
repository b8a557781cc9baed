"""Kim 2003, figure 5: super-resolution of photographs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_sample_image
from sklearn.decomposition import PCA

from ikpca.applications import Hyperresolution, PatchGrid, box_mean, enlarge, make_consistent
from ikpca.kernels import Floats
from ikpca.metrics import signal_to_noise_ratio
from ikpca_papers.claims import Rows
from ikpca_papers.experiment import Findings, Part, Request

#: Of the paper, for pixels from 0 to 1.
PAPER_SIGMA = 0.5
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
    rank : int
        Of linear PCA, on this image.
    """

    name: str
    sharp: Floats
    low: Floats
    images: dict[str, Floats]
    rank: int

    @property
    def ratios(self) -> dict[str, float]:
        """Signal-to-noise ratios in decibels, by method."""
        return {
            name: signal_to_noise_ratio(self.sharp, image) for name, image in self.images.items()
        }


@dataclass(frozen=True)
class EnlargementModels:
    """Models that are fitted on the training photographs."""

    chosen: Hyperresolution
    paper: Hyperresolution
    linear: PCA

    @classmethod
    def fit(cls, images: Sequence[Floats], factor: int = 4, **settings: Any) -> EnlargementModels:
        """Fit all models on the same photographs; σ of the first is chosen on them, too."""
        chosen = Hyperresolution(factor, **settings).fit(images)
        paper = Hyperresolution(factor, gamma=1 / (2 * PAPER_SIGMA**2), **settings).fit(images)
        linear = PCA(max(_RANKS), svd_solver="full").fit(chosen.kernel_pca_.X_fit_)
        return cls(chosen, paper, linear)

    def enlarge(self, name: str, sharp: Floats) -> Enlarged:
        """Reduce a photograph, and enlarge it with every method.

        A star marks images that were made consistent with the low resolution; bicubic interpolation
        has it, too, to show the gain by that alone.
        """
        low, model = box_mean(sharp, self.chosen.factor), self.chosen
        linear, rank = self._linear(sharp, low)
        bicubic = enlarge(low, model.factor, "bicubic")
        images = {
            "nearest": enlarge(low, model.factor),
            "bilinear": enlarge(low, model.factor, "bilinear"),
            "bicubic": bicubic,
            "bicubic*": make_consistent(bicubic, low),
            "linear PCA": linear,
            f"σ = {PAPER_SIGMA}": self.paper.transform(low),
            "block-wise": copy(model).set_params(stride=model.patch_shape_).transform(low),
            "overlapping": model.transform(low),
        }
        images["overlapping*"] = make_consistent(images["overlapping"], low)
        return Enlarged(name, sharp, low, images, rank)

    def _linear(self, sharp: Floats, low: Floats) -> tuple[Floats, int]:
        """Enlarge by linear PCA of the same windows, at the best of all ranks."""
        size = self.chosen.patch_shape_
        grid = PatchGrid(sharp.shape, size, (size[0] // 2, size[1] // 2))
        scores = self.linear.transform(grid.extract(enlarge(low, self.chosen.factor)))
        axes, mean = self.linear.components_, self.linear.mean_
        found = {
            rank: grid.assemble(scores[:, :rank] @ axes[:rank] + mean)
            for rank in _RANKS
            if rank <= len(axes)
        }
        rank = max(found, key=lambda rank: signal_to_noise_ratio(sharp, found[rank]))
        return found[rank], rank


def enlarge_photographs(
    photos: dict[str, Floats], models: EnlargementModels, size: tuple[int, int]
) -> Iterator[Enlarged]:
    """Enlarge the center of every photograph."""
    for name, photo in photos.items():
        yield models.enlarge(name, crop_centre(photo, size, models.chosen.factor))


def photographs(folder: Path | None) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Load training and test photographs in grayscale, pixels from 0 to 1.

    With a folder: BSDS, every second photograph for training. Without one: scikit-learn's two
    photographs, the left half of each for training and the right half for the test.
    """
    if folder is None:
        grey = {name: load_sample_image(f"{name}.jpg") @ _LUMA for name in ("china", "flower")}
        return split_halves({name: image / 255 for name, image in grey.items()})
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


def crop_centre(image: Floats, size: tuple[int, int], factor: int) -> Floats:
    """Crop the center of an image: at most ``size``, and a multiple of the factor."""
    height, width = (
        min(length, part) // factor * factor for length, part in zip(image.shape, size, strict=True)
    )
    top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
    return image[top : top + height, left : left + width]


def kernel_width(model: Hyperresolution) -> float:
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
    factor = settings["factor"]
    models = EnlargementModels.fit(
        train,
        factor,
        n_patches=settings["patches"],
        n_components=settings["components"],
        eigen_solver="krylov",
        random_state=seed,
    )
    rows: Rows = []
    arrays: dict[str, Floats] = {}
    for number, (name, photo) in enumerate(tests.items()):
        sharp = crop_centre(photo, (settings["height"], settings["width"]), factor)
        found = models.enlarge(name, sharp)
        rows += [{"image": name, "method": method, "snr": ratio}
                 for method, ratio in found.ratios.items()]  # fmt: skip
        if number < _N_SHOWN:
            arrays |= _pictures(found)
    widths: Rows = [{"width": "chosen on training images", "sigma": kernel_width(models.chosen)}]
    return Findings({"ratios": rows, "widths": widths, "margins": _margins(rows)}, arrays)


def _pictures(found: Enlarged) -> dict[str, Floats]:
    images = {"original": found.sharp, "low resolution": found.low, **found.images}
    return {f"{found.name}/{method}": image for method, image in images.items()}


def _margins(rows: Rows) -> Rows:
    """Compute per image the gain of overlapping windows over the other methods, in decibels."""
    by_image: dict[str, dict[str, float]] = {}
    for row in rows:
        by_image.setdefault(str(row["image"]), {})[str(row["method"])] = float(row["snr"] or 0)
    return [
        {"image": image, "against": method, "decibels": ratios["overlapping"] - ratio}
        for image, ratios in by_image.items()
        for method, ratio in ratios.items()
        if method != "overlapping"
    ]
