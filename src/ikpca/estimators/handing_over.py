"""From a batch to a stream and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ikpca.errors import InvalidInput
from ikpca.estimators.fitting import fit_components
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.estimators.online_settings import online_settings, online_start
from ikpca.estimators.online_stream import OnlineStream
from ikpca.estimators.solving import Problem
from ikpca.estimators.training import is_precomputed
from ikpca.hebbian import OnlineSettings, OnlineState, shrunk, start_online
from ikpca.kernels import Floats, Kernel

__all__ = ["online_stream", "refined_batch", "stream_parameters"]

_SHARED = (
    "kernel", "gamma", "degree", "coef0", "kernel_params", "preimage", "whiten", "random_state",
    "n_jobs", "verbose",
)  # fmt: skip


def stream_parameters(fitted: Any) -> dict[str, Any]:
    """Constructor arguments that a batch model and a stream share; pre-images of a ridge are not.

    Refuses a model that a stream cannot go on from.
    """
    if not hasattr(fitted, "_projector"):
        raise InvalidInput(
            f"{type(fitted).__name__} is no fitted ikpca.KernelPCA: a stream goes on from one; fit "
            "it first, or use KernelPCA.from_sklearn."
        )
    if is_precomputed(fitted) or not isinstance(fitted.X_fit_, np.ndarray):
        raise InvalidInput(
            "the model was not fitted on dense rows in memory: a stream keeps some of them; fit it "
            "on such rows and with a kernel."
        )
    shared = {name: getattr(fitted, name) for name in _SHARED}
    if shared["preimage"] == "ridge":
        shared["preimage"] = "auto"
    return {"n_components": len(fitted.eigenvalues_), **shared}


def refined_batch(model: Any, kernel: Kernel, X: Floats) -> KernelPCA:
    """Kernel PCA of a batch by block Krylov, from the projections of another model."""
    exact = KernelPCA(
        n_components=len(model.eigenvalues_),
        kernel=model.kernel,
        gamma=model.gamma_,
        degree=model.degree,
        coef0=model.coef0,
        kernel_params=model.kernel_params,
        n_jobs=model.n_jobs,
        random_state=0,
        eigen_solver="krylov",
    )
    batch: KernelPCA = clone(exact)
    batch.gamma_ = model.gamma_
    start = model._subspace.project(X)
    fit_components(batch, exact, Problem(kernel, X, 0, start))
    return batch


def online_stream(
    model: Any, fitted: KernelPCA, earlier: OnlineStream | None = None
) -> OnlineStream:
    """A stream that has learned what the batch has; the clock of an earlier one runs on."""
    rows, kernel = fitted.X_fit_, fitted._projector.kernel
    begun = OnlineStream(
        kernel,
        fitted.gamma_,
        online_start(model, rows.shape[1], 0),
        rows[:0],
        rows.sum(axis=0, dtype=np.float64),
        len(rows),
    )
    seen = 0 if earlier is None or earlier.state is None else earlier.state.seen
    return replace(begun, state=_batch_state(fitted, online_settings(model, kernel), seen))


def _batch_state(fitted: Any, settings: OnlineSettings, seen: int) -> OnlineState:
    """The state of a stream that has learned what the batch has."""
    subspace, n = fitted._subspace, len(fitted.X_fit_)
    variances = fitted.eigenvalues_.astype(np.float64) / n
    ratios = fitted.explained_variance_ratio_.astype(np.float64)
    total = float(variances.sum() / ratios.sum()) if ratios.sum() > 0 else 0.0
    r = len(variances)
    # Inner products are known: no kernel value of the rows has to be computed again.
    gram = subspace.expansion.gram.astype(np.float64)
    first = start_online(
        settings, fitted.X_fit_, subspace.components.astype(np.float64), lengths=gram[:r, :r]
    )
    with_mean = np.zeros(len(first.coefficients))
    with_mean[:r] = gram[-1, :r]
    state = replace(
        first,
        mean=subspace.mean.astype(np.float64),
        with_mean=with_mean,
        mean_length=float(gram[-1, -1]),
        moments=np.diag(variances),
        total_variance=total,
        seen=max(seen, n),
    )
    full = settings.budget is not None and len(state.library) >= settings.budget
    return shrunk(state, settings) if full else state
