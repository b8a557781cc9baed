"""Günter 2006, figure 4: denoising of a recorded walk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ikpca.applications import denoise_motion
from ikpca.kernels import Floats, Gaussian
from ikpca_papers.claims import Cell, Rows
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.tuning import METHOD_GROUPS, Problem, tuned_curves


def plan(request: Request) -> list[Part]:
    """Plan denoised walks, then the excess error of every method."""
    settings, arrays = request.settings, request.inputs.arrays
    clean = np.asarray(arrays["positions"])[:: settings["every"]]
    rng = np.random.default_rng(request.seed)
    noisy = clean + settings["noise"] * rng.normal(size=clean.shape)
    r, seed = settings["components"], request.seed
    walks = [
        Part(f"denoised, σ² = {variance}", partial(_denoise, clean, noisy, variance, r, seed))
        for variance in settings["variances"]
    ]
    rows = noisy.reshape(len(noisy), -1)
    rate = arrays["frame_rate"] / settings["every"]
    return [
        Part("defaults", partial(_denoise_with_defaults, clean, noisy, arrays["parents"], rate)),
        *walks,
        *(
            Part(
                f"{' and '.join(methods)}, σ² = {variance}, seed {start}",
                partial(_learning_curves, rows, variance, r, methods, start, settings["passes"]),
            )
            for variance in settings["variances"]
            for start in range(seed, seed + settings["seeds"])
            for methods in METHOD_GROUPS
        ),
    ]  # fmt: skip


def _error_reduction(clean: Floats, noisy: Floats, denoised: Floats) -> float:
    """Reduction of the mean squared error relative to the noise, in per cent."""
    error = np.mean((denoised - clean) ** 2) / np.mean((noisy - clean) ** 2)
    return float(100 * (1 - error))


def _denoise(
    clean: Floats, noisy: Floats, variance: float, n_components: int, seed: int
) -> Findings:
    denoised = denoise_motion(
        noisy, gamma=1 / (2 * variance), n_components=n_components, eigen_solver="kha-smd",
        random_state=seed,
    )  # fmt: skip
    row: dict[str, Cell] = {
        "method": "KHA-SMD",
        "variance": variance,
        "fall": _error_reduction(clean, noisy, denoised),
    }
    return Findings({"falls": [row]}, {"denoised": denoised})


def _denoise_with_defaults(
    clean: Floats, noisy: Floats, parents: Floats, frame_rate: Floats
) -> Findings:
    """Denoise with settings from the noisy frames alone, and by linear PCA at its best rank."""
    denoised = denoise_motion(noisy)
    rows = noisy.reshape(len(noisy), -1)
    mean = rows.mean(axis=0)
    axes = np.linalg.svd(rows - mean, full_matrices=False)[2]
    linear = [
        ((rows - mean) @ axes[:rank].T @ axes[:rank] + mean).reshape(clean.shape)
        for rank in range(1, 31)
    ]
    ours = _error_reduction(clean, noisy, denoised)
    best_linear = max(_error_reduction(clean, noisy, image) for image in linear)
    falls: Rows = [
        {"method": "defaults", "variance": None, "fall": ours},
        {"method": "linear PCA, best rank", "variance": None, "fall": best_linear},
    ]
    arrays = {"clean": clean, "noisy": noisy, "denoised": denoised}
    return Findings({"falls": falls}, {**arrays, "parents": parents, "frame_rate": frame_rate})


def _learning_curves(
    rows: Floats, variance: float, n_components: int, methods: Sequence[str], seed: int, passes: int
) -> Findings:
    problem = Problem.of("walk", Gaussian(1 / (2 * variance)), rows, n_components)
    curves, gains, _ = tuned_curves(problem, methods, seed, passes)
    tables = {"curves": curves, "gains": gains}
    width = {"width": f"σ² = {variance}"}
    return Findings({key: [{**width, **row} for row in rows] for key, rows in tables.items()})
