"""Incremental kernel PCA of rows in a Dask collection."""

from __future__ import annotations

from typing import Any, Self

import dask.array as da
import numpy as np
from sklearn.utils.validation import check_is_fitted

from ikpca.dask.clients import ClientMixin, check_workers
from ikpca.dask.rows import DaskRows, checked_array
from ikpca.estimators import IncrementalKernelPCA as LocalIncrementalKernelPCA
from ikpca.kernels import Floats

__all__ = ["IncrementalKernelPCA"]


class IncrementalKernelPCA(ClientMixin, LocalIncrementalKernelPCA):
    """:class:`ikpca.IncrementalKernelPCA` of rows on a Dask cluster, with the same result.

    A stream has an order, so that batches are learned one after the other, in this process; workers
    load the rows, and project them.

    Parameters
    ----------
    n_components : int or None, default=None
        As for :class:`ikpca.IncrementalKernelPCA`.
    client : distributed.Client, default=None
        None takes the current client; without one, a local cluster on threads is started.
    **parameters
        All others of :class:`ikpca.IncrementalKernelPCA`.

    Attributes
    ----------
    client_ : distributed.Client
        The client in use; it is never pickled.

    See Also
    --------
    ikpca.IncrementalKernelPCA : In one process; all other attributes are as there.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from ikpca.dask import IncrementalKernelPCA
    >>> X = da.from_array(np.random.default_rng(0).normal(size=(300, 4)), chunks=(100, -1))
    >>> with Client(processes=False, n_workers=2, dashboard_address=None) as client:
    ...     model = IncrementalKernelPCA(3, kernel="rbf", client=client).fit(X)
    ...     model.transform(X).compute().shape
    (300, 3)
    """

    _local = LocalIncrementalKernelPCA

    def __init__(
        self, n_components: int | None = None, *, client: Any = None, **parameters: Any
    ) -> None:
        super().__init__(n_components, **parameters)
        self.client = client

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from all rows, a batch at a time; what was learned before is forgotten.

        Parameters
        ----------
        X : dask array, data frame or path, of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        super().fit(self._rows(X))
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one collection of rows, block by block.

        Parameters
        ----------
        X : dask array, data frame or path, of shape (n_rows, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        rows = self._rows(X)
        for start, size in zip(_starts(rows.array), rows.array.chunks[0], strict=True):
            super().partial_fit(rows[start : start + size])
        return self

    def transform(self, X: Any) -> da.Array:
        """Project rows on the components, lazily and by blocks.

        Parameters
        ----------
        X : dask array, data frame or path, of shape (n_rows, n_features)

        Returns
        -------
        dask array of shape (n_rows, n_components)
        """
        check_is_fitted(self)
        array = checked_array(self, X, reset=False)
        number = len(self.eigenvalues_)
        return array.map_blocks(
            _project, self._subspace, self._scale, chunks=(array.chunks[0], (number,)),
            dtype=array.dtype, meta=np.empty((0, 0), dtype=array.dtype),
        )  # fmt: skip

    def fit_transform(self, X: Any, y: Any = None) -> da.Array:
        """Learn from all rows, then project them on the components.

        Returns
        -------
        dask array of shape (n_samples, n_components)
        """
        return self.fit(X).transform(X)

    def to_local(self) -> LocalIncrementalKernelPCA:
        """The same model without a cluster."""
        check_is_fitted(self)
        local: LocalIncrementalKernelPCA = self._without_client()
        return local

    def save(self, path: Any) -> None:
        """Write the model of :meth:`to_local` to a file."""
        self.to_local().save(path)

    def _rows(self, X: Any) -> DaskRows:
        client = self.client_
        check_workers(client)
        # The stream itself checks the width, and learns it from its first batch.
        return DaskRows(checked_array(None, X), client)


def _starts(array: da.Array) -> list[int]:
    return [0, *np.cumsum(array.chunks[0])[:-1].tolist()]


def _project(block: Floats, subspace: Any, scale: Floats) -> Floats:
    return subspace.project(block) * scale
