"""Kim 2003, figure 4: components of natural image patches, compared with linear PCA."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.linalg import subspace_angles

from ikpca import KernelPCA
from ikpca.kernels import Floats, Gaussian
from ikpca_papers.applications import draw_patches
from ikpca_papers.as_printed import COMPONENT_SIGMA, FACE_PASSES
from ikpca_papers.claims import Rows
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.kim2003.gains import kha_model, tune_gain
from ikpca_papers.memory import PeakMemory
from ikpca_papers.metrics import exponent
from ikpca_papers.subprocesses import Send, run_in_subprocess


def plan(request: Request) -> list[Part]:
    """Plan the paper's width on all patches, all widths on a part of them, and the memory."""
    settings, seed = request.settings, request.seed
    images = [np.asarray(image) for name, image in request.inputs.arrays.items()
              if name.startswith("train/")]  # fmt: skip
    rng = np.random.RandomState(seed)
    patches = draw_patches(images, (settings["patch"],) * 2, settings["patches"], rng)
    few = patches[: settings["few"]]
    runs = [(COMPONENT_SIGMA, patches), *((sigma, few) for sigma in settings["sigmas"])]
    parts = [
        Part(f"σ = {sigma:g}, {len(X)} patches", partial(_compare, X, sigma, settings, seed))
        for sigma, X in runs
    ]
    if settings["memory"]:
        parts.append(Part("memory", partial(_measure_memory, patches, settings, seed)))
    return parts


def _compare(X: Floats, sigma: float, settings: Mapping[str, Any], seed: int) -> Findings:
    """Compute angles between the spaces of projections, and components as images."""
    r, few = settings["components"], settings["compared"]
    rows, gamma = X.astype(np.float32), 1 / (2 * sigma**2)
    gain, gains = tune_gain(Gaussian(gamma), X[: settings["tuning"]], r, FACE_PASSES, seed)
    shared: dict[str, Any] = {
        "kernel": "rbf", "gamma": gamma, "max_memory": settings["max_memory"], "copy_X": False,
    }  # fmt: skip
    models = {
        "KHA": kha_model(r, len(X), FACE_PASSES, gain, seed, **shared),
        "KPCA": KernelPCA(r, eigen_solver="krylov", tol=1e-5, random_state=seed, **shared),
    }
    projections = {name: model.fit_transform(rows)[:, :few] for name, model in models.items()}
    centered = X - X.mean(axis=0)
    axes = np.linalg.eigh(centered.T @ centered)[1][:, ::-1][:, :r]
    linear = centered @ axes[:, :few]
    table: Rows = [
        {"sigma": sigma, "patches": len(X), "all": len(X) == settings["patches"], "method": name,
         "angle_to_linear": mean_angle(projected, linear),
         "angle_to_exact": mean_angle(projected, projections["KPCA"])}
        for name, projected in projections.items()
    ]  # fmt: skip
    # Σ_j a_j x_j: the direction of a component in input space; exact for wide kernels.
    arrays = {
        name: _pictures(model.coefficients_ @ centered, settings["patch"])
        for name, model in models.items()
    }
    arrays["linear PCA"] = _pictures(axes.T, settings["patch"])
    named: Rows = [{"sigma": sigma, "patches": len(X), **row} for row in gains]
    return Findings({"angles": table, "gains": named}, arrays)


def mean_angle(first: Floats, second: Floats) -> float:
    """Return the mean principal angle between the spans of columns, in degrees."""
    angles = subspace_angles(np.asarray(first, np.float64), np.asarray(second, np.float64))
    return float(np.degrees(angles).mean())


def _measure_memory(X: Floats, settings: Mapping[str, Any], seed: int) -> Findings:
    """Measure the peak memory of a pass of KHA for growing numbers of patches."""
    rows = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, X.astype(np.float32))
        for n_rows in settings["memory"]:
            task = partial(_peak_memory, path, n_rows, settings["components"], seed)
            rows.append(run_in_subprocess("KHA", task, lambda message: None))
    if any(row["peak_megabytes"] is None for row in rows):
        return Findings({"memory": rows})
    peaks = [row["peak_megabytes"] for row in rows]
    growth: Rows = [{"exponent": exponent(settings["memory"], peaks)}]
    return Findings({"memory": rows, "memory_growth": growth})


def _peak_memory(path: Path, n_rows: int, r: int, seed: int, send: Send) -> dict[str, Any]:
    """Run one pass in this process; the rows are part of the peak, as in O(rl + lN)."""
    stored = np.load(path, mmap_mode="r")
    # A budget in which KHA runs, some times the formula: no kernel values are kept.
    columns = r + stored.shape[1]
    model = kha_model(r, n_rows, 1, 1e-3, seed, kernel="rbf", gamma=1 / (2 * COMPONENT_SIGMA**2),
                      max_memory=2**21 + 4 * n_rows * (8 * columns + 1024), copy_X=False,
                      n_jobs=1)  # fmt: skip
    # Compile first; that is not part of the fit.
    kha_model(r, 8 * r, 1, 1e-3, seed).fit(np.array(stored[: 8 * r]))
    memory = PeakMemory()
    model.fit(np.array(stored[:n_rows]))
    peak = memory.above_baseline()
    return {
        "patches": n_rows,
        "peak_megabytes": None if peak is None else peak / 1e6,
        "formula_megabytes": 4 * n_rows * columns / 1e6,
        "matrix_megabytes": 4 * n_rows**2 / 1e6,
    }


def _pictures(components: Floats, side: int) -> Floats:
    """Scale to gray levels from 0 to 1 with zero at 0.5; signs with a positive sum."""
    signs = np.where(components.sum(axis=1, keepdims=True) < 0, -1, 1)
    largest = np.abs(components).max(axis=1, keepdims=True)
    return (0.5 + 0.5 * signs * components / largest).reshape(-1, side, side)
