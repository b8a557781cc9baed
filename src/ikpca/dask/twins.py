"""From an estimator in this process to its twin on a cluster."""

from __future__ import annotations

from typing import Any

import dask.array as da

from ikpca.dask.incremental_kernel_pca import IncrementalKernelPCA
from ikpca.dask.kernel_pca import KernelPCA
from ikpca.errors import InvalidInput
from ikpca.kernels import Floats

__all__ = ["as_blocks", "twin"]

_TWINS = {kind._local: kind for kind in (KernelPCA, IncrementalKernelPCA)}
#: Of a block of rows that are in this process already.
_BLOCK_BYTES = 16 * 10**6


def twin(model: Any, client: Any = None) -> Any:
    """An unfitted estimator with the same parameters that fits on the cluster of a client.

    Parameters
    ----------
    model : ikpca.KernelPCA or ikpca.IncrementalKernelPCA
    client : distributed.Client, default=None
        As for :class:`ikpca.dask.KernelPCA`.

    Returns
    -------
    estimator of :mod:`ikpca.dask`

    Examples
    --------
    >>> import ikpca
    >>> from ikpca.dask import twin
    >>> twin(ikpca.KernelPCA(3, kernel="rbf")).get_params()["kernel"]
    'rbf'
    """
    kind: Any = _TWINS.get(type(model))
    if kind is None:
        names = " and ".join(sorted(local.__name__ for local in _TWINS))
        raise InvalidInput(f"{type(model).__name__} does not fit on a Dask cluster; {names} do.")
    return kind(client=client, **model.get_params(deep=False))


def as_blocks(X: Floats) -> da.Array:
    """Rows in memory as a Dask array, in blocks of some megabytes that cut no row.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)

    Returns
    -------
    dask array of shape (n_samples, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.dask import as_blocks
    >>> as_blocks(np.ones((5_000, 1_000))).chunks
    ((2000, 2000, 1000), (1000,))
    """
    rows = max(1, _BLOCK_BYTES // max(1, X[:1].nbytes))
    return da.from_array(X, chunks=(rows, -1))
