"""Projections of the rows of a Dask array, block by block and lazily."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask import delayed

from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Kernel
from ikpca.spectra import Projector

__all__ = ["projected"]


def projected(model: Any, X: da.Array) -> da.Array:
    """y = A k'(x): every block of new rows meets every block of training rows, and sums travel.

    Like ``Centring.project``, with zero-sum coefficients in place of centred kernel values.
    """
    projector: Projector = model._projector
    A = projector.coefficients
    zero_sum = A - A.mean(axis=1, keepdims=True)
    offset = zero_sum @ projector.centring.column_means
    training = model.X_fit_
    weights = np.split(zero_sum, np.cumsum(training.chunks[0])[:-1], axis=1)
    dtype = np.result_type(X.dtype, A.dtype)
    known = list(zip(training.to_delayed()[:, 0], map(delayed, weights), strict=True))
    parts = []
    for rows, size in zip(X.to_delayed()[:, 0], X.chunks[0], strict=True):
        sums = [delayed(_part)(projector.kernel, rows, own, weight) for own, weight in known]
        block = delayed(_finished)(sums, offset, model._scale)
        parts.append(da.from_delayed(block, (size, len(A)), dtype))
    return da.concatenate(parts)


def _part(kernel: Kernel, rows: Floats, own: Floats, weights: Floats) -> Floats:
    return cross_gram(kernel, rows, own) @ weights.T


def _finished(parts: list[Floats], offset: Floats, scale: Floats) -> Floats:
    return (np.sum(parts, axis=0) - offset) * scale
