"""Passes over explicit features, for ``HebbianPCA``: run, and put into attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ikpca.engines import FeatureStore
from ikpca.estimators.callbacks import fit_context
from ikpca.estimators.checkpoints import Checkpoint
from ikpca.estimators.observing import requested_observers
from ikpca.hebbian import Floats, HebbianOptions, HebbianProgress, iterate
from ikpca.loop import FORGETFUL, Keeper, Outcome, PassRecord
from ikpca.spectra import deterministic_signs

__all__ = ["Passes", "described", "run_passes"]


@dataclass(frozen=True)
class Passes:
    """How a fit ended, and the arguments of ``described`` for what it found."""

    outcome: Outcome
    records: list[PassRecord]
    found: dict[str, Any]


def run_passes(
    model: Any, X: Floats, W: Floats, seed: int, checkpoint: Checkpoint | None
) -> Passes:
    """Sanger's rule over all rows, in passes of random order."""
    mean = X.mean(axis=0)
    keeper: Keeper = FORGETFUL if checkpoint is None else checkpoint
    kept = keeper.recall()
    store = FeatureStore(X - mean, W if kept is None else kept.progress.rows)
    keeper.describe_with(lambda state: HebbianProgress(state, *store.read(), None))
    max_iter = int(model.max_iter)
    context = fit_context(model, max_iter)
    observers = requested_observers(
        model,
        "gha",
        max_iter,
        store.dtype,
        context,
        lambda: described(model, **_found(store, mean)),
    )
    outcome, records = iterate(
        store,
        len(W),
        _options(model),
        seed=seed,
        observers=observers,
        estimate="quotients",
        keeper=keeper,
    )
    if checkpoint is not None:
        checkpoint.finish()
    if context is not None:
        context.call_on_fit_task_end(estimator=model, reconstruction_attributes=dict)
    return Passes(outcome, records, _found(store, mean))


def _options(model: Any) -> HebbianOptions:
    return HebbianOptions(
        method="kha/et" if isinstance(model.gain, str) else "kha",
        gain=model.gain,
        clock=model.clock,
        # The store holds the start already; an array is taken as it is.
        init=np.empty((0, 0)),
        rayleigh_ritz=model.rayleigh_ritz,
        block_size=model.block_size,
        max_iter=int(model.max_iter),
    )


def _found(store: FeatureStore, mean: Floats) -> dict[str, Any]:
    W, projections = store.read()
    freedom = store.n_samples - 1
    return {
        "W": W * deterministic_signs(W)[:, None],
        "mean": mean,
        "variances": np.square(projections).sum(axis=1, dtype=np.float64) / freedom,
        "total": store.mean_diagonal * store.n_samples / freedom,
        "seen": store.n_samples,
    }


def described(
    model: Any, W: Floats, mean: Floats, variances: Floats, total: float, seen: int
) -> dict[str, Any]:
    """Fitted attributes of components, of a fit or of a stream."""
    spread = np.sqrt(variances)
    whitening = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    variances = variances.astype(W.dtype)
    return {
        "components_": W,
        "mean_": mean,
        "explained_variance_": variances,
        "explained_variance_ratio_": variances / total if total > 0 else 0 * variances,
        "n_components_": len(W),
        "n_samples_seen_": seen,
        "_scale": whitening.astype(W.dtype) if model.whiten else np.ones_like(variances),
    }
