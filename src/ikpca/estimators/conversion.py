"""Conversion of fitted batch models to streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput
from ikpca.estimators.kernel_pca import KernelPCA

_STREAM_PARAMETERS = (
    "n_components", "kernel", "gamma", "degree", "coef0", "kernel_params", "preimage", "whiten",
    "random_state", "n_jobs", "verbose",
)  # fmt: skip


def check_batch_model(model: object) -> None:
    """Raise an error if a stream cannot be initialized from the model."""
    if not isinstance(model, KernelPCA):
        raise InvalidInput(
            f"{type(model).__name__} cannot be converted: pass a fitted ikpca.KernelPCA; convert "
            "scikit-learn's with KernelPCA.from_sklearn."
        )
    check_is_fitted(model)
    if model._is_precomputed:
        raise InvalidInput(
            "kernel='precomputed': a stream needs the rows; fit the model on rows and a kernel."
        )
    rows = model._subspace.basis
    if not sparse.issparse(rows) and not isinstance(rows, np.ndarray):
        raise InvalidInput(
            "The model was fitted on rows on disk: a stream needs them in memory; fit it on X[:]."
        )


def shared_parameters(model: KernelPCA) -> dict[str, Any]:
    """Return the parameters that batch and streaming models share."""
    shared = {name: getattr(model, name) for name in _STREAM_PARAMETERS}
    # Fractions and names are replaced by the fitted values.
    shared["n_components"] = len(model.eigenvalues_)
    if isinstance(model.gamma, str):
        shared["gamma"] = model.gamma_
    if model.preimage == "ridge":
        shared["preimage"] = "auto"
    return shared
