"""Incremental kernel PCA of data that arrive in batches."""

from __future__ import annotations

import sys
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import validate_data

from ikpca.errors import (
    InvalidInput,
    check_choice,
    check_number,
    invalid_parameter,
    is_auto,
)
from ikpca.estimators.base import atomic, warn_of_rank, warn_of_recovery
from ikpca.estimators.conversion import (
    check_batch_model,
    refined_state,
    shared_parameters,
    state_from_batch,
)
from ikpca.estimators.incremental_stream import IncrementalStream
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.estimators.stream_base import StreamTransformer
from ikpca.estimators.validation import (
    FLOAT_DTYPES,
    SlicedRows,
    cast_arrays,
    check_values,
    draw_seed,
    load_rows,
    reads_in_slices,
    resolve_gamma,
)
from ikpca.gram import tile_slices
from ikpca.kernels import Floats, Kernel, Rows, centered_kernel
from ikpca.reduced_sets import make_reduction
from ikpca.streams import Compression, IncrementalSettings, IncrementalState
from ikpca.subspace import Subspace

#: Number of basis rows per component and mean, and the minimum.
_ROWS_PER_VECTOR, _MIN_ROWS = 20, 200
#: Minimum fraction of the basis that is added between two reductions.
_REDUCTION_INTERVAL = 1 / 8
#: Minimum number of additional components; with fewer, truncation loses over 0.1 % of variance.
_MIN_OVERSAMPLES = 8
#: Default and maximum rows per update; the order of its eigenproblem grows with them.
_BATCH, _MAX_BATCH = 200, 1000


