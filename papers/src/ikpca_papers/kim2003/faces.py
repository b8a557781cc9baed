"""Kim 2003, figures 2 and 3: super-resolution of faces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial.distance import cdist, pdist
from sklearn.decomposition import PCA

from ikpca import KernelPCA
from ikpca.kernels import Floats, Gaussian
from ikpca_papers.applications import SuperResolution, box_mean, enlarge
from ikpca_papers.as_printed import FACE_PASSES, FACE_SIGMA, KIM_PREIMAGE
from ikpca_papers.claims import Rows, Tables
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.kim2003.gains import kha_model, tune_gain

_SIDE = 60
#: Training faces for the choice of the unit.
_UNIT_FACES = 500


@dataclass(frozen=True)
class FaceSplit:
    """Faces of high resolution, split into training and test faces, and the persons they show."""

    train: Floats
    test: Floats
    train_persons: NDArray[Any]
    test_persons: NDArray[Any]

    @classmethod
    def random(cls, faces: Floats, persons: NDArray[Any], n_test: int, seed: int = 0) -> FaceSplit:
        """Draw the test faces at random; as in the paper, persons may be in both parts."""
        order = np.random.default_rng(seed).permutation(len(faces))
        test, train = order[:n_test], order[n_test:]
        return cls(faces[train], faces[test], persons[train], persons[test])

    def reduced(self, number: int) -> FaceSplit:
        """Return the split with fewer training faces."""
        return replace(self, train=self.train[:number], train_persons=self.train_persons[:number])

    def nearest(self, images: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return distances to the nearest training faces, and if these show another person."""
        distances = cdist(_flat(images), _flat(self.train))
        persons = self.train_persons[distances.argmin(axis=1)]
        return distances.min(axis=1), persons != self.test_persons


@dataclass(frozen=True)
class Restored:
    """Test faces restored by one method.

    Parameters
    ----------
    method : str
    n_components : int or None
        None for interpolation.
    images : ndarray of shape (n_faces, height, width)
    n_train : int or None
        Number of training faces.
    sigma : float or None
    """

    method: str
    n_components: int | None
    images: Floats
    n_train: int | None = None
    sigma: float | None = None

    def measure(self, split: FaceSplit) -> dict[str, Any]:
        """Return the errors, per pixel from 0 to 255 and per face, and the nearest faces."""
        squares = np.square(self.images - split.test).sum(axis=(1, 2))
        distances, other_person = split.nearest(self.images)
        return {
            "mse": 255**2 * float(squares.mean()) / split.test[0].size,
            "squared_error": float(squares.mean()),
            "distance_to_faces": float(distances.mean()),
            "wrong_person": float(other_person.mean()),
        }


def read_units(train: Floats) -> tuple[float, Rows]:
    """Choose the unit of the pixels, which the paper does not give.

    Return σ for pixels from 0 to 1, and the median value of the kernel between training faces for
    every unit. The unit whose median is nearest to a half is chosen.
    """
    X = _flat(train)[:_UNIT_FACES]
    units = {"0 to 255": 255.0, "0 to 1": 1.0, "length 1": 1 / np.linalg.norm(X, axis=1).mean()}
    squares = pdist(X, "sqeuclidean")
    rows: Rows = [
        {"unit": unit, "sigma": float(FACE_SIGMA / scale),
         "median_kernel": float(np.median(np.exp(-squares * scale**2 / (2 * FACE_SIGMA**2))))}
        for unit, scale in units.items()
    ]  # fmt: skip
    best = min(rows, key=lambda row: abs(float(row["median_kernel"] or 0) - 0.5))
    return float(best["sigma"] or 0), rows


def restore(
    split: FaceSplit,
    factor: int,
    ranks: Sequence[int],
    n_few: int,
    sigma: float,
    gain: float,
    seed: int = 0,
) -> Iterator[Restored]:
    """Reduce the test faces, and restore them with every method and rank.

    ``sigma`` is the paper's, for pixels from 0 to 1.
    """
    low, large = _reduced(split, factor)
    for method in ("nearest", "bicubic"):
        yield Restored(method, None, np.array([enlarge(face, factor, method) for face in low]))
    linear = PCA(max(ranks), svd_solver="full").fit(_flat(split.train))
    scores = linear.transform(large)
    for rank in ranks:
        flat = scores[:, :rank] @ linear.components_[:rank] + linear.mean_
        yield Restored("linear PCA", rank, flat.reshape(split.test.shape), len(split.train))
    yield from _restore_as_printed(split, large, ranks, n_few, sigma, gain, seed)
    yield from _restore_by_ours(split, low, factor, ranks)


def _reduced(split: FaceSplit, factor: int) -> tuple[Floats, Floats]:
    """Return the test faces at low resolution, and rows of them with enlarged pixels."""
    low = np.array([box_mean(face, factor) for face in split.test])
    return low, _flat(np.array([enlarge(face, factor) for face in low]))


