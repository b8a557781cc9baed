"""A fit on a cluster, from checked rows to fitted attributes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ikpca.dask.rows import DaskRows, checked_array
from ikpca.engines.dask_engine import DaskEngine, even_shards
from ikpca.errors import InvalidInput, refuse
from ikpca.estimators.checkpoints import check_checkpoint, guarded, open_checkpoint
from ikpca.estimators.fitting import fit_components
from ikpca.estimators.gamma import resolve_gamma
from ikpca.estimators.parameters import check_kernel_pca
from ikpca.estimators.solving import Problem
from ikpca.estimators.training import chosen_kernel, is_precomputed, needs_dense_rows
from ikpca.kernels import Floats
from ikpca.loop import PassRecord

__all__ = ["fit_array", "refuse_what_needs_rows_here"]


def refuse_what_needs_rows_here(model: Any) -> None:
    """Parameters of ``KernelPCA`` that have no meaning on a cluster."""
    check_kernel_pca(model)
    check_checkpoint(model)
    if is_precomputed(model):
        raise refuse("kernel", "precomputed", "a cluster computes kernel values from rows",
                     "pass rows and a kernel, or use ikpca.KernelPCA")  # fmt: skip
    if needs_dense_rows(model):
        raise InvalidInput(
            "preimage and fit_inverse_transform need all rows in one process; leave them out, and "
            "set them on what to_local() gives."
        )


def fit_array(model: Any, client: Any, X: Any) -> Floats:
    """Fit a model of which the parameters are checked already; projections of the rows."""
    start = _earlier_projections(model, client, X)
    array = checked_array(model, X)
    if array.shape[0] < 2:
        raise refuse("X", f"{array.shape[0]} rows", "at least two are needed", "pass more rows")
    rows = DaskRows(array, client)
    seed = int(check_random_state(model.random_state).randint(np.iinfo(np.int32).max))
    checkpoint, seed = open_checkpoint(model, rows, seed, start)
    model.gamma_ = resolve_gamma(model.gamma, rows, model.kernel, seed)
    engine = DaskEngine(client, even_shards(array, max(1, len(client.nthreads()))))
    problem = Problem(
        chosen_kernel(model, rows), rows, seed, start, engine=engine, observers=[_Events(client)]
    )
    if checkpoint is not None:
        problem = replace(problem, keeper=checkpoint)
    try:
        with guarded(checkpoint):
            return fit_components(model, model, problem)
    finally:
        engine.close()
        # Also where the fit was interrupted, and keeps what it has.
        model.traffic_ = engine.traffic
        if getattr(model, "X_fit_", None) is rows:
            model.X_fit_ = array
            model._projector = replace(model._projector, X_fit=None)


def _earlier_projections(model: Any, client: Any, X: Any) -> Floats | None:
    if not (model.warm_start and hasattr(model, "_projector")):
        return None
    found: Floats = client.compute(model.transform(X), sync=True)
    return found


@dataclass(frozen=True)
class _Events:
    """Every pass as an event of the scheduler, where its dashboard and other clients see it."""

    client: Any

    def see(self, state: object, report: PassRecord) -> None:
        self.client.log_event("ikpca", {"pass": report.number})
