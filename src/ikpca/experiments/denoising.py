"""Image denoising (Günter 2006, section 5.2): ours, and what it must be shown beside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ikpca.applications import PatchGrid, denoise_image
from ikpca.estimators import KernelPCA
from ikpca.kernels import Floats
from ikpca.measures import signal_to_noise_ratio

__all__ = ["DENOISERS", "VARIANTS", "Case", "Denoised", "cases", "denoised", "oracles"]

#: Windows of the contestants that have none of their own.
_SIZE, _STRIDE = 9, 2
_RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40)
_NEIGHBOURS = (5, 10, 20, 40, 80)


@dataclass(frozen=True)
class Case:
    """An image with and without noise, pixels from 0 to 1."""

    name: str
    level: float
    clean: Floats
    noisy: Floats


@dataclass(frozen=True)
class Denoised:
    """What a contestant made of a case; ``note`` says what was chosen by looking at the answer."""

    name: str
    image: Floats
    decibels: float
    seconds: float
    note: str = ""


def cases(folder: Path | None, levels: tuple[float, ...] = (0.1, 0.2)) -> Iterator[Case]:
    """Cameraman, boat and house from a local folder, or scikit-learn's two photographs in grey."""
    for number, (name, clean) in enumerate(_images(folder).items()):
        for level in levels:
            rng = np.random.default_rng([number, round(1000 * level)])
            yield Case(name, level, clean, clean + level * rng.normal(size=clean.shape))


def _images(folder: Path | None) -> dict[str, Floats]:
    if folder is not None:
        with np.load(folder / "test_images_512.npz") as data:
            return {name: data[name] / 255 for name in ("cameraman", "boat", "house")}
    from sklearn.datasets import load_sample_image

    # Luma, and every second pixel of the middle: a picture of 192 by 192.
    weights = np.array([0.299, 0.587, 0.114]) / 255
    return {
        name: (load_sample_image(f"{name}.jpg") @ weights)[20:404:2, 120:504:2]
        for name in ("china", "flower")
    }


def denoised(name: str, denoiser: Callable[[Floats], Floats], case: Case) -> Denoised:
    """Run a denoiser, which sees nothing but the noisy image."""
    begun = time.perf_counter()
    image = denoiser(case.noisy)
    seconds = time.perf_counter() - begun
    return Denoised(name, image, signal_to_noise_ratio(case.clean, image), seconds)


def oracles(case: Case) -> Iterator[Denoised]:
    """Contestants with their parameter chosen by the clean image, which flatters them."""
    yield _best("linear PCA", "rank", _linear_pca(case.noisy), case)
    yield _best("neighbour mean", "neighbours", _neighbour_means(case.noisy), case)
    try:
        yield _best("non-local means", "h/σ, patch, distance", _non_local_means(case), case)
    except ImportError:
        return


def _best(name: str, chosen: str, found: Iterator[tuple[Any, Floats]], case: Case) -> Denoised:
    begun = time.perf_counter()
    scored = [
        (signal_to_noise_ratio(case.clean, image), setting, image) for setting, image in found
    ]
    decibels, setting, image = max(scored, key=lambda one: one[0])
    return Denoised(name, image, decibels, time.perf_counter() - begun, f"{chosen} {setting}")


def _linear_pca(noisy: Floats) -> Iterator[tuple[int, Floats]]:
    """Every rank, from all windows of the image."""
    grid = PatchGrid(noisy.shape, _SIZE, _STRIDE)
    windows = grid.extract(noisy)
    mean = windows.mean(axis=0)
    axes = np.linalg.eigh(np.cov(windows.T))[1][:, ::-1]
    for rank in _RANKS:
        kept = axes[:, :rank]
        yield rank, grid.assemble((windows - mean) @ kept @ kept.T + mean)


def _neighbour_means(noisy: Floats) -> Iterator[tuple[int, Floats]]:
    """Every window replaced by the mean of its nearest among two thousand others: no PCA at all."""
    grid = PatchGrid(noisy.shape, _SIZE, _STRIDE)
    windows = grid.extract(noisy).astype(np.float32)
    known = np.random.default_rng(0).permutation(windows)[:2000]
    search = NearestNeighbors(n_neighbors=max(_NEIGHBOURS), algorithm="brute").fit(known)
    near = search.kneighbors(windows, return_distance=False)
    for number in _NEIGHBOURS:
        total = sum(known[near[:, place]] for place in range(number))
        yield number, grid.assemble(total / number)


def _non_local_means(case: Case) -> Iterator[tuple[tuple[float, int, int], Floats]]:
    """scikit-image's, told the true noise."""
    from skimage.restoration import denoise_nl_means

    for share in (0.6, 0.8):
        for patch, distance in ((5, 6), (7, 11)):
            image = denoise_nl_means(
                case.noisy,
                patch_size=patch,
                patch_distance=distance,
                h=share * case.level,
                sigma=case.level,
            )
            yield (share, patch, distance), image


#: Nothing set; and one thing changed at a time.
DENOISERS: dict[str, Callable[[Floats], Floats]] = {"ours": denoise_image}
VARIANTS: dict[str, Callable[[Floats], Floats]] = {
    "projection only": partial(
        denoise_image,
        scheme="single",
        shrink=False,
        pca=KernelPCA(12, kernel="rbf", gamma="scale", random_state=0),
    ),
    "one model": partial(denoise_image, scheme="single"),
    "sub-images": partial(denoise_image, scheme="sub-images"),
    "groups = ours": denoise_image,
    "linear kernel": partial(denoise_image, pca=KernelPCA(64, kernel="linear", tol=1e-3)),
    "means removed": partial(denoise_image, remove_means=True),
    "smooth overlaps": partial(denoise_image, window="smooth"),
    "two rounds": partial(denoise_image, rounds=2),
}
