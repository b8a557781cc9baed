"""Estimators that fit on a Dask cluster."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Self, cast

import dask.array as da
import numpy as np
from dask import delayed
from sklearn.utils.validation import check_is_fitted

from ikpca.dask.client import ClientMixin, check_workers, explain_losses
from ikpca.dask.engine import DaskEngine
from ikpca.dask.rows import DaskRows, check_rows
from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.estimators import IncrementalKernelPCA as LocalIncrementalKernelPCA
from ikpca.estimators import KernelPCA as LocalKernelPCA
from ikpca.estimators.base import KernelTransformer, atomic
from ikpca.estimators.validation import single_thread
from ikpca.gram import cross_gram, tile_slices
from ikpca.kernels import Floats
from ikpca.solvers import KHA, EigenSolution, Problem, Solver


class KernelPCA(ClientMixin, LocalKernelPCA):
    """:class:`ikpca.KernelPCA` on a Dask cluster, with the same result.

    ``fit`` takes a Dask array, a Dask data frame or the path of a file of rows. Rows stay on the
    workers; kernel values are computed by tasks on blocks of rows, and only narrow matrices come
    back. Dask repeats the tasks of workers that are lost during the fit.

    Parameters
    ----------
    n_components : int, float or None, default=None
        As for :class:`ikpca.KernelPCA`.
    client : distributed.Client, default=None
        None uses the current client.
    **parameters
        All other parameters of :class:`ikpca.KernelPCA`. Sparse rows, ``kernel="precomputed"``,
        ``fit_inverse_transform`` and ``preimage="ridge"`` need all rows in one process.

    Attributes
    ----------
    client_ : distributed.Client
        Client in use; it is never pickled.

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

    def fit_transform(self, X: Any, y: Any = None) -> da.Array:
        """Find the components and project the training rows on them.

        Parameters
        ----------
        X : dask array, data frame or path, of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        dask array of shape (n_samples, n_components)
        """
        solution, _ = self._fit(X)
        if solution.landmarks is not None:
            return self.transform(X)
        projections = solution.projections.T * self._scale
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
        array = check_rows(self, X, reset=False)
        if self._on_landmarks:
            return _project_blocks(self, array)
        subspace = self._subspace
        A = subspace.components
        weights = np.split(A, np.cumsum(self.X_fit_.chunks[0])[:-1], axis=1)
        part = delayed(partial(_partial_projections, subspace.kernel))
        finish = delayed(partial(_finish_projections, offset=subspace.offsets, scale=self._scale))
        training = list(zip(self.X_fit_.to_delayed()[:, 0], map(delayed, weights), strict=True))
        blocks = [
            da.from_delayed(
                finish([part(rows, known, weight) for known, weight in training]),
                (size, len(A)),
                np.result_type(array.dtype, A.dtype),
            )
            for rows, size in zip(array.to_delayed()[:, 0], array.chunks[0], strict=True)
        ]
        return da.concatenate(blocks)

    def inverse_transform(self, X: Any, return_distance: bool = False) -> Any:
        """Transform projections back to input space, as :meth:`ikpca.KernelPCA.inverse_transform`.

        This happens in this process, and the training rows are fetched from the cluster; to call it
        often, keep the model of :meth:`to_local`.
        """
        return self.to_local().inverse_transform(self._computed(X), return_distance)

    def refine(self, X: Any = None) -> Self:
        """Improve the components to machine precision, as :meth:`ikpca.KernelPCA.refine`."""
        check_is_fitted(self)
        if X is None and self._on_landmarks:
            return super().refine()
        X = self.X_fit_ if X is None else X
        if len(self.eigenvalues_):
            rows = DaskRows(check_rows(self, X, reset=False), self.client_)
            with explain_losses(self.client_):
                start = self._training_projections(X)
                self._refine(self._problem(self._subspace.kernel, rows, 0, start))
        return self

    def to_local(self) -> LocalKernelPCA:
        """Return the same model without a cluster; the training rows are fetched."""
        local: LocalKernelPCA = super().to_local()
        if self._on_landmarks:
            return local
        local.X_fit_ = np.asarray(self._computed(self.X_fit_))
        local._subspace = replace(self._subspace, basis=local.X_fit_)
        return local

    def _computed(self, X: Any) -> Any:
        return self.client_.compute(X, sync=True) if isinstance(X, da.Array) else X

    def _training_projections(self, X: Any) -> Floats:
        """Return the projections of rows, not whitened, to start from."""
        projections: Floats = self._computed(self.transform(X))
        return projections / np.where(self._scale > 0, self._scale, 1)

    def _fit(self, X: Any, transform: Any = None) -> tuple[EigenSolution, Any]:
        self._check_parameters()
        check_workers(self.client_)
        with explain_losses(self.client_):
            return super()._fit(X, transform)

    def _previous_projections(self, X: Any) -> Floats | None:
        return self._training_projections(X) if hasattr(self, "_subspace") else None

    def _validate_training_rows(self, X: Any) -> DaskRows:
        rows = DaskRows(check_rows(self, X), self.client_)
        if len(rows) < 2:
            raise invalid_parameter(
                "X", f"{len(rows)} rows", "at least two are needed", "pass more rows"
            )
        return rows

    def _solve(self, solver: Solver, problem: Problem, *args: Any, **options: Any) -> EigenSolution:
        """Run a solver on the cluster; rows stay there."""
        rows = cast(DaskRows, problem.X)
        engine = DaskEngine(self.client_, rows.array, pairs=not isinstance(solver, KHA))
        try:
            # Idle BLAS threads of this process would slow down workers on the same machine.
            with single_thread():
                return super()._solve(solver, replace(problem, engine=engine), *args, **options)
        finally:
            # Also after an interrupted fit, which keeps the components it has.
            fitted = self.__dict__
            if fitted.get("X_fit_") is rows:
                subspace = replace(fitted["_subspace"], basis=None)
                fitted.update(X_fit_=rows.array, _subspace=subspace)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._is_precomputed:
            raise invalid_parameter(
                "kernel",
                "precomputed",
                "a cluster computes kernel values from rows",
                "pass rows and a kernel, or use ikpca.KernelPCA",
            )
        if self._needs_dense_rows:
            raise InvalidInput(
                "preimage and fit_inverse_transform need all rows in one process; leave them out, "
                "and set them in the model that to_local() returns."
            )


