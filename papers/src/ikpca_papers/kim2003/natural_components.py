"""Kim 2003, figure 4: components of natural image patches, compared with linear PCA."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import subspace_angles

from ikpca import KernelPCA
from ikpca.applications import draw_patches
from ikpca.kernels import Floats
from ikpca_papers.claims import Cell
from ikpca_papers.experiment import Findings, Part, Request
from ikpca_papers.memory import PeakMemory


def plan(request: Request) -> list[Part]:
    """Plan one part per kernel width."""
    settings = request.settings
    images = [np.asarray(image) * 255 for name, image in request.inputs.arrays.items()
              if name.startswith("train/")]  # fmt: skip
    rng = np.random.RandomState(request.seed)
    patches = draw_patches(images, (settings["patch"],) * 2, settings["patches"], rng)
    return [
        Part(f"σ = {sigma}", partial(_compare, patches, sigma, settings, request.seed))
        for sigma in settings["sigmas"]
    ]


def _compare(X: Floats, sigma: float, settings: Mapping[str, Any], seed: int) -> Findings:
    """Compute angles between the spaces of projections, and components as images."""
    r, few = settings["components"], settings["compared"]
    rows = X.astype(np.float32)
    memory = PeakMemory()
    model = KernelPCA(
        r, kernel="rbf", gamma=1 / (2 * sigma**2), eigen_solver="krylov", tol=1e-3,
        max_memory=settings["max_memory"], random_state=seed,
    ).fit(rows)  # fmt: skip
    peak = memory.above_baseline()
    centred = X - X.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :r]
    linear = centred @ axes
    projections = model.eigenvectors_[:, :few].astype(np.float64)
    angles = np.degrees(subspace_angles(projections, linear[:, :few]))
    row: dict[str, Cell] = {
        "sigma": sigma,
        "largest_angle": float(angles.max()),
        "mean_angle": float(angles.mean()),
        "peak_share": None if peak is None else peak / (4 * len(X) ** 2),
    }
    # Σ_j a_j x_j: the direction of a component in input space; exact for wide kernels.
    pictures = _pictures((centred.T @ model.eigenvectors_).T, settings["patch"])
    arrays = {"kernel": pictures, "linear": _pictures(axes.T, settings["patch"])}
    return Findings({"angles": [row]}, arrays)


def _pictures(components: Floats, side: int) -> Floats:
    """Scale to gray levels from 0 to 1 with zero at 0.5; signs with a positive sum."""
    signs = np.where(components.sum(axis=1, keepdims=True) < 0, -1, 1)
    largest = np.abs(components).max(axis=1, keepdims=True)
    return (0.5 + 0.5 * signs * components / largest).reshape(-1, side, side)
