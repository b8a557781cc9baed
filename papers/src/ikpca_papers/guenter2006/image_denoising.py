"""Günter 2006, figure 2: denoising of sub-images of Lena."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ikpca import KernelPCA
from ikpca.kernels import Floats, Gaussian
from ikpca.metrics import signal_to_noise_ratio
from ikpca.preimages import FixedPoint
from ikpca.solvers import Outcome
from ikpca.subspace import Subspace
from ikpca_papers.applications import PatchGrid
from ikpca_papers.as_printed import paper_solver
from ikpca_papers.claims import Cell, Rows
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.kim2003.natural_super_resolution import crop_center
from ikpca_papers.tuning import (
    LABELS,
    METHOD_GROUPS,
    Problem,
    TunedRun,
    learning_curve,
    outcome_columns,
    tuned_runs,
)

#: Windows of the methods for comparison.
_SIZE, _STRIDE = 9, 2
_RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40)
_NEIGHBORS = (5, 10, 20, 40, 80)


@dataclass(frozen=True)
class Case:
    """An image with and without noise, pixels from 0 to 1."""

    name: str
    level: float
    clean: Floats
    noisy: Floats


@dataclass(frozen=True)
class Denoised:
    """Image denoised by one method; ``note`` has the parameter chosen with the clean image."""

    name: str
    image: Floats
    decibels: float
    seconds: float
    note: str = ""


def cases(folder: Path | None, levels: tuple[float, ...] = (0.1, 0.2)) -> Iterator[Case]:
    """Yield cameraman, boat and house from a folder, or scikit-learn's photographs, with noise."""
    for number, (name, clean) in enumerate(_images(folder).items()):
        for level in levels:
            rng = np.random.default_rng([number, round(1000 * level)])
            yield Case(name, level, clean, clean + level * rng.normal(size=clean.shape))


def _images(folder: Path | None) -> dict[str, Floats]:
    if folder is not None:
        with np.load(folder / "test_images_512.npz") as data:
            return {name: data[name] / 255 for name in ("cameraman", "boat", "house")}
    from sklearn.datasets import load_sample_image

    # Luma, and every second pixel of the center: 192×192.
    weights = np.array([0.299, 0.587, 0.114]) / 255
    return {
        name: (load_sample_image(f"{name}.jpg") @ weights)[20:404:2, 120:504:2]
        for name in ("china", "flower")
    }


def run_denoiser(name: str, denoiser: Callable[[Floats], Floats], case: Case) -> Denoised:
    """Run a denoiser on the noisy image and measure the result."""
    start = time.perf_counter()
    image = denoiser(case.noisy)
    seconds = time.perf_counter() - start
    return Denoised(name, image, signal_to_noise_ratio(case.clean, image), seconds)


def oracles(case: Case) -> Iterator[Denoised]:
    """Run methods whose parameter is chosen with the clean image, in their favor."""
    yield _best("linear PCA", "rank", _linear_pca(case.noisy), case)
    yield _best("neighbor mean", "neighbors", _neighbor_means(case.noisy), case)
    yield _best("non-local means", "h/σ, patch, distance", _non_local_means(case), case)


def _best(name: str, chosen: str, images: Iterator[tuple[Any, Floats]], case: Case) -> Denoised:
    start = time.perf_counter()
    scored = [
        (signal_to_noise_ratio(case.clean, image), setting, image) for setting, image in images
    ]
    decibels, setting, image = max(scored, key=lambda one: one[0])
    return Denoised(name, image, decibels, time.perf_counter() - start, f"{chosen} {setting}")


def _linear_pca(noisy: Floats) -> Iterator[tuple[int, Floats]]:
    """Yield images for every rank of linear PCA of all windows."""
    grid = PatchGrid(noisy.shape, _SIZE, _STRIDE)
    windows = grid.extract(noisy)
    mean = windows.mean(axis=0)
    axes = np.linalg.eigh(np.cov(windows.T))[1][:, ::-1]
    for rank in _RANKS:
        kept = axes[:, :rank]
        yield rank, grid.assemble((windows - mean) @ kept @ kept.T + mean)


def _neighbor_means(noisy: Floats) -> Iterator[tuple[int, Floats]]:
    """Replace every window by the mean of its nearest neighbors among 2,000 windows; no PCA."""
    grid = PatchGrid(noisy.shape, _SIZE, _STRIDE)
    windows = grid.extract(noisy).astype(np.float32)
    training = np.random.default_rng(0).permutation(windows)[:2000]
    search = NearestNeighbors(n_neighbors=max(_NEIGHBORS), algorithm="brute").fit(training)
    near = search.kneighbors(windows, return_distance=False)
    for number in _NEIGHBORS:
        total = sum(training[near[:, place]] for place in range(number))
        yield number, grid.assemble(total / number)