def _partial_projections(kernel: Any, rows: Floats, known: Floats, weights: Floats) -> Floats:
    parts = tile_slices(len(known))
    sums = [cross_gram(kernel, rows, known[part]) @ weights[:, part].T for part in parts]
    return np.sum(sums, axis=0)


def _finish_projections(parts: list[Floats], offset: Floats, scale: Floats) -> Floats:
    return (np.sum(parts, axis=0) - offset) * scale


class IncrementalKernelPCA(ClientMixin, LocalIncrementalKernelPCA):
    """:class:`ikpca.IncrementalKernelPCA` of rows on a Dask cluster, with the same result.

    ``fit`` takes a Dask array, a Dask data frame or the path of a file of rows, and ``transform``
    returns a Dask array. Batches are learned in order, in this process; workers load and project
    rows.

    Parameters
    ----------
    n_components : int or None, default=None
        As for :class:`ikpca.IncrementalKernelPCA`.
    client : distributed.Client, default=None
        None uses the current client.
    **parameters
        All other parameters of :class:`ikpca.IncrementalKernelPCA`.

    Attributes
    ----------
    client_ : distributed.Client
        Client in use; it is never pickled.

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

    @atomic
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
        stops = np.cumsum(rows.array.chunks[0])
        for start, stop in zip([0, *stops], stops, strict=False):
            super().partial_fit(rows[start:stop])
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
        return _project_blocks(self, check_rows(self, X, reset=False))

    def _validate_data_set(self, X: Any) -> Any:
        return super()._validate_data_set(self._rows(X))

    def _rows(self, X: Any) -> DaskRows:
        client = self.client_
        check_workers(client)
        # The stream itself checks the number of features.
        return DaskRows(check_rows(None, X), client)


def _project_blocks(model: KernelTransformer, array: da.Array) -> da.Array:
    """Project the blocks of rows by a model that is small."""
    chunks = (array.chunks[0], (len(model.eigenvalues_),))
    return array.map_blocks(
        _project, model._subspace, model._scale, chunks=chunks,
        dtype=array.dtype, meta=np.empty((0, 0), dtype=array.dtype),
    )  # fmt: skip


def _project(block: Floats, subspace: Any, scale: Floats) -> Floats:
    return subspace.project(block) * scale


def to_dask(model: KernelTransformer, client: Any = None) -> Any:
    """Return an unfitted estimator with the same parameters that fits on a Dask cluster.

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
    >>> from ikpca.dask import to_dask
    >>> to_dask(ikpca.KernelPCA(3, kernel="rbf")).get_params()["kernel"]
    'rbf'
    """
    for kind in (KernelPCA, IncrementalKernelPCA):
        if type(model) is kind._local:
            return kind(client=client, **model.get_params(deep=False))
    raise InvalidInput(
        f"{type(model).__name__} does not fit on a Dask cluster; IncrementalKernelPCA and "
        "KernelPCA do."
    )


def as_blocks(X: Floats) -> da.Array:
    """Convert rows in memory to a Dask array of blocks of some megabytes.

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
    rows = max(1, 16 * 10**6 // max(1, X[:1].nbytes))
    return da.from_array(X, chunks=(rows, -1))
