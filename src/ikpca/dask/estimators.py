"""Estimators that fit on a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import dask.array as da
import numpy as np
from dask import delayed
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ikpca.dask.client import ClientMixin, check_workers
from ikpca.dask.engine import DaskEngine, even_shards
from ikpca.dask.rows import DaskRows, checked_array
from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.estimators import IncrementalKernelPCA as LocalIncrementalKernelPCA
from ikpca.estimators import KernelPCA as LocalKernelPCA
from ikpca.estimators.checkpoint import check_checkpoint, interruptible_fit, open_checkpoint
from ikpca.estimators.decomposition import Problem
from ikpca.estimators.kernel_pca import fit_components
from ikpca.estimators.reporting import with_callbacks
from ikpca.estimators.validation import (
    check_kernel_pca,
    is_precomputed,
    needs_dense_rows,
    resolve_gamma,
    resolve_kernel,
)
from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Kernel
from ikpca.solvers import PassRecord
from ikpca.subspace import Projector


def project_blocks(model: Any, X: da.Array) -> da.Array:
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


def check_supported(model: Any) -> None:
    """Parameters of ``KernelPCA`` that have no meaning on a cluster."""
    check_kernel_pca(model)
    check_checkpoint(model)
    if is_precomputed(model):
        raise invalid_parameter(
            "kernel",
            "precomputed",
            "a cluster computes kernel values from rows",
            "pass rows and a kernel, or use ikpca.KernelPCA",
        )
    if needs_dense_rows(model):
        raise InvalidInput(
            "preimage and fit_inverse_transform need all rows in one process; leave them out, and "
            "set them on what to_local() gives."
        )


def fit_array(model: Any, client: Any, X: Any) -> Floats:
    """Fit a model of which the parameters are checked already; projections of the rows."""
    start = _previous_projections(model, client, X)
    array = checked_array(model, X)
    if array.shape[0] < 2:
        raise invalid_parameter(
            "X", f"{array.shape[0]} rows", "at least two are needed", "pass more rows"
        )
    rows = DaskRows(array, client)
    seed = int(check_random_state(model.random_state).randint(np.iinfo(np.int32).max))
    checkpoint, seed = open_checkpoint(model, rows, seed, start)
    model.gamma_ = resolve_gamma(model.gamma, rows, model.kernel, seed)
    engine = DaskEngine(client, even_shards(array, max(1, len(client.nthreads()))))
    problem = Problem(
        resolve_kernel(model, rows), rows, seed, start, engine=engine, observers=[_Events(client)]
    )
    if checkpoint is not None:
        problem = replace(problem, checkpoint=checkpoint)
    try:
        with interruptible_fit(checkpoint):
            return fit_components(model, model, problem)
    finally:
        engine.close()
        # Also where the fit was interrupted, and keeps what it has.
        model.traffic_ = engine.traffic
        if getattr(model, "X_fit_", None) is rows:
            model.X_fit_ = array
            model._projector = replace(model._projector, X_fit=None)


def _previous_projections(model: Any, client: Any, X: Any) -> Floats | None:
    if not (model.warm_start and hasattr(model, "_projector")):
        return None
    found: Floats = client.compute(model.transform(X), sync=True)
    return found


@dataclass(frozen=True)
class _Events:
    """Every pass as an event of the scheduler, where its dashboard and other clients see it."""

    client: Any

    def on_step_end(self, state: object, report: PassRecord) -> None:
        self.client.log_event("ikpca", {"pass": report.number})


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
        return project_blocks(self, checked_array(self, X, reset=False))

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
        check_supported(self)
        client = self.client_
        check_workers(client)
        return fit_array(self, client, X)


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


_DASK_CLASSES = {kind._local: kind for kind in (KernelPCA, IncrementalKernelPCA)}
#: Of a block of rows that are in this process already.
_BLOCK_BYTES = 16 * 10**6


def to_dask(model: Any, client: Any = None) -> Any:
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
    >>> from ikpca.dask import to_dask
    >>> to_dask(ikpca.KernelPCA(3, kernel="rbf")).get_params()["kernel"]
    'rbf'
    """
    kind: Any = _DASK_CLASSES.get(type(model))
    if kind is None:
        names = " and ".join(sorted(local.__name__ for local in _DASK_CLASSES))
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
