"""Kim 2003, figure 5: super-resolution of photographs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from ikpca import KernelPCA
from ikpca.kernels import Floats, Gaussian
from ikpca.metrics import signal_to_noise_ratio
from ikpca_papers.applications import PatchGrid, SuperResolution, box_mean, enlarge, make_consistent
from ikpca_papers.as_printed import KIM_PREIMAGE, NATURAL_PASSES, PHOTOGRAPH_SIGMA
from ikpca_papers.claims import Cell, Rows, Tables
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.kim2003.gains import kha_model, tune_gain

#: The smaller number of components of linear PCA, which smooths the image.
_SMALL_RANK = 20
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
    strides : dict of int
        Distance of the windows, for methods that restore windows.
    """

    name: str
    sharp: Floats
    low: Floats
    images: dict[str, Floats]
    strides: dict[str, int]

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

    @property
    def seams(self) -> dict[str, float]:
        """Steps between pixels at the edges of windows over those elsewhere, by method."""
        return {
            name: step_ratio(self.images[name], stride) for name, stride in self.strides.items()
        }

    def _detail(self, image: Floats) -> float:
        factor = len(image) // len(self.low)
        return float(np.std(image - enlarge(box_mean(image, factor), factor)))


def step_ratio(image: Floats, stride: int, size: int = 14) -> float:
    """Mean step across the edges of windows, relative to the mean step elsewhere, sideways.

    Examples
    --------
    >>> blocks = np.repeat(np.arange(4.0)[None], 2, axis=0).repeat(14, axis=1)
    >>> noise = 0.1 * (np.arange(56) % 2)
    >>> round(step_ratio(blocks + noise, 14))
    9
    """
    steps = np.abs(np.diff(image, axis=1)).mean(axis=0)
    starts = np.arange(0, image.shape[1] - size + 1, stride)
    edges = np.unique(np.concatenate([starts, starts + size]))
    at_edges = np.zeros(len(steps), dtype=bool)
    at_edges[edges[(edges > 0) & (edges <= len(steps))] - 1] = True
    return float(steps[at_edges].mean() / steps[~at_edges].mean())


@dataclass(frozen=True)
class EnlargementModels:
    """Models of the same patches of the training photographs.

    Parameters
    ----------
    kha : KernelPCA
        As printed.
    exact : dict of KernelPCA
        Exact components for the paper's σ and for others.
    ours : SuperResolution
        Exact components for a σ that is chosen on training photographs.
    linear : PCA
    gains : list of dict
        Gains of the search, with their errors.
    """

    kha: KernelPCA
    exact: dict[float, KernelPCA]
    ours: SuperResolution
    linear: PCA
    gains: Rows

    @classmethod
    def fit(
        cls, images: Sequence[Floats], factor: int, n_patches: int, n_components: int,
        n_tuning: int, sigmas: Sequence[float] = (), passes: int = NATURAL_PASSES, seed: int = 0,
    ) -> EnlargementModels:  # fmt: skip
        """Fit all models; the gain of KHA is chosen on the first ``n_tuning`` patches."""
        ours = SuperResolution(
            factor, n_patches=n_patches, n_components=n_components, eigen_solver="krylov",
            random_state=seed,
        ).fit(images)  # fmt: skip
        X = ours.kernel_pca_.X_fit_
        gamma = 1 / (2 * PHOTOGRAPH_SIGMA**2)
        gain, gains = tune_gain(Gaussian(gamma), X[:n_tuning], n_components, passes, seed)
        shared: dict[str, Any] = {"kernel": "rbf", "preimage": KIM_PREIMAGE}
        kha = kha_model(n_components, len(X), passes, gain, seed, gamma=gamma, **shared)
        exact = {
            sigma: KernelPCA(
                n_components, gamma=1 / (2 * sigma**2), eigen_solver="krylov", tol=1e-3,
                random_state=seed, **shared,
            ).fit(X)
            for sigma in (PHOTOGRAPH_SIGMA, *sigmas)
        }  # fmt: skip
        linear = PCA(min(n_components, X.shape[1]), svd_solver="full").fit(X)
        return cls(kha.fit(X.astype(np.float32)), exact, ours, linear, gains)

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
        names = {sigma: f"KPCA, σ = {sigma:g}" for sigma in self.exact}
        images = {
            "linear PCA": self._linear(overlapping, large, len(self.linear.components_)),
            "bilinear": enlarge(low, factor, "bilinear"),
            "KHA": _restore(self.kha, overlapping, large),
            "KHA block-wise": _restore(self.kha, blocks, large),
            "nearest": large,
            f"linear PCA, {_SMALL_RANK}": self._linear(overlapping, large, _SMALL_RANK),
            **{names[s]: _restore(model, overlapping, large) for s, model in self.exact.items()},
            "bicubic": bicubic,
            "bicubic*": make_consistent(bicubic, low),
            "ours": model.transform(low),
            "ours block-wise": copy(model).set_params(stride=size).transform(low),
        }
        images["ours*"] = make_consistent(images["ours"], low)
        strides = dict.fromkeys(("KHA", "linear PCA", *names.values()), size[1] - factor)
        return Enlarged(name, sharp, low, images, {**strides, "KHA block-wise": size[1]})

    def _linear(self, grid: PatchGrid, large: Floats, rank: int) -> Floats:
        """Enlarge by linear PCA of the same windows."""
        scores = self.linear.transform(grid.extract(large))[:, :rank]
        return grid.assemble(scores @ self.linear.components_[:rank] + self.linear.mean_)


def _restore(model: KernelPCA, grid: PatchGrid, large: Floats) -> Floats:
    """Restore every window, and average where windows overlap."""
    return grid.assemble(np.asarray(model.reconstruct(grid.extract(large)), dtype=np.float64))


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
        train, factor, n_patches, settings["components"], settings["tuning"], settings["sigmas"],
        seed=seed,
    )  # fmt: skip
    rows: Rows = []
    arrays: dict[str, Floats] = {}
    for number, (name, photo) in enumerate(tests.items()):
        sharp = crop_center(photo, (settings["height"], settings["width"]), factor)
        enlarged = models.enlarge(name, sharp)
        structure, seams = enlarged.structure, enlarged.seams
        rows += [{"image": name, "method": method, "snr": ratio, "structure": structure[method],
                  "seams": seams.get(method)}
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
        for method in ratios
        for other, ratio in ratios.items()
        if other != method
    ]


def summary(tables: Tables) -> dict[str, Rows]:
    """Average over the images; per image, compare the seams of both kinds of windows."""
    found: dict[str, list[dict[str, Cell]]] = {}
    for row in tables["ratios"]:
        found.setdefault(str(row["method"]), []).append(row)
    columns = ("snr", "structure", "seams")
    means: Rows = [
        {"method": method, **{column: _mean([row[column] for row in rows]) for column in columns}}
        for method, rows in found.items()
    ]
    pairs = zip(found["KHA block-wise"], found["KHA"], strict=True)
    seams: Rows = [
        {"image": blocks["image"],
         "reduction": float(blocks["seams"] or 0) - float(overlapping["seams"] or 0)}
        for blocks, overlapping in pairs
    ]  # fmt: skip
    return {"means": means, "seams": seams}


def _mean(cells: Sequence[Cell]) -> float | None:
    return None if None in cells else float(np.mean([float(cell or 0) for cell in cells]))
