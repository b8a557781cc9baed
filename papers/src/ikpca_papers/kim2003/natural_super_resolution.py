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
#: Linear PCA is shown at whichever of these does best on each image, in its favour.
_RANKS = (5, 10, 15, 20, 30, 50, 100, 150)
#: ITU-R 601: how bright red, green and blue are.
_BRIGHTNESS = (0.299, 0.587, 0.114)
#: Photographs may have a dark frame.
_FRAME = 2


@dataclass(frozen=True)
class Enlarged:
    """One photograph and what each method made of it.

    Parameters
    ----------
    name : str
    sharp, low : ndarray
        The photograph, and what was left of it.
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
class Contestants:
    """All that learned from the training photographs."""

    chosen: Hyperresolution
    paper: Hyperresolution
    linear: PCA

    @classmethod
    def trained(cls, images: Sequence[Floats], factor: int = 4, **settings: Any) -> Contestants:
        """Fit each on the same photographs; σ of the first is chosen on them too."""
        chosen = Hyperresolution(factor, **settings).fit(images)
        paper = Hyperresolution(factor, gamma=1 / (2 * PAPER_SIGMA**2), **settings).fit(images)
        linear = PCA(max(_RANKS), svd_solver="full").fit(chosen.kernel_pca_.X_fit_)
        return cls(chosen, paper, linear)

    def enlarge(self, name: str, sharp: Floats) -> Enlarged:
        """Shrink a photograph, and let everyone enlarge it.

        A star marks what was made consistent with the image it came from; bicubic interpolation
        has it beside, to show how much of the gain is owed to that alone.
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
        """PCA on the same windows; of all ranks, the one nearest to the sharp image."""
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
    photos: dict[str, Floats], contestants: Contestants, size: tuple[int, int]
) -> Iterator[Enlarged]:
    """Enlarge the middle of every photograph."""
    for name, photo in photos.items():
        yield contestants.enlarge(name, centre(photo, size, contestants.chosen.factor))


def photographs(folder: Path | None) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Training and test photographs in grey, pixels from 0 to 1.

    BSDS from a local folder, every second for training; without one, the left half of each of
    scikit-learn's two photographs for training and the right half for the test.
    """
    if folder is None:
        grey = {
            name: load_sample_image(f"{name}.jpg") @ _BRIGHTNESS for name in ("china", "flower")
        }
        return halves({name: image / 255 for name, image in grey.items()})
    with np.load(folder / "bsds_grey.npz") as data:
        return every_second(data["images"], data["ids"])


def halves(photos: Mapping[str, Floats]) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Left halves for training, right halves for the test."""
    parts = {name: np.array_split(image, 2, axis=1) for name, image in photos.items()}
    return ({name: left for name, (left, _) in parts.items()},
            {name: right for name, (_, right) in parts.items()})  # fmt: skip


def every_second(
    images: NDArray[np.uint8], ids: NDArray[Any]
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Photographs of bytes, without their frame: every second for training."""
    inner = images[:, _FRAME:-_FRAME, _FRAME:-_FRAME] / 255
    photos = dict(zip(map(str, ids), inner, strict=True))
    names = list(photos)
    return {name: photos[name] for name in names[::2]}, {name: photos[name] for name in names[1::2]}


def centre(image: Floats, size: tuple[int, int], factor: int) -> Floats:
    """The middle of an image: no more than ``size``, and a multiple of the factor."""
    height, width = (
        min(length, part) // factor * factor for length, part in zip(image.shape, size, strict=True)
    )
    top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
    return image[top : top + height, left : left + width]


def sigma_of(model: Hyperresolution) -> float:
    """σ of the Gaussian kernel."""
    return float((2 * model.gamma_) ** -0.5)


_DRAWN = 2


def plan(request: Request) -> list[Part]:
    """All in one: training takes longer than everything after it."""
    photos = {name: np.asarray(image) for name, image in request.inputs.arrays.items()}
    return [Part("photographs", partial(_enlarge, photos, request.settings, request.seed))]


def _enlarge(photos: dict[str, Floats], settings: Mapping[str, Any], seed: int) -> Findings:
    train = [image for name, image in photos.items() if name.startswith("train/")]
    tests = {name.removeprefix("test/"): image for name, image in photos.items()
             if name.startswith("test/")}  # fmt: skip
    factor = settings["factor"]
    contestants = Contestants.trained(
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
        sharp = centre(photo, (settings["height"], settings["width"]), factor)
        found = contestants.enlarge(name, sharp)
        rows += [{"image": name, "method": method, "snr": ratio}
                 for method, ratio in found.ratios.items()]  # fmt: skip
        if number < _DRAWN:
            arrays |= _pictures(found)
    widths: Rows = [{"width": "chosen on training images", "sigma": sigma_of(contestants.chosen)}]
    return Findings({"ratios": rows, "widths": widths, "margins": _margins(rows)}, arrays)


def _pictures(found: Enlarged) -> dict[str, Floats]:
    images = {"original": found.sharp, "low resolution": found.low, **found.images}
    return {f"{found.name}/{method}": image for method, image in images.items()}


def _margins(rows: Rows) -> Rows:
    """Per image, by how many decibels overlapping windows beat what they are compared with."""
    by_image: dict[str, dict[str, float]] = {}
    for row in rows:
        by_image.setdefault(str(row["image"]), {})[str(row["method"])] = float(row["snr"] or 0)
    return [
        {"image": image, "against": method, "decibels": ratios["overlapping"] - ratio}
        for image, ratios in by_image.items()
        for method, ratio in ratios.items()
        if method != "overlapping"
    ]