def _non_local_means(case: Case) -> Iterator[tuple[tuple[float, int, int], Floats]]:
    """Denoise with scikit-image, given the true noise level."""
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


N_SUB_IMAGES = 4


@dataclass(frozen=True)
class SubImages:
    """Four overlapping corners of a square image, each divided into windows.

    Examples
    --------
    >>> parts = SubImages(side=256, part=133, window=11, stride=2)
    >>> parts.grid.grid_shape
    (62, 62)
    >>> image = np.random.default_rng(0).random((256, 256))
    >>> back = parts.join([parts.grid.extract(one) for one in parts.cut(image)])
    >>> bool(np.allclose(back, image))
    True
    """

    side: int
    part: int
    window: int
    stride: int

    @property
    def grid(self) -> PatchGrid:
        """Grid of windows in a sub-image."""
        return PatchGrid((self.part, self.part), self.window, self.stride)

    def _places(self) -> Iterator[tuple[slice, slice]]:
        starts = (0, self.side - self.part)
        for top in starts:
            for left in starts:
                yield slice(top, top + self.part), slice(left, left + self.part)

    def cut(self, image: Floats) -> list[Floats]:
        """Return the four sub-images."""
        return [image[place] for place in self._places()]

    def join(self, windows: Sequence[Floats]) -> Floats:
        """Assemble an image from the windows of all sub-images, with means where they overlap."""
        total, count = np.zeros((2, self.side, self.side))
        for place, rows in zip(self._places(), windows, strict=True):
            total[place] += self.grid.assemble(rows)
            count[place] += 1
        return total / count


def plan(request: Request) -> list[Part]:
    """Plan tuned methods, KHA with a constant gain, a table of widths and noises, baselines."""
    settings = request.settings
    side = settings["side"]
    clean = crop_center(np.asarray(request.inputs.arrays["image"]), (side, side), 1)
    pattern = np.random.default_rng(request.seed).normal(size=clean.shape)
    parts = SubImages(side, settings["part"], settings["window"], settings["stride"])

    def task(sigma: float, noise: float) -> _Task:
        shared = (settings["components"], settings["passes"], request.seed)
        return _Task(parts, clean, clean + noise * pattern, noise, sigma, *shared)

    judged = task(settings["sigma"], settings["noise"])
    long = (settings["long_passes"], settings["long_gain"])
    return [
        Part("baselines", judged.run_baselines),
        Part(f"kha, {long[0]} passes", partial(judged.run_constant_gain, *long)),
        *(
            Part(" and ".join(methods), partial(judged.run_tuned, methods))
            for methods in METHOD_GROUPS[1:]
        ),
        *(
            Part(f"σ = {sigma:g}, noise {noise:g}",
                 partial(task(sigma, noise).run_trial, settings["long_gain"]))
            for sigma, noise in settings["trials"]
        ),
    ]  # fmt: skip


