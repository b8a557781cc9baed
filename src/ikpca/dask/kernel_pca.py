"""Kernel PCA that fits on a Dask cluster."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import dask.array as da
import numpy as np
from distributed import Client
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from dask import delayed
from ikpca.dask.cluster import DaskRows, check_rows, explain_losses, get_client, wait_for_workers
from ikpca.dask.gram import DaskGram, even_blocks
from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.estimators import KernelPCA as LocalKernelPCA
from ikpca.estimators.validation import single_thread
from ikpca.gram import cross_gram, tile_slices
from ikpca.kernels import Floats, Kernel, Rows
from ikpca.solvers import KHA, EigenSolution, Problem
from ikpca.solvers.adaptive import make_solver

if TYPE_CHECKING:
    from ikpca.dask.cluster import DaskRowsLike

#: Columns of a product besides the components, and how often a worker holds them: parts of the
#: factor, of the product, and products that are not summed yet.
_SPARE_COLUMNS, _COPIES = 17, 3


class KernelPCA(LocalKernelPCA):
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
        ``fit_inverse_transform`` and ``preimage="ridge"`` need all rows in one process, and so do
        the Hebbian solvers ("kha", ...).

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

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        client: Client | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(n_components, **parameters)
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*LocalKernelPCA._get_param_names(), "client"])

    @property
    def client_(self) -> Client:
        """Client in use."""
        return get_client(self.client)

    def fit_transform(self, X: DaskRowsLike, y: object = None) -> da.Array:
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

    def transform(self, X: DaskRowsLike) -> da.Array:
        """Project rows on the components, lazily and by blocks.

        Parameters
        ----------
        X : dask array, data frame or path, of shape (n_rows, n_features)

        Returns
        -------
        dask array of shape (n_rows, n_components)
        """
        check_is_fitted(self)
        return self._lazy_projections(check_rows(self, X, reset=False)) * self._scale

    def _lazy_projections(self, X: da.Array) -> da.Array:
        """Return the projections of valid rows, not whitened."""
        subspace = self._subspace
        A, basis = subspace.components, subspace.basis
        if self._on_landmarks:
            basis = da.from_array(basis, chunks=-1)
        weights = np.split(A, np.cumsum(basis.chunks[0])[:-1], axis=1)
        part, total = delayed(partial(_partial_projections, subspace.kernel)), delayed(sum)
        pairs = list(zip(basis.to_delayed()[:, 0], map(delayed, weights), strict=True))
        dtype = np.result_type(X.dtype, A.dtype)
        blocks = [
            da.from_delayed(
                total([part(rows, block, weight) for block, weight in pairs]), (size, len(A)), dtype
            )
            for rows, size in zip(X.to_delayed()[:, 0], X.chunks[0], strict=True)
        ]
        return da.concatenate(blocks) - subspace.offsets

    def inverse_transform(self, X: Any, return_distance: bool = False) -> Any:
        """Transform projections back to input space, as :meth:`ikpca.KernelPCA.inverse_transform`.

        This happens in this process, and the training rows are fetched from the cluster; to call it
        often, keep the model of :meth:`to_local`.
        """
        return self.to_local().inverse_transform(self._computed(X), return_distance)

    def refine(self, X: Any = None) -> Self:
        """Improve the components to machine precision, as :meth:`ikpca.KernelPCA.refine`."""
        if X is None and not self._on_landmarks:
            X = self.X_fit_
        with explain_losses(self.client_):
            return super().refine(X)

    def to_local(self) -> LocalKernelPCA:
        """Return the same model without a cluster; the training rows are fetched."""
        check_is_fitted(self)
        local = LocalKernelPCA()
        local.__dict__.update(vars(self))
        local.__dict__.pop("client")
        if not self._on_landmarks:
            rows = np.asarray(self._computed(self.X_fit_))
            local._subspace = replace(self._subspace, basis=rows)
        return local

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model of :meth:`to_local` to a file."""
        self.to_local().save(path)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> Self:
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        return type(self)(client=client, **clone(parameters, safe=False))

    def _computed(self, X: ArrayLike | da.Array) -> ArrayLike:
        return self.client_.compute(X, sync=True) if isinstance(X, da.Array) else X

    def _fit(self, X: DaskRowsLike) -> tuple[EigenSolution, Rows]:
        self._check_parameters()
        wait_for_workers(self.client_)
        # Idle BLAS threads of this process would slow down workers on the same machine.
        with explain_losses(self.client_), single_thread():
            return super()._fit(X)

    def _start_from(self, X: DaskRows) -> Floats:
        return np.asarray(self._computed(self._lazy_projections(X.array)))

    def _validated_rows(self, X: DaskRowsLike) -> DaskRows:
        return DaskRows(check_rows(self, X, reset=False), self.client_)

    def _validate_training_rows(self, X: DaskRowsLike) -> DaskRows:
        rows = DaskRows(check_rows(self, X), self.client_)
        if len(rows) < 2:
            raise invalid_parameter(
                "X", f"{len(rows)} rows", "at least two are needed", "pass more rows"
            )
        return rows

    def _problem(
        self, kernel: Kernel | None, X: DaskRows, seed: int, start: Floats | None
    ) -> Problem:
        """Return the eigenproblem of rows that stay on the workers."""
        problem = super()._problem(kernel, X, seed, start)
        assert problem.kernel is not None
        number = self.n_components
        columns = _SPARE_COLUMNS + (int(number) if isinstance(number, Integral) else 0)
        client = self.client_
        array = even_blocks(X.array.astype(problem.X.dtype), max(1, len(client.nthreads())))
        gram = DaskGram(client, array, problem.kernel, problem.budget, _COPIES * columns)
        return replace(problem, X=DaskRows(array, client), engine=gram)

    def _set_components(self, solution: EigenSolution, kernel: Kernel | None, X: DaskRows) -> None:
        super()._set_components(solution, kernel, X)
        if self._subspace.basis is X:
            self._subspace = replace(self._subspace, basis=X.array)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(make_solver(self.eigen_solver), KHA):
            raise invalid_parameter(
                "eigen_solver",
                self.eigen_solver,
                "the Hebbian solvers do not run on a cluster",
                "choose 'auto', 'krylov' or 'nystrom', or use ikpca.KernelPCA",
            )
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


def _partial_projections(kernel: Kernel, rows: Floats, block: Floats, weights: Floats) -> Floats:
    parts = tile_slices(len(block))
    sums = [cross_gram(kernel, rows, block[part]) @ weights[:, part].T for part in parts]
    return np.sum(sums, axis=0)
