"""Günter 2006, figure 2: denoising of sub-images of Lena."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ikpca import KernelPCA
from ikpca.applications import PatchGrid, denoise_image
from ikpca.kernels import Floats, Gaussian
from ikpca.metrics import signal_to_noise_ratio
from ikpca.preimages import FixedPoint, Preimages
from ikpca.subspace import Expansion
from ikpca_papers.claims import Cell, Rows
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.kim2003.natural_super_resolution import centre
from ikpca_papers.tuning import CHAINS, LABELS, Problem, follow, paper_options, tuned_runs

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


@dataclass(frozen=True)
class SubImages:
    """Four overlapping corners of a square image, each a grid of windows.

    Examples
    --------
    >>> parts = SubImages(side=256, part=133, window=11, stride=2)
    >>> parts.grid.places
    (62, 62)
    >>> image = np.random.default_rng(0).random((256, 256))
    >>> back = parts.joined([parts.grid.extract(one) for one in parts.cut(image)])
    >>> bool(np.allclose(back, image))
    True
    """

    side: int
    part: int
    window: int
    stride: int

    @property
    def grid(self) -> PatchGrid:
        """Of windows in a sub-image."""
        return PatchGrid((self.part, self.part), self.window, self.stride)

    def _places(self) -> Iterator[tuple[slice, slice]]:
        starts = (0, self.side - self.part)
        for top in starts:
            for left in starts:
                yield slice(top, top + self.part), slice(left, left + self.part)

    def cut(self, image: Floats) -> list[Floats]:
        """The four sub-images."""
        return [image[place] for place in self._places()]

    def joined(self, windows: Sequence[Floats]) -> Floats:
        """An image from the windows of all sub-images; where these overlap, their mean."""
        total, count = np.zeros((2, self.side, self.side))
        for place, rows in zip(self._places(), windows, strict=True):
            total[place] += self.grid.assemble(rows)
            count[place] += 1
        return total / count


def plan(request: Request) -> list[Part]:
    """Tuned methods, KHA with a constant gain for many passes, and what they are shown beside."""
    settings = request.settings
    side = settings["side"]
    clean = centre(np.asarray(request.inputs.arrays["image"]), (side, side), 1)
    rng = np.random.default_rng(request.seed)
    noisy = clean + settings["noise"] * rng.normal(size=clean.shape)
    parts = SubImages(side, settings["part"], settings["window"], settings["stride"])
    task = _Task(parts, clean, noisy, settings["sigma"], settings["components"], request.seed)
    long = (settings["long_passes"], settings["long_gain"])
    return [
        Part("baselines", partial(_baselines, clean, noisy, settings["noise"])),
        Part(f"kha, {long[0]} passes", partial(task.long, *long, settings["passes"])),
        *(
            Part(" and ".join(chain), partial(task.tuned, chain, settings["passes"]))
            for chain in CHAINS[1:]
        ),
    ]


@dataclass(frozen=True)
class _Task:
    """What all methods share."""

    parts: SubImages
    clean: Floats
    noisy: Floats
    sigma: float
    n_components: int
    seed: int

    def tuned(self, chain: Sequence[str], passes: int) -> Findings:
        """Gains are tuned on the first sub-image and used on all four."""
        problems = self._problems()
        runs = tuned_runs(problems[0], tuple(chain), self.seed, passes)
        found = [
            self._denoised(method, problems, passes, 1, run.gains) for method, run in runs.items()
        ]
        return _together(found)

    def long(self, passes: int, gain: float, early: int) -> Findings:
        """KHA with the constant gain of the papers, and how far it was after the early passes."""
        label = f", {passes} passes"
        found = self._denoised("kha", self._problems(), passes, 1, {"gain": gain}, label)
        errors = [row["excess_error"] for row in found.tables["curves"] if row["pass"] == early]
        mean = float(np.mean(np.array(errors, dtype=np.float64)))
        first: dict[str, Cell] = {"method": "KHA", "passes": early, "excess_error": mean}
        named = [{**row, "method": "KHA"} for row in found.tables["curves"]]
        return Findings({"curves": named, "images": [first, *found.tables["images"]]}, found.arrays)

    def _problems(self) -> list[Problem]:
        kernel = Gaussian(1 / (2 * self.sigma**2))
        windows = map(self.parts.grid.extract, self.parts.cut(self.noisy))
        return [Problem.of("windows", kernel, rows, self.n_components) for rows in windows]

    def _denoised(
        self,
        method: str,
        problems: Sequence[Problem],
        passes: int,
        every: int,
        gains: dict[str, float],
        suffix: str = "",
    ) -> Findings:
        name = LABELS[method] + suffix
        curves: Rows = []
        windows = []
        noisy = map(self.parts.grid.extract, self.parts.cut(self.noisy))
        for number, (problem, rows) in enumerate(zip(problems, noisy, strict=True)):
            options = paper_options(
                method, self.n_components, len(rows), self.seed, passes=passes, **gains
            )
            errors, solution = follow(problem, options, self.seed, every=every)
            curves.extend({"method": name, "sub_image": number, **row} for row in errors)
            windows.append(
                denoised_rows(rows, self.sigma, solution.coefficients, solution.projections)
            )
        image = self.parts.joined(windows)
        last = [row["excess_error"] for row in curves if row["pass"] == passes]
        row: dict[str, Cell] = {
            "method": name,
            "passes": passes,
            **gains,
            "excess_error": float(np.mean(np.array(last, dtype=np.float64))),
            "snr": signal_to_noise_ratio(self.clean, image),
        }
        return Findings({"curves": curves, "images": [row]}, {name: image})


def denoised_rows(X: Floats, sigma: float, A: Floats, projections: Floats) -> Floats:
    """The pre-image of every row's projection on the components, found from the row itself."""
    # w = Σ_j (A_j − Ā) Φ(x_j), and the mean of the images, which projections do not hold.
    vectors = np.vstack([A - A.mean(axis=1, keepdims=True), np.full(len(X), 1 / len(X))])
    expansion = Expansion(Gaussian(1 / (2 * sigma**2)), X, vectors)
    points = np.column_stack([projections.T, np.ones(len(X))])
    search = FixedPoint(max_iter=50, tol=1e-3)
    strips = expansion.strips(len(X))
    return Preimages.joined([search.find(expansion, points[one], X[one]) for one in strips]).rows


def _baselines(clean: Floats, noisy: Floats, noise: float) -> Findings:
    """Each at its best for the clean image; non-local means where scikit-image is installed."""
    case = Case("image", noise, clean, noisy)
    before = signal_to_noise_ratio(clean, noisy)
    found: list[Denoised] = list(oracles(case))
    rows: Rows = [{"method": "noisy", "snr": before}]
    rows += [{"method": one.name, "snr": one.decibels, "note": one.note} for one in found]
    images = {one.name: one.image for one in found}
    return Findings({"images": rows}, {"clean": clean, "noisy": noisy, **images})


def _together(found: Sequence[Findings]) -> Findings:
    tables: dict[str, Rows] = {"curves": [], "images": []}
    for one in found:
        for name, rows in one.tables.items():
            tables[name] += rows
    return Findings(tables, {name: image for one in found for name, image in one.arrays.items()})