@dataclass(frozen=True)
class _Task:
    """Data and settings of all methods."""

    parts: SubImages
    clean: Floats
    noisy: Floats
    noise: float
    sigma: float
    n_components: int
    passes: int
    seed: int

    @property
    def kernel(self) -> Gaussian:
        """Gaussian kernel of the paper's width."""
        return Gaussian(1 / (2 * self.sigma**2))

    def run_tuned(self, methods: Sequence[str]) -> Findings:
        """Tune gains for all sub-images, and denoise."""
        problems = self._problems()
        runs = tuned_runs(problems, methods, [self.seed], self.passes)
        results = [
            self._denoise(method, problems, self.passes, run.gains) for method, run in runs.items()
        ]
        return _concatenate(results)

    def run_constant_gain(self, passes: int, gain: float) -> Findings:
        """Run KHA with the constant gain of the papers; also report the error after few passes."""
        label = f", {passes} passes"
        result = self._denoise("kha", self._problems(), passes, {"gain": gain}, label, every=5)
        errors = [
            row["excess_error"] for row in result.tables["curves"] if row["pass"] == self.passes
        ]
        numbers = [float(error) for error in errors if isinstance(error, float)]
        columns = outcome_columns(numbers, diverged=len(numbers) < N_SUB_IMAGES)
        first: dict[str, Cell] = {"method": "KHA", "passes": self.passes, "gain": gain, **columns}
        named = [{**row, "method": "KHA"} for row in result.tables["curves"]]
        return Findings(
            {"curves": named, "images": [first, *result.tables["images"]]}, result.arrays
        )

    def run_trial(self, gain: float) -> Findings:
        """Denoise with exact components; compare the methods on the first sub-image."""
        windows = []
        for rows in self._windows():
            model = KernelPCA(
                self.n_components, kernel=self.kernel, eigen_solver="krylov", tol=1e-6, n_jobs=1,
                random_state=self.seed,
            ).fit(rows)  # fmt: skip
            scale = np.sqrt(model.eigenvalues_)[:, None]
            vectors = model.eigenvectors_.T
            windows.append(denoise_rows(rows, self.sigma, vectors / scale, vectors * scale))
        ratios = _ratios(self.clean, self.parts.join(windows))
        row: dict[str, Cell] = {"sigma": self.sigma, "noise": self.noise, **ratios}
        problem = Problem.of("windows", self.kernel, self._windows()[0], self.n_components)
        runs = {"kha": TunedRun("kha", gain, 0.0)}
        runs |= tuned_runs([problem], METHOD_GROUPS[2], [self.seed], self.passes)
        for method, run in runs.items():
            error = run.mean_error([problem], [self.seed], self.passes)
            row[LABELS[method]] = error if math.isfinite(error) else None
        return Findings({"trials": [row]})

    def run_baselines(self) -> Findings:
        """Run the baselines, each with the best parameter for the clean image."""
        case = Case("image", self.noise, self.clean, self.noisy)
        before = signal_to_noise_ratio(self.clean, self.noisy)
        denoised: list[Denoised] = list(oracles(case))
        rows: Rows = [{"method": "noisy", "snr": before}]
        rows += [{"method": one.name, "snr": one.decibels, "note": one.note} for one in denoised]
        images = {one.name: one.image for one in denoised}
        return Findings({"images": rows}, {"clean": self.clean, "noisy": self.noisy, **images})

    def _windows(self) -> list[Floats]:
        return [self.parts.grid.extract(part) for part in self.parts.cut(self.noisy)]

    def _problems(self) -> list[Problem]:
        return [
            Problem.of("windows", self.kernel, rows, self.n_components) for rows in self._windows()
        ]

    def _denoise(
        self,
        method: str,
        problems: Sequence[Problem],
        passes: int,
        gains: dict[str, float],
        suffix: str = "",
        every: int = 1,
    ) -> Findings:
        """Run a method on all sub-images; without an image if it diverges on one of them."""
        name = LABELS[method] + suffix
        curves: Rows = []
        errors, windows = [], []
        for number, (problem, rows) in enumerate(zip(problems, self._windows(), strict=True)):
            solver = paper_solver(method, self.n_components, len(rows), self.seed, **gains)
            curve, solution = learning_curve(problem, solver, self.seed, passes, every=every)
            curves.extend({"method": name, "sub_image": number, **row} for row in curve)
            if solution.outcome is not Outcome.DIVERGED:
                errors.append(problem.excess_error(solution))
                windows.append(
                    denoise_rows(rows, self.sigma, solution.coefficients, solution.projections)
                )
        diverged = len(windows) < len(problems)
        columns = outcome_columns(errors, diverged=diverged)
        row: dict[str, Cell] = {"method": name, "passes": passes, **gains, **columns}
        if diverged:
            return Findings({"curves": curves, "images": [row]})
        image = self.parts.join(windows)
        return Findings(
            {"curves": curves, "images": [{**row, **_ratios(self.clean, image)}]}, {name: image}
        )


def _ratios(clean: Floats, image: Floats) -> dict[str, float]:
    """Return the signal-to-noise ratio by the variance, and by the squares, of the clean image."""
    by_squares = 10 * np.log10(np.sum(clean**2) / np.sum((clean - image) ** 2))
    return {"snr": signal_to_noise_ratio(clean, image), "snr_squares": float(by_squares)}


def denoise_rows(X: Floats, sigma: float, A: Floats, projections: Floats) -> Floats:
    """Compute the pre-image of every row's projection, starting from the row."""
    # w = Σ_j (A_j − Ā) Φ(x_j), and the mean, which is not part of the projections.
    vectors = np.vstack([A - A.mean(axis=1, keepdims=True), np.full(len(X), 1 / len(X))])
    subspace = Subspace(Gaussian(1 / (2 * sigma**2)), X, vectors)
    points = np.column_stack([projections.T, np.ones(len(X))])
    search = FixedPoint(max_iter=50, tol=1e-3)
    strips = subspace.strips(len(X))
    return np.concatenate([search.find(subspace, points[one], X[one]).rows for one in strips])


def _concatenate(parts: Sequence[Findings]) -> Findings:
    tables: dict[str, Rows] = {"curves": [], "images": []}
    for one in parts:
        for name, rows in one.tables.items():
            tables[name] += rows
    return Findings(tables, {name: image for one in parts for name, image in one.arrays.items()})