def _restore_as_printed(
    split: FaceSplit,
    large: Floats,
    ranks: Sequence[int],
    n_few: int,
    sigma: float,
    gain: float,
    seed: int,
) -> Iterator[Restored]:
    """KHA on all faces; kernel PCA on a few and, for comparison, on all."""
    shared: dict[str, Any] = {
        "kernel": "rbf", "gamma": 1 / (2 * sigma**2), "preimage": KIM_PREIMAGE,
    }  # fmt: skip
    every, few = _flat(split.train), _flat(split.train)[:n_few]
    runs: list[tuple[str, KernelPCA, Floats]] = [
        ("KHA", kha_model(rank, len(every), FACE_PASSES, gain, seed, **shared), every)
        for rank in ranks
    ]
    exact = KernelPCA(max(ranks), random_state=seed, **shared)
    runs += [("KPCA on few", exact, few), ("KPCA", exact, every)]
    for method, model, rows in runs:
        images = model.fit(rows).reconstruct(large).reshape(split.test.shape)
        yield Restored(method, len(model.eigenvalues_), images, len(rows), sigma)


def _restore_by_ours(
    split: FaceSplit, low: Floats, factor: int, ranks: Sequence[int]
) -> Iterator[Restored]:
    """σ is chosen on training faces at the largest rank, and kept for the others."""
    gamma: float | Literal["auto"] = "auto"
    for rank in sorted(ranks, reverse=True):
        model = SuperResolution(factor, None, n_components=rank, gamma=gamma, random_state=0)
        images = np.array(model.fit(split.train).transform(low))
        gamma = model.gamma_
        yield Restored("ours", rank, images, len(split.train), float((2 * gamma) ** -0.5))


def _flat(images: Floats) -> Floats:
    return images.reshape(len(images), -1)


def enlarged_faces(pixels: NDArray[np.uint8]) -> Floats:
    """Resize faces of bytes to 60×60, pixels from 0 to 1."""
    images = pixels / 255
    zooms = (1, *(_SIDE / length for length in images.shape[1:]))
    return ndimage.zoom(images, zooms, order=1, mode="nearest", grid_mode=True)


#: Faces in the figure.
_N_SHOWN = 5


def plan(request: Request) -> list[Part]:
    """Plan one part per factor, and one for other widths of the kernel."""
    data, settings, seed = request.inputs.arrays, request.settings, request.seed
    split = FaceSplit.random(data["images"], data["persons"], settings["tests"], seed)
    if settings["train"]:
        split = split.reduced(settings["train"])
    return [
        *(Part(f"factor {factor}", partial(_restore, split, factor, settings, seed))
          for factor in settings["factors"]),
        *(Part(f"σ = {sigma:g}", partial(_other_width, split, sigma, settings, seed))
          for sigma in settings["sigmas"]),
    ]  # fmt: skip


def _tuned_gain(
    split: FaceSplit, sigma: float, settings: Mapping[str, Any], seed: int
) -> tuple[float, Rows]:
    X, kernel = _flat(split.train)[: settings["tuning"]], Gaussian(1 / (2 * sigma**2))
    return tune_gain(kernel, X, max(settings["ranks"]), FACE_PASSES, seed)


def _row(restored: Restored, split: FaceSplit, factor: int, name: str = "") -> dict[str, Any]:
    return {
        "factor": factor,
        "method": restored.method + name,
        "components": restored.n_components,
        "faces": restored.n_train,
        "sigma": restored.sigma,
        **restored.measure(split),
    }


def _restore(split: FaceSplit, factor: int, settings: Mapping[str, Any], seed: int) -> Findings:
    ranks = settings["ranks"]
    sigma, units = read_units(split.train)
    gain, tried = _tuned_gain(split, sigma, settings, seed)
    rows: Rows = []
    arrays = {f"factor {factor}/original": split.test[:_N_SHOWN]}
    for one in restore(split, factor, ranks, settings["few"], sigma, gain, seed):
        rows.append(_row(one, split, factor))
        name = one.method if one.n_components is None else f"{one.method}, {one.n_components}"
        arrays[f"factor {factor}/{name}"] = one.images[:_N_SHOWN]
    gains: Rows = [{"factor": factor, "sigma": sigma, **row} for row in tried]
    return Findings({"errors": rows, "units": units, "gains": gains}, arrays)


def _other_width(
    split: FaceSplit, sigma: float, settings: Mapping[str, Any], seed: int
) -> Findings:
    """Restore with KHA at another width, from a third of the side, with the most components."""
    rank, X = max(settings["ranks"]), _flat(split.train)
    gain, tried = _tuned_gain(split, sigma, settings, seed)
    model = kha_model(rank, len(X), FACE_PASSES, gain, seed, kernel="rbf",
                      gamma=1 / (2 * sigma**2), preimage=KIM_PREIMAGE)  # fmt: skip
    images = model.fit(X).reconstruct(_reduced(split, 3)[1]).reshape(split.test.shape)
    restored = Restored("KHA", rank, images, len(X), sigma)
    gains: Rows = [{"factor": 3, "sigma": sigma, **row} for row in tried]
    return Findings({"errors": [_row(restored, split, 3, f", σ = {sigma:g}")], "gains": gains})


def summary(tables: Tables) -> dict[str, Rows]:
    """Compare errors from a third of the side, with the most components, to linear PCA."""
    rows = [row for row in tables["errors"] if row["factor"] == 3 and row["components"]]
    last = {str(row["method"]): float(row["squared_error"] or 0)
            for row in sorted(rows, key=lambda row: float(row["components"] or 0))}  # fmt: skip
    linear = last["linear PCA"]
    return {"ratios": [{"method": name, "ratio": error / linear} for name, error in last.items()]}
