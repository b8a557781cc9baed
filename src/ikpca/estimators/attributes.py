"""Fitted attributes from components, finished or of the moment."""

from __future__ import annotations

from typing import Any

import numpy as np

from ikpca.estimators.components import Components
from ikpca.hebbian import Floats
from ikpca.kernels import Kernel, Rows
from ikpca.spectra import Projector

__all__ = ["fitted_attributes"]


def fitted_attributes(
    components: Components, kernel: Kernel | None, X_fit: Rows, *, whiten: bool
) -> dict[str, Any]:
    """What ``KernelPCA`` has after a fit, by name."""
    eigenvalues = components.eigenvalues
    projector = Projector(
        kernel,
        X_fit,
        components.centring,
        components.coefficients,
        components.coefficients @ components.projections.T,
        components.projections,
    )
    return {
        "X_fit_": X_fit,
        "coefficients_": components.coefficients,
        "eigenvalues_": eigenvalues,
        "eigenvectors_": components.eigenvectors,
        "explained_variance_ratio_": eigenvalues / (components.trace or 1.0),
        "certificate_": components.certificate,
        "history_": components.records,
        "n_iter_": len(components.records),
        "outcome_": components.outcome,
        "_projector": projector,
        "_scale": _whitening(components) if whiten else np.ones_like(eigenvalues),
    }


def _whitening(components: Components) -> Floats:
    """1/standard deviation of each projection; zero for a component without variance."""
    freedom = components.projections.shape[1] - 1
    spread = np.linalg.norm(components.projections, axis=1) / np.sqrt(freedom)
    spread = np.where(components.eigenvalues > 0, spread, 0).astype(components.projections.dtype)
    return np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
