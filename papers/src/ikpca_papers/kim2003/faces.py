"""Kim 2003, figures 2 and 3: super-resolution of faces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from ikpca.applications import Hyperresolution, box_mean, enlarge
from ikpca.kernels import Floats
from ikpca_papers.claims import Rows
from ikpca_papers.experiment import Findings, Part, Request

#: Of the paper, for pixels from 0 to 1.
PAPER_SIGMA = 1.0
_SIDE = 60


@dataclass(frozen=True)
class FaceSplit:
    """Faces of high resolution, split into training and test faces."""

    train: Floats
    test: Floats

    @classmethod
    def random(cls, faces: Floats, n_test: int, seed: int = 0) -> FaceSplit:
        """Draw the test faces at random; as in the paper, persons may be in both parts."""
        order = np.random.default_rng(seed).permutation(len(faces))
        return cls(faces[order[n_test:]], faces[order[:n_test]])

    def reduced(self, number: int) -> FaceSplit:
        """Return the split with fewer training faces."""
        return FaceSplit(self.train[:number], self.test)


@dataclass(frozen=True)
class Restored:
    """Test faces restored by one method.

    Parameters
    ----------
    name : str
    n_components : int or None
        None for interpolation.
    images : ndarray of shape (n_faces, height, width)
    error : float
        Mean squared, for pixels from 0 to 255.
    sigma : float or None
    """

    name: str
    n_components: int | None
    images: Floats
    error: float
    sigma: float | None = None


def restore(
    split: FaceSplit, factor: int, ranks: tuple[int, ...], n_few: int
) -> Iterator[Restored]:
    """Reduce the test faces, and restore them with every method and rank.

    σ is chosen on training faces at the largest rank, and kept for the others; the paper's σ is
    used at that rank only.
    """
    low = np.array([box_mean(face, factor) for face in split.test])
    for method in ("nearest", "bicubic"):
        images = np.array([enlarge(face, factor, method) for face in low])
        yield _restored(method, None, images, split)
    blurred = np.array([enlarge(face, factor) for face in low]).reshape(len(low), -1)
    linear = PCA(max(ranks), svd_solver="full").fit(split.train.reshape(len(split.train), -1))
    scores = linear.transform(blurred)
    for rank in ranks:
        flat = scores[:, :rank] @ linear.components_[:rank] + linear.mean_
        yield _restored("linear PCA", rank, flat.reshape(split.test.shape), split)
    for known in (split, split.reduced(n_few)):
        yield from _restore_by_kernel_pca(known, low, factor, ranks, None)
        yield from _restore_by_kernel_pca(known, low, factor, (max(ranks),), PAPER_SIGMA)


def _restore_by_kernel_pca(
    split: FaceSplit, low: Floats, factor: int, ranks: tuple[int, ...], sigma: float | None
) -> Iterator[Restored]:
    gamma: float | str = "auto" if sigma is None else 1 / (2 * sigma**2)
    name = f"KernelPCA on {len(split.train)}, σ {'chosen' if sigma is None else f'= {sigma:g}'}"
    for rank in sorted(ranks, reverse=True):
        model = Hyperresolution(factor, None, n_components=rank, gamma=gamma, random_state=0)
        images = np.array(model.fit(split.train).transform(low))
        gamma = model.gamma_
        yield _restored(name, rank, images, split, float((2 * gamma) ** -0.5))


def _restored(
    name: str, rank: int | None, images: Floats, split: FaceSplit, sigma: float | None = None
) -> Restored:
    error = 255**2 * float(np.mean(np.square(images - split.test)))
    return Restored(name, rank, images, error, sigma)


def large_faces(folder: Path) -> Floats:
    """Load Extended Yale B from a local folder, 60×60, pixels from 0 to 1."""
    with np.load(folder / "yaleb_cropped_64x56.npz") as data:
        return enlarged_faces(data["images"])


def enlarged_faces(pixels: NDArray[np.uint8]) -> Floats:
    """Resize faces of bytes to 60×60, pixels from 0 to 1."""
    images = pixels / 255
    zooms = (1, *(_SIDE / length for length in images.shape[1:]))
    return ndimage.zoom(images, zooms, order=1, mode="nearest", grid_mode=True)


def small_digits() -> Floats:
    """Load scikit-learn's digits, cropped to 6×6, as a substitute for faces."""
    return load_digits().images[:, 1:7, 1:7] / 16


#: Faces in the figure.
_N_SHOWN = 5


def plan(request: Request) -> list[Part]:
    """Plan one part per factor."""
    images, settings = np.asarray(request.inputs.arrays["images"]), request.settings
    return [
        Part(f"factor {factor}", partial(_restore, images, factor, settings, request.seed))
        for factor in settings["factors"]
    ]


def _restore(images: Floats, factor: int, settings: Mapping[str, Any], seed: int) -> Findings:
    split = FaceSplit.random(images, settings["tests"], seed)
    if settings["train"]:
        split = split.reduced(settings["train"])
    ranks = tuple(settings["ranks"])
    rows: Rows = []
    arrays = {f"factor {factor}/original": split.test[:_N_SHOWN]}
    for found in restore(split, factor, ranks, settings["few"]):
        family = "kernel" if found.name.startswith("KernelPCA") else found.name
        rows.append(
            {
                "factor": factor,
                "method": found.name,
                "family": family,
                "components": found.n_components,
                "sigma": found.sigma,
                "mse": found.error,
            }
        )
        if found.n_components in (None, max(ranks)):
            arrays[f"factor {factor}/{found.name}"] = found.images[:_N_SHOWN]
    return Findings({"errors": rows}, arrays)
