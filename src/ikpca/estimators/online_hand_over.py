"""From the state of a batch to that of an online stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ikpca.estimators.online_settings import online_settings, online_start
from ikpca.estimators.online_stream import OnlineStream
from ikpca.hebbian import OnlineSettings, OnlineState, shrunk, start_online
from ikpca.incremental import State

__all__ = ["online_from_batch"]


def online_from_batch(model: Any, batch: State, gamma: float, clock: int = 0) -> OnlineStream:
    """A stream that has learned what the batch has; ``clock`` patterns may have gone before."""
    rows = batch.library
    settings = online_settings(model, batch.kernel)
    return OnlineStream(
        kernel=batch.kernel,
        gamma=gamma,
        start=online_start(model, rows.shape[1], 0),
        kept=rows[:0],
        row_sum=rows.sum(axis=0, dtype=np.float64),
        seen=len(rows),
        state=_state(batch, int(model.n_components), settings, clock),
    )


def _state(batch: State, number: int, settings: OnlineSettings, clock: int) -> OnlineState:
    """Components that the batch has no variance for are zero."""
    n, found = len(batch.library), min(batch.n_components, number)
    coefficients = np.zeros((number, n))
    coefficients[:found] = batch.vectors[:found]
    gram = np.zeros((number + 1, number + 1))
    chosen = np.append(np.arange(found), -1)
    gram[np.ix_(chosen, chosen)] = batch.gram[np.ix_(chosen, chosen)]
    variances = np.zeros(number)
    variances[:found] = np.square(batch.singular_values[:found]) / n
    # Inner products are known: no kernel value of the rows has to be computed again.
    first = start_online(settings, batch.library, coefficients, lengths=gram[:-1, :-1])
    with_mean = np.zeros(len(first.coefficients))
    with_mean[:number] = gram[-1, :-1]
    state = replace(
        first,
        mean=batch.vectors[-1],
        with_mean=with_mean,
        mean_length=float(gram[-1, -1]),
        moments=np.diag(variances),
        total_variance=batch.total_variance / n,
        seen=max(clock, n),
    )
    full = settings.budget is not None and n >= settings.budget
    return shrunk(state, settings) if full else state
