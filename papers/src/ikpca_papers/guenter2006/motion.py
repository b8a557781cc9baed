"""Günter 2006, figure 4: denoising of a recorded walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ikpca.gram import ComputedGram, full_matrix
from ikpca.kernels import Floats, Gaussian
from ikpca.solvers import Outcome, solve_dense
from ikpca_papers.applications import denoise_motion
from ikpca_papers.claims import DIVERGED, Cell, Rows
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.guenter2006.image_denoising import denoise_rows
from ikpca_papers.tuning import (
    LABELS,
    METHOD_GROUPS,
    Problem,
    start_of_meta_descent,
    tuned_curves,
)


def plan(request: Request) -> list[Part]:
    """Plan defaults, a table of units and levels of noise, and the methods in some units."""
    settings, arrays = request.settings, request.inputs.arrays
    clean = np.asarray(arrays["positions"])
    pattern = np.random.default_rng(request.seed).normal(size=clean.shape)
    walk = _Walk(clean, pattern, settings["variance"], settings["components"])
    units, levels, ours = settings["units"], settings["levels"], settings["ours"]
    seeds = range(request.seed, request.seed + settings["seeds"])
    return [
        Part("defaults", partial(walk.run_defaults, arrays["parents"], arrays["frame_rate"], ours,
                                 request.seed)),
        Part("units and noise", partial(walk.run_exact, units, levels)),
        *(
            Part(
                f"{unit}, {' and '.join(methods)}",
                partial(walk.run_tuned, unit, units[unit], settings["noise"], methods, seeds,
                        settings["passes"]),
            )
            for unit in settings["tuned_units"]
            for methods in METHOD_GROUPS[1:]
        ),
    ]  # fmt: skip


@dataclass(frozen=True)
class _Walk:
    """Clean positions in meters, a pattern of noise of unit variance, and the paper's settings."""

    clean: Floats
    pattern: Floats
    variance: float
    n_components: int

    @property
    def kernel(self) -> Gaussian:
        """Gaussian kernel of the paper's width."""
        return Gaussian(1 / (2 * self.variance))

    def noisy(self, level: float) -> Floats:
        """Return positions with noise of a standard deviation in meters."""
        return np.asarray(self.clean + level * self.pattern)

    def rows(self, level: float, unit: float) -> Floats:
        """Return noisy frames as rows in a unit of so many meters."""
        return self.noisy(level).reshape(len(self.clean), -1) / unit

    def kernel_matrix(self, level: float, unit: float) -> Floats:
        """Return K of the noisy frames."""
        return full_matrix(ComputedGram(self.kernel, self.rows(level, unit)))

    def reduction(self, level: float, denoised: Floats) -> float:
        """Return the reduction of the mean squared error relative to the noise, in per cent."""
        noise = np.mean((self.noisy(level) - self.clean) ** 2)
        return float(100 * (1 - np.mean((denoised - self.clean) ** 2) / noise))

    def denoise(self, level: float, unit: float, A: Floats, projections: Floats) -> float:
        """Return the reduction by pre-images of the frames' projections."""
        rows = denoise_rows(self.rows(level, unit), self.variance**0.5, A, projections)
        return self.reduction(level, unit * rows.reshape(self.clean.shape))

    def linear_pca(self, level: float) -> float:
        """Return the reduction by linear PCA at the rank that suits the clean frames."""
        rows = self.rows(level, 1.0)
        mean = rows.mean(axis=0)
        axes = np.linalg.svd(rows - mean, full_matrices=False)[2]
        images = ((rows - mean) @ axes[:rank].T @ axes[:rank] + mean for rank in range(1, 31))
        return max(self.reduction(level, image.reshape(self.clean.shape)) for image in images)

    def run_exact(self, units: Mapping[str, float], levels: Sequence[float]) -> Findings:
        """Denoise with exact components in every unit, at every level of noise."""
        table: Rows = []
        for name, unit in units.items():
            for level in levels:
                exact = solve_dense(self.kernel_matrix(level, unit), self.n_components)
                fall = self.denoise(level, unit, exact.coefficients, exact.projections)
                linear = self.linear_pca(level)
                table.append(
                    {"unit": name, "meters": unit, "noise": level, "kernel_pca": fall,
                     "linear_pca": linear}
                )  # fmt: skip
        return Findings({"units": table})

    def run_tuned(
        self,
        name: str,
        unit: float,
        level: float,
        methods: Sequence[str],
        seeds: Sequence[int],
        passes: int,
    ) -> Findings:
        """Tune methods in a unit at a level of noise, and denoise."""
        problem = Problem.of(name, self.kernel, self.rows(level, unit), self.n_components)
        curves, gains, solutions = tuned_curves(problem, methods, seeds, passes)
        reductions: Rows = []
        for (method, seed), one in solutions.items():
            row: dict[str, Cell] = {"method": LABELS[method], "seed": seed, "noise": level}
            if one.outcome is Outcome.DIVERGED:
                reductions.append({**row, "outcome": DIVERGED})
            else:
                fall = self.denoise(level, unit, one.coefficients, one.projections)
                reductions.append({**row, "reduction": fall})
        tables = {"curves": curves, "gains": gains, "reductions": reductions}
        if "kha/et" in methods:
            eta0 = next(float(row["gain"] or 0) for row in gains)
            tables["starts"] = [start_of_meta_descent(problem, seeds, passes, eta0)]
        return Findings({key: [{"unit": name, **row} for row in rows]
                         for key, rows in tables.items()})  # fmt: skip

    def run_defaults(
        self, parents: Floats, frame_rate: Floats, ours: Mapping[str, float], seed: int
    ) -> Findings:
        """Denoise with settings from the noisy frames alone, and with a width for meters."""
        level = ours["noise"]
        noisy = self.noisy(level)
        denoised = denoise_motion(noisy)
        wide: dict[str, Any] = {"gamma": 1 / (2 * ours["variance"]), "eigen_solver": "kha-smd"}
        narrow = denoise_motion(noisy, n_components=self.n_components, random_state=seed, **wide)
        reductions = {
            "defaults": self.reduction(level, denoised),
            "automatic KHA-SMD, σ² = 0.1 m²": self.reduction(level, narrow),
            "linear PCA, best rank": self.linear_pca(level),
        }
        rows: Rows = [
            {"unit": "m", "method": name, "noise": level, "reduction": fall}
            for name, fall in reductions.items()
        ]
        arrays = {"clean": self.clean, "noisy": noisy, "denoised": denoised}
        return Findings(
            {"reductions": rows}, {**arrays, "parents": parents, "frame_rate": frame_rate}
        )
