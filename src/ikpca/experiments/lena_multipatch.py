"""Günter 2006, figure 2: an image as four sub-images of windows, denoised by each method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ikpca.applications import PatchGrid
from ikpca.experiments.denoising import Case, Denoised, oracles
from ikpca.experiments.hyperresolution import centre
from ikpca.experiments.learning_curves import CHAINS, LABELS, follow
from ikpca.experiments.parts import Findings, Part, Request
from ikpca.experiments.selections import Cell, Rows
from ikpca.experiments.tuning import Problem, paper_options, tuned_runs
from ikpca.hebbian import HebbianSolution
from ikpca.kernels import Floats, Gaussian
from ikpca.measures import signal_to_noise_ratio
from ikpca.preimages import Expansion, FixedPoint, Preimages

__all__ = ["SubImages", "denoised_rows", "plan"]


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
            windows.append(denoised_rows(rows, self.sigma, solution))
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


def denoised_rows(X: Floats, sigma: float, solution: HebbianSolution) -> Floats:
    """The pre-image of every row's projection on the components, found from the row itself."""
    A = solution.coefficients
    # w = Σ_j (A_j − Ā) Φ(x_j), and the mean of the images, which projections do not hold.
    vectors = np.vstack([A - A.mean(axis=1, keepdims=True), np.full(len(X), 1 / len(X))])
    expansion = Expansion(Gaussian(1 / (2 * sigma**2)), X, vectors)
    points = np.column_stack([solution.projections.T, np.ones(len(X))])
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
