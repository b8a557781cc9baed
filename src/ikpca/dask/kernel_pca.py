"""Kernel PCA of rows on a Dask cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import dask.array as da
import numpy as np
from sklearn.utils.validation import check_is_fitted

from ikpca.dask.clients import ClientMixin, check_workers
from ikpca.dask.fitting import fit_array, refuse_what_needs_rows_here
from ikpca.dask.projecting import projected
from ikpca.dask.rows import checked_array
from ikpca.estimators import KernelPCA as LocalKernelPCA
from ikpca.estimators.callbacks import with_callbacks

__all__ = ["KernelPCA"]


class KernelPCA(ClientMixin, LocalKernelPCA):
    """:class:`ikpca.KernelPCA` on a Dask cluster, with the same result.

    Rows stay on the workers, a share of them on each; kernel values are computed where the rows
    are, and only small matrices come back. A worker that is lost during the fit is replaced, and
    what it held is loaded again from the Dask collection.

    Parameters
    ----------
    n_components : int, float or None, default=None
        As for :class:`ikpca.KernelPCA`.
    client : distributed.Client, default=None
        None takes the current client; without one, a local cluster on threads is started.
    **parameters
        All others of :class:`ikpca.KernelPCA`. Sparse rows, ``kernel="precomputed"``, and what
        goes back to input space need rows in one place: :meth:`to_local` has them.

    Attributes
    ----------
    client_ : distributed.Client
        The client in use; it is never pickled.
    traffic_ : Traffic
        Messages and bytes of the fit.

    See Also
    --------
    ikpca.KernelPCA : In one process; all other attributes are as there.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from ikpca.dask import KernelPCA
    >>> X = da.from_array(np.random.default_rng(0).normal(size=(300, 4)), chunks=(100, -1))
    >>> with Client(processes=False, n_workers=2, dashboard_address=None) as client:
    ...     model = KernelPCA(3, kernel="rbf", eigen_solver="krylov", client=client).fit(X)
    ...     model.transform(X).compute().shape
    (300, 3)
    """

    _local = LocalKernelPCA

    def __init__(
        self, n_components: int | float | None = None, *, client: Any = None, **parameters: Any
    ) -> None:
        super().__init__(n_components, **parameters)
        self.client = client

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : dask array, data frame or path, of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        self._fit(X)
        return self

    @with_callbacks
    def fit_transform(self, X: Any, y: Any = None) -> da.Array:
        """Find the components and project the training rows on them.

        Returns
        -------
        dask array of shape (n_samples, n_components)
        """
        projections = self._fit(X)
        return da.from_array(projections, chunks=(self.X_fit_.chunks[0], -1))

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
        return projected(self, checked_array(self, X, reset=False))

    def inverse_transform(self, X: Any, return_distance: bool = False) -> Any:
        """Not here: a way back to input space needs the training rows in one place."""
        raise NotImplementedError("inverse_transform needs all rows in one process; use to_local()")

    def refine(self, X: Any = None) -> Self:
        """Not here; fit with ``eigen_solver="krylov"``, or refine what :meth:`to_local` gives."""
        raise NotImplementedError("refine is for models in one process; use to_local()")

    def save(self, path: Any) -> None:
        """Write the model of :meth:`to_local` to a file, training rows included."""
        self.to_local().save(path)

    def to_local(self) -> LocalKernelPCA:
        """The same model without a cluster; the training rows come here."""
        check_is_fitted(self)
        local: LocalKernelPCA = self._without_client("traffic_")
        local.X_fit_ = np.asarray(self.client_.compute(self.X_fit_, sync=True))
        local._projector = replace(self._projector, X_fit=local.X_fit_)
        return local

    def _fit(self, X: Any) -> Any:
        refuse_what_needs_rows_here(self)
        client = self.client_
        check_workers(client)
        return fit_array(self, client, X)