class IncrementalKernelPCA(StreamTransformer[IncrementalStream]):
    r"""Kernel PCA of a stream in one pass, optionally in bounded memory.

    Each batch updates mean and components exactly (Chin & Suter 2006). Both are combinations of
    the images of a basis of rows. Compression replaces the basis by fewer rows that
    approximate components and mean.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components. None keeps all components with variance and the complete basis; it
        requires ``reduction=None`` or "auto".
    kernel : str, callable or kernel object, default="linear"
        "linear", "poly", "rbf", "sigmoid", "cosine" or "laplacian". A callable takes one pair of
        rows; for one that takes two blocks of rows see :func:`ikpca.vectorized`. Objects as for
        :class:`KernelPCA`.
    gamma : float, "scale", "median" or None, default=None
        Coefficient of rbf, poly, sigmoid and laplacian. None: 1/n_features. "scale" and "median"
        are computed from the first batch.
    degree : float, default=3
        Degree of poly.
    coef0 : float, default=1
        Independent term of poly and sigmoid.
    kernel_params : dict, default=None
        Keyword arguments of a callable kernel.
    preimage : str or method object, default="auto"
        Method of ``inverse_transform``, as for :class:`KernelPCA`, except "ridge".
    reduction : {"auto", "preimages", "samples", None}, default="auto"
        Rows of the reduced basis. "samples": rows of the stream, for any kernel.
        "preimages": optimized rows, for kernels with a gradient; more accurate for the same number
        of rows, but several times slower. None: all rows, exact. "auto": "samples", or None if
        ``n_components`` is None.
    max_basis_rows : int or "auto", default="auto"
        Maximum number of basis rows after a batch. "auto": 20 per component, including
        ``n_oversamples``, and for the mean; at least 200.
    preimages_per_component : int or "auto", default="auto"
        n' of the paper: "preimages" are computed one after the other, this many for each component
        and the mean, which ``max_basis_rows="auto"`` takes into account. "auto" optimizes all
        pre-images together, which is more accurate.
    reduction_tol : float, default=1e-4
        Relative error of a component at which "preimages" stop before the basis is full.
    n_oversamples : int or "auto", default="auto"
        Number of additional components, as later batches cannot restore truncated ones.
        0 truncates like the paper and scikit-learn's IncrementalPCA; "auto" is half of
        ``n_components``, at least 8, or fewer if the basis is small.
    batch_size : int or None, default=None
        Rows per update, in ``fit`` and for larger batches of ``partial_fit``. None: in ``fit`` the
        largest of 200, two per component and a quarter of ``max_basis_rows``; in ``partial_fit``
        the size of the batch; at most 1,000.
    forgetting : float, default=1.0
        f in (0, 1]: every update multiplies the weights of earlier samples by f².
    drift_threshold : float, default=25.0
        Threshold of the Page–Hinkley test on ``novelty_``; a larger one signals fewer drifts.
    drift_delta : float, default=0.5
        Increase of the novelty, in standard deviations, that the test tolerates.
    whiten : bool, default=False
        If True, scale projections to unit variance.
    random_state : int, RandomState or None, default=None
        Seed of the draw of rows for ``gamma="median"`` and for compression.
    n_jobs : int, default=None
        Number of threads of ``refine`` and of pre-images; None uses as many as BLAS. Learning uses
        one thread, as its last bits would depend on the number.
    verbose : int, default=0
        If positive, write a line per batch to standard error.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the centered kernel matrix of all samples seen, as in :class:`KernelPCA`;
        zero for components without variance so far.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Eigenvalues divided by the trace of K', which is accumulated.
    n_samples_seen_, n_batches_ : int
    basis_ : ndarray of shape (n_rows, n_features)
        Rows whose images components and mean are combinations of.
    coefficients_ : ndarray of shape (n_components, n_rows)
        α: component i is Σ_j α_ij Φ(x_j).
    mean_coefficients_ : ndarray of shape (n_rows,)
        ν: the mean is Σ_j ν_j Φ(x_j).
    mean_ : ndarray of shape (n_features,)
        Mean of the rows in input space.
    novelty_ : ndarray of shape (rows of the last batch,)
        Squared reconstruction error of each row before the update; NaN for the first batch.
    drift_ : float
        Largest Page–Hinkley test statistic of the last batch divided by its threshold; values ≥ 1
        signal a drift. The test compares with the novelty of the last 1,000 rows and needs 100.
    drift_detected_ : bool
        True if ``drift_`` ≥ 1.
    reduction_error_ : ndarray of shape (n_components,) or None
        Relative error of each component in feature space in the last compression; None before the
        first.
    mean_reduction_error_ : float or None
        Relative error of the mean.
    recovery_ : str
        Problem that was corrected in the last batch, such as a loss of orthonormality; empty if
        there was none.
    memory_usage_ : int
        Size of the model in bytes.
    gamma_ : float
        As in :class:`KernelPCA`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Defined only if X has string column names.

    See Also
    --------
    KernelPCA : Batch kernel PCA.
    sklearn.decomposition.IncrementalPCA : Equivalent for a linear kernel, at a lower cost.

    References
    ----------
    T.-J. Chin, D. Suter, Incremental Kernel PCA for Efficient Non-linear Feature Extraction, BMVC
    2006.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ikpca import IncrementalKernelPCA
    >>> X = load_digits().data / 16
    >>> model = IncrementalKernelPCA(8, kernel="rbf", gamma=0.02)
    >>> for batch in (X[:600], X[600:1200], X[1200:]):
    ...     model = model.partial_fit(batch)
    >>> model.transform(X[:5]).shape, model.n_samples_seen_
    ((5, 8), 1797)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        preimage: Any = "auto",
        reduction: Any = "auto",
        max_basis_rows: Any = "auto",
        preimages_per_component: Any = "auto",
        reduction_tol: float = 1e-4,
        n_oversamples: Any = "auto",
        batch_size: int | None = None,
        forgetting: float = 1.0,
        drift_threshold: float = 25.0,
        drift_delta: float = 0.5,
        whiten: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.preimage = preimage
        self.reduction = reduction
        self.max_basis_rows = max_basis_rows
        self.preimages_per_component = preimages_per_component
        self.reduction_tol = reduction_tol
        self.n_oversamples = n_oversamples
        self.batch_size = batch_size
        self.forgetting = forgetting
        self.drift_threshold = drift_threshold
        self.drift_delta = drift_delta
        self.whiten = whiten
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from all rows in batches, after resetting the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Memory maps, and arrays of h5py or zarr, are read in slices.
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        X = self._validate_data_set(X)
        size = self._fit_batch_size
        stream = self._fit_stream(
            self._initial_stream(X[:size], draw_seed(self.random_state)),
            lambda stream: self._step(stream, X[stream.seen : stream.seen + size]),
            -(-X.shape[0] // size),
        )
        self._set_stream(stream)
        rank = int(np.count_nonzero(self.eigenvalues_))
        warn_of_rank(self.n_components, len(self.eigenvalues_), rank, "reduce it")
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Learn from all rows and project them on the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self.fit(X).transform(X)

    @atomic
    def refine(self, X: Any) -> Self:
        """Compute the exact components of a batch by block Krylov from the streamed ones.

        The stream continues from this batch; earlier samples are dropped.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        self
        """
        self._check_parameters()
        X = np.array(self._validated_rows(X), order="C")
        stream = self._with_settings(self._stream)
        start = stream.state.subspace().project(X)
        state = refined_state(
            stream.state.kernel, X, stream.settings.n_kept, start, self.n_jobs, self.verbose
        )
        self._set_stream(stream.from_state(state))
        return self

    @classmethod
    def from_batch(cls, model: KernelPCA, **parameters: Any) -> Self:
        """Convert a fitted :class:`KernelPCA` to continue with ``partial_fit``.

        The stream is exact if the batch model has components for all of its variance.

        Parameters
        ----------
        model : KernelPCA
            Convert a model of scikit-learn with :meth:`KernelPCA.from_sklearn` first.
        **parameters
            Parameters of the new model that override those of the batch model.

        Returns
        -------
        IncrementalKernelPCA
        """
        check_batch_model(model)
        streaming = cls(**shared_parameters(model) | parameters)
        streaming._check_parameters()
        streaming._copy_feature_names(model)
        initial = streaming._initial_stream(
            model._subspace.basis, draw_seed(streaming.random_state)
        )
        streaming._set_stream(initial.from_state(state_from_batch(model)))
        return streaming

    def _initial_stream(self, rows: Rows, seed: int) -> IncrementalStream:
        gamma = resolve_gamma(self.gamma, rows, self.kernel, seed)
        kernel = centered_kernel(self._make_kernel(gamma), rows)
        self._check_preimage_of(kernel)
        settings = self._settings(kernel, seed)
        return IncrementalStream(
            IncrementalState.empty(kernel, rows, keep_values=settings.compression is not None),
            settings,
            gamma=gamma,
            seed=seed,
            batch_size=self._max_batch_size,
            seen=0,
            n_batches=0,
            mean_row=np.zeros(rows.shape[1]),
        )

    def _with_settings(self, stream: IncrementalStream) -> IncrementalStream:
        settings = self._settings(stream.state.kernel, stream.seed)
        return stream.with_settings(settings, self._max_batch_size)

    def _step(self, stream: IncrementalStream, rows: Rows) -> IncrementalStream:
        updated = stream.learn(rows, self.drift_threshold, self.drift_delta)
        assert updated.report is not None
        warn_of_recovery([updated.report.recovery])
        if self.verbose:
            sys.stderr.write(updated.progress_line() + "\n")
        return updated

    def _set_stream(self, stream: IncrementalStream) -> None:
        self._stream = stream
        state, report = stream.state, stream.report
        number = state.n_components if self.n_components is None else int(self.n_components)
        eigenvalues = _pad(np.square(state.singular_values), number)
        subspace = _leading_subspace(state, number)
        dtype = subspace.basis.dtype
        scale = np.ones_like(eigenvalues)
        if self.whiten:
            spread = np.sqrt(eigenvalues / max(state.n_samples - 1, 1))
            scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
        errors = None if report is None else report.compression_errors
        self.eigenvalues_ = eigenvalues
        self.explained_variance_ratio_ = eigenvalues / (state.total_variance or 1.0)
        self.n_samples_seen_ = stream.seen
        self.n_batches_ = stream.n_batches
        self.basis_ = subspace.basis
        self.coefficients_ = subspace.components
        self.mean_coefficients_ = subspace.mean
        self.mean_ = stream.mean_row.astype(dtype)
        self.novelty_ = np.zeros(0) if report is None else report.novelty
        self.drift_ = stream.drift
        self.drift_detected_ = stream.drift >= 1
        self.reduction_error_ = None if errors is None else _pad(errors[:-1], number)
        self.mean_reduction_error_ = None if errors is None else float(errors[-1])
        self.recovery_ = "" if report is None else report.recovery
        self.memory_usage_ = state.n_bytes
        self.gamma_ = stream.gamma
        self._subspace = subspace
        self._scale = scale.astype(dtype)

    def _settings(self, kernel: Kernel, seed: int) -> IncrementalSettings:
        """Return the settings of the stream; raise an error if parameters are inconsistent."""
        number = None if self.n_components is None else int(self.n_components)
        oversamples = 0 if number is None else self._oversamples(number)
        compression, name = None, self._reduction_name
        if name is not None:
            if number is None:
                raise invalid_parameter(
                    "n_components",
                    None,
                    f"reduction={self.reduction!r} needs an integer",
                    "pass an integer, or reduction=None to keep all rows",
                )
            compression = self._compression(name, kernel, number + oversamples + 1, seed)
        return IncrementalSettings(number, oversamples, float(self.forgetting), compression)

    @property
    def _reduction_name(self) -> str | None:
        """Name of the reduction; None if the basis is not compressed."""
        if not is_auto(self.reduction):
            return None if self.reduction is None else str(self.reduction)
        return None if self.n_components is None else "samples"

    def _oversamples(self, number: int) -> int:
        if not is_auto(self.n_oversamples):
            return int(self.n_oversamples)
        wanted = max(number // 2, _MIN_OVERSAMPLES)
        if is_auto(self.max_basis_rows) or self._reduction_name is None:
            return wanted
        # A small basis supports fewer components.
        return max(0, min(wanted, int(self.max_basis_rows) // 4 - number - 1))

    def _compression(self, name: str, kernel: Kernel, n_vectors: int, seed: int) -> Compression:
        if not is_auto(self.max_basis_rows):
            limit = int(self.max_basis_rows)
        elif not is_auto(self.preimages_per_component):
            limit = int(self.preimages_per_component) * n_vectors
        else:
            limit = max(_ROWS_PER_VECTOR * n_vectors, _MIN_ROWS)
        if limit < n_vectors:
            raise invalid_parameter(
                "max_basis_rows",
                limit,
                f"must be at least {n_vectors}, the number of components plus the mean",
                f"pass {n_vectors} or more, or reduce n_components or n_oversamples",
            )
        reduction = make_reduction(
            name,
            kernel,
            per_vector=self.preimages_per_component,
            tol=float(self.reduction_tol),
            seed=seed,
        )
        return Compression(reduction, limit, max(1, int(_REDUCTION_INTERVAL * limit)))

    @property
    def _fit_batch_size(self) -> int:
        """Rows per batch of ``fit``."""
        if self.batch_size is not None:
            return int(self.batch_size)
        wanted = max(_BATCH, 2 * (self.n_components or 0))
        if not is_auto(self.max_basis_rows):
            # A reduction is cubic in the size of the basis: reduce less often.
            wanted = max(wanted, int(self.max_basis_rows) // 4)
        return min(wanted, _MAX_BATCH)

    @property
    def _max_batch_size(self) -> int:
        return _MAX_BATCH if self.batch_size is None else int(self.batch_size)

    def _validate_data_set(self, X: Any) -> Any:
        """Validate all rows of a data set, which may be read in slices."""
        if not reads_in_slices(X):
            X = validate_data(self, X, dtype=FLOAT_DTYPES, ensure_all_finite=False)
            check_values(X, 0)
            return X
        if len(X.shape) != 2 or not all(X.shape):
            raise InvalidInput(
                f"X is a {type(X).__name__} of shape {X.shape}: it must be two-dimensional and not "
                "empty; pass a two-dimensional array."
            )
        for rows in tile_slices(X.shape[0]):
            check_values(load_rows(X[rows]), rows.start)
        validate_data(self, load_rows(X[:1]), dtype=FLOAT_DTYPES)
        return SlicedRows(X)

    def _check_parameters(self) -> None:
        self._check_stream_parameters()
        if self.n_components is not None:
            check_number("n_components", self.n_components, "must be a positive integer or None",
                         "pass an integer such as 10", low=1, integer=True)  # fmt: skip
        check_choice("reduction", self.reduction, ("auto", "preimages", "samples", None))
        for name in ("max_basis_rows", "preimages_per_component"):
            if not is_auto(getattr(self, name)):
                check_number(name, getattr(self, name), "must be 'auto' or a positive integer",
                             "pass 'auto'", low=1, integer=True)  # fmt: skip
        if not is_auto(self.n_oversamples):
            check_number("n_oversamples", self.n_oversamples, "must be 'auto' or not negative",
                         "pass 'auto'", low=0, integer=True)  # fmt: skip
        check_number("reduction_tol", self.reduction_tol, "must not be negative", "pass 1e-4",
                     low=0)  # fmt: skip
        if self.batch_size is not None:
            check_number("batch_size", self.batch_size, "must be a positive integer or None",
                         "pass None", low=1, integer=True)  # fmt: skip


def _pad(values: Floats, number: int) -> Floats:
    """Return the first ``number`` values, padded with zeros."""
    padded = np.zeros((number, *values.shape[1:]))
    padded[: len(values)] = values[:number]
    return padded


def _leading_subspace(state: IncrementalState, number: int) -> Subspace:
    """Return the requested components in the dtype of the rows; missing ones are zero."""
    vectors, products = (
        np.vstack([_pad(each[:-1], number), each[-1:]]) for each in (state.vectors, state.products)
    )
    gram = vectors @ products.T
    arrays = cast_arrays((vectors, products, (gram + gram.T) / 2), state.basis.dtype)
    return Subspace(state.kernel, state.basis, *arrays)
