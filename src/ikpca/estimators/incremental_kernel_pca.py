"""Incremental kernel PCA of data that arrive in batches."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import cache, lru_cache
from inspect import signature
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ikpca.errors import (
    Choice,
    InvalidInput,
    Number,
    ParameterRules,
    check_parameters,
    invalid_parameter,
    is_auto,
)
from ikpca.estimators.base import atomic, warn_of_rank
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.estimators.stream_base import DriftSignal, StreamTransformer, learning
from ikpca.estimators.validation import (
    FLOAT_DTYPES,
    centered_kernel,
    check_overflow,
    check_values,
    check_weights,
    draw_seed,
    is_lazy,
    is_named,
    resolve_gamma,
    validate_rows,
)
from ikpca.gram import tile_slices
from ikpca.gram.lazy_rows import LazyRows
from ikpca.kernels import (
    DifferentiableKernel,
    Floats,
    Kernel,
    Laplacian,
    Rows,
)
from ikpca.solvers.problem import check_exponents
from ikpca.streams import MomentState, PreimageState, from_components, merge
from ikpca.subspace import Subspace

BASIS_NAMES = ("auto", "means", "rows", "preimages")
_RULES: ParameterRules = {
    "basis": Choice(BASIS_NAMES),
    "max_basis_rows": Number("must be 'auto', None or a positive integer", "pass 'auto'",
                             low=1, integer=True, allowed=("auto", None)),
}  # fmt: skip
#: Number of basis rows per component, and the minimum.
_ROWS_PER_COMPONENT, _MIN_ROWS = 12, 100
#: Rows of ``fit`` that are read, and learned between interrupts, at a time; of ``preimages``.
_STRIP, _PREIMAGE_BATCH = 4096, 100
#: Parameters that batch and streaming models share.
_BATCH_PARAMETERS = (
    "kernel", "gamma", "degree", "coef0", "kernel_params", "preimage", "whiten", "random_state",
    "n_jobs", "verbose",
)  # fmt: skip


class IncrementalKernelPCA(StreamTransformer):
    r"""Kernel PCA of a stream in one pass and bounded memory.

    Rows are projected on the span of the images of a few basis rows, in which mean and covariance
    are accumulated exactly. The basis follows the stream: its rows move to the means of
    their cells, and rows of the stream replace some of them when the energy outside of the span
    rises. The result depends on the order of the rows, but not on the batches in which they arrive,
    nor on reads and on saving in between.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
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
    basis : {"auto", "means", "rows", "preimages"}, default="auto"
        Basis rows. "means": means of rows, more accurate for the same number. "rows": rows of the
        stream, for CSR rows, callables and the Laplacian kernel. "auto" chooses one of these.
        "preimages": the scheme of Chin & Suter, which reduces the basis to optimized pre-images
        after every batch and keeps ``n_components`` only; slower and less accurate.
    max_basis_rows : int, "auto" or None, default="auto"
        Maximum number of basis rows. "auto": 12 per component, at least 100. None: all independent
        rows, exact; memory and time grow with the stream.
    forgetting : float, default=1.0
        f in (0, 1]: every row multiplies the weights of earlier rows by f², so that the effective
        number of rows is 1/(1 − f²).
    drift_threshold : float, default=25.0
        Threshold of the Page–Hinkley test on ``novelty_``; a larger one signals fewer drifts.
    drift_delta : float, default=0.5
        Increase of the novelty, in standard deviations, that the test tolerates.
    whiten : bool, default=False
        If True, scale projections to unit variance.
    random_state : int, RandomState or None, default=None
        Seed of the draw of rows.
    n_jobs : int, default=None
        Number of threads of ``transform`` and of pre-images; None uses as many as BLAS. Learning
        uses one thread, as its last bits would depend on the number.
    verbose : int, default=0
        If positive, write a line per batch to standard error.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the centered kernel matrix of all rows, weighted, as in :class:`KernelPCA`;
        zero for components without variance so far.
    eigenvalue_bounds_ : ndarray of shape (2, n_components) or None
        Lower and upper bounds of the exact eigenvalues; None after the basis has moved, as earlier
        rows outside of its span are then known only approximately.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Eigenvalues divided by the trace of K', which is accumulated.
    n_samples_seen_ : int
    basis_ : ndarray or CSR array of shape (n_rows, n_features)
        Rows whose images components and mean are combinations of.
    coefficients_ : ndarray of shape (n_components, n_rows)
        α: component i is Σ_j α_ij Φ(x_j).
    mean_coefficients_ : ndarray of shape (n_rows,)
        ν: the mean is Σ_j ν_j Φ(x_j).
    mean_ : ndarray of shape (n_features,)
        Weighted mean of the rows in input space.
    novelty_ : ndarray of shape (rows of the last batch,)
        Squared reconstruction error of each row by the components before it, which are refreshed
        when the stream has grown by a twentieth; NaN for the first rows.
    drift_ : float
        Largest Page–Hinkley test statistic of the last batch divided by its threshold; values ≥ 1
        signal a drift. The test compares with the novelty of the last 1,000 rows and needs 100.
    drift_detected_ : bool
        True if ``drift_`` ≥ 1.
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
    sklearn.decomposition.IncrementalPCA : Equivalent for a linear kernel.

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
        n_components: int = 2,
        *,
        kernel: Any = "linear",
        gamma: float | Literal["scale", "median"] | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        preimage: Any = "auto",
        basis: Literal["auto", "means", "rows", "preimages"] = "auto",
        max_basis_rows: int | Literal["auto"] | None = "auto",
        forgetting: float = 1.0,
        drift_threshold: float = 25.0,
        drift_delta: float = 0.5,
        whiten: bool = False,
        random_state: int | np.random.RandomState | None = None,
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
        self.basis = basis
        self.max_basis_rows = max_basis_rows
        self.forgetting = forgetting
        self.drift_threshold = drift_threshold
        self.drift_delta = drift_delta
        self.whiten = whiten
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    _stream: MomentState | PreimageState
    _signal: DriftSignal
    _ended: Floats
    _n_last: int

    @atomic
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from all rows, after resetting the model.

        Parameters
        ----------
        X : array-like or CSR of shape (n_samples, n_features)
            Memory maps, and arrays of h5py or zarr, are read in slices.
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        rows = self._validate_data_set(X)
        size = _STRIP
        self._start(rows[:size], draw_seed(self.random_state))

        def step(number: int) -> None:
            part = rows[number * size : (number + 1) * size]
            self._learn(part, np.ones(part.shape[0]))

        self._fit_stream(-(-rows.shape[0] // size), step)
        rank = int(np.count_nonzero(self.eigenvalues_))
        warn_of_rank(self.n_components, len(self.eigenvalues_), rank, "reduce it")
        return self

    @atomic
    def partial_fit(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from a batch of one or more rows in their order.

        An invalid batch, for example with NaN, leaves the model unchanged.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, not negative; a weight of 2 counts like a repeated row.

        Returns
        -------
        self
        """
        is_first = not hasattr(self, "_stream")
        if is_first or not _are_valid(*map(self.__dict__.get, _parameter_names())):
            self._check_parameters()
        rows = self._validate_batch(X, reset=is_first)
        weights = check_weights(sample_weight, rows.shape[0])
        if sample_weight is not None and self.basis == "preimages":
            raise InvalidInput(
                "sample_weight: basis='preimages' has no weights; pass basis='means', or leave it "
                "out."
            )
        # Entering a context takes longer than a single row.
        is_long = is_first or self._stream.ends_block(rows.shape[0])
        with learning() if is_long else nullcontext():
            if is_first:
                self._start(rows, draw_seed(self.random_state))
            self._learn(rows, weights)
        return self

    @classmethod
    def from_batch(cls, model: KernelPCA, **parameters: Any) -> Self:
        """Convert a fitted :class:`KernelPCA` to continue with ``partial_fit``.

        The rows of the model are learned; of a model on landmarks, its components and mean are
        taken over, with the landmarks as a sample of the rows.

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
        _check_batch_model(model)
        shared = {name: getattr(model, name) for name in _BATCH_PARAMETERS}
        # Fractions and names are replaced by the fitted values.
        shared["n_components"] = len(model.eigenvalues_)
        if isinstance(model.gamma, str):
            shared["gamma"] = model.gamma_
        if is_named(model.preimage, "ridge"):
            shared["preimage"] = "auto"
        streaming = cls(**shared | parameters)
        streaming._check_parameters()
        streaming._copy_feature_names(model)
        rows = model._subspace.basis
        if not model._on_landmarks:
            with learning():
                streaming._start(rows, draw_seed(streaming.random_state), model.gamma_)
                streaming._learn(rows, np.ones(rows.shape[0]))
            streaming._ended, streaming._n_last = np.zeros(0), 0
            return streaming
        share = float(np.sum(model.explained_variance_ratio_, dtype=np.float64))
        total = float(np.sum(model.eigenvalues_, dtype=np.float64)) / share
        streaming._set_components(
            model._subspace, model.eigenvalues_, model.n_samples_seen_, total, model._mean_row,
            model.gamma_,
        )  # fmt: skip
        return streaming

    def merge(self, other: IncrementalKernelPCA) -> IncrementalKernelPCA:
        """Return a model of the rows of both models, for streams that were learned in parallel.

        Exact without a limit of the basis, and for equal bases. Otherwise both are transferred to
        common basis rows. Weights are not changed: with ``forgetting``, both models are as of now.

        Parameters
        ----------
        other : IncrementalKernelPCA
            With the same parameters, fitted on other rows.

        Returns
        -------
        IncrementalKernelPCA
            With the parameters of this model. Both models are unchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from ikpca import IncrementalKernelPCA
        >>> X = np.random.default_rng(0).normal(size=(400, 3))
        >>> parts = [IncrementalKernelPCA(2, kernel="rbf").fit(part) for part in np.split(X, 2)]
        >>> parts[0].merge(parts[1]).n_samples_seen_
        400
        """
        if not isinstance(other, IncrementalKernelPCA):
            raise InvalidInput(
                f"{type(other).__name__} cannot be merged: pass a fitted IncrementalKernelPCA."
            )
        streams = []
        for model in (self, other):
            stream = getattr(model, "_stream", None)
            if not isinstance(stream, MomentState):
                raise InvalidInput(
                    "only fitted models with basis='means' or 'rows' can be merged: fit both, and "
                    "not with basis='preimages'."
                )
            streams.append(stream)
        first, second = streams
        if repr(first.kernel) != repr(second.kernel) or self.n_features_in_ != other.n_features_in_:
            raise InvalidInput(
                f"models with {first.kernel!r} of {self.n_features_in_} features and "
                f"{second.kernel!r} of {other.n_features_in_} cannot be merged: use equal kernels; "
                "pass gamma as a number."
            )
        merged = clone(self)
        merged._copy_feature_names(self)
        merged.gamma_ = self.gamma_
        merged._signal, merged._ended = DriftSignal(), np.zeros(0)
        with learning():
            merged._set_stream(merge(*streams), np.zeros(0), 0)
        return merged

    # Fitted attributes, computed when they are read.

    @property
    def eigenvalues_(self) -> Floats:  # type: ignore[override]
        """Eigenvalues of the centered kernel matrix."""
        return self._solution[1]

    @property
    def eigenvalue_bounds_(self) -> Floats | None:
        """Proved bounds of the eigenvalues, or None."""
        state = self._stream.current
        if not isinstance(state, MomentState) or not state.is_proved:
            return None
        return np.stack([self.eigenvalues_, self.eigenvalues_ + state.energy_outside])

    @property
    def explained_variance_ratio_(self) -> Floats:  # type: ignore[override]
        """Fraction of the variance along each component."""
        return self.eigenvalues_ / (self._stream.current.total_variance or 1.0)

    @property
    def basis_(self) -> Rows:
        """Basis rows."""
        return self._subspace.basis

    @property
    def coefficients_(self) -> Floats:
        """Coefficients of the components."""
        return self._subspace.components

    @property
    def mean_coefficients_(self) -> Floats:
        """Coefficients of the mean."""
        return self._subspace.mean

    @property
    def mean_(self) -> Floats:  # type: ignore[override]
        """Mean of the rows in input space."""
        state = self._stream.current
        return (state.row_sum / (state.n or 1.0)).astype(self.basis_.dtype)

    @property
    def memory_usage_(self) -> int:
        """Size of the model in bytes."""
        return self._stream.n_bytes

    @property
    def _solution(self) -> tuple[Subspace, Floats]:
        with learning():
            return self._stream.solution

    @property
    def _subspace(self) -> Subspace:  # type: ignore[override]
        return self._solution[0]

    @property
    def _scale(self) -> Floats:  # type: ignore[override]
        eigenvalues = self.eigenvalues_
        if not self.whiten:
            return np.ones(len(eigenvalues), self._stream.basis_rows.dtype)
        spread = np.sqrt(eigenvalues / max(self._stream.current.n - 1, 1))
        scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
        return scale.astype(self._stream.basis_rows.dtype)

    # Learning.

    def _start(self, rows: Rows, seed: int, gamma: float | None = None) -> None:
        """Set the stream before its first row, and the parameters that depend on the rows."""
        self.gamma_ = resolve_gamma(self.gamma, rows, self.kernel, seed) if gamma is None else gamma
        # The origin must not depend on the batch.
        kernel = centered_kernel(self._make_kernel(self.gamma_), rows[:1])
        self._check_preimage_of(kernel)
        self._signal, self._ended, self._n_last = DriftSignal(), np.zeros(0), 0
        self._stream = self._empty_stream(kernel, rows, seed)

    def _empty_stream(self, kernel: Kernel, rows: Rows, seed: int) -> MomentState | PreimageState:
        number = int(self.n_components)
        limit: int | None = max(_MIN_ROWS, _ROWS_PER_COMPONENT * number)
        if not is_auto(self.max_basis_rows):
            limit = None if self.max_basis_rows is None else int(self.max_basis_rows)
        is_differentiable = isinstance(kernel, DifferentiableKernel) and not sparse.issparse(rows)
        is_dense = not sparse.issparse(rows)
        if not is_dense and not kernel.supports_sparse:
            raise invalid_parameter(
                "kernel", self.kernel, "does not support CSR rows", "pass X.toarray()"
            )
        if self.basis == "preimages":
            if not is_differentiable or limit is None or limit <= number:
                raise invalid_parameter(
                    "basis",
                    self.basis,
                    "needs dense rows, a kernel with a gradient, and more than n_components basis "
                    "rows",
                    "pass 'auto'",
                )
            decay = float(self.forgetting) ** 2
            return PreimageState.empty(kernel, rows, number, limit, decay)
        if self.basis == "means" and not is_dense:
            raise invalid_parameter(
                "basis", self.basis, "needs dense rows", "pass basis='rows', or X.toarray()"
            )
        means = is_differentiable and not isinstance(kernel, Laplacian)
        return MomentState.empty(
            kernel,
            rows,
            number,
            limit,
            means=self.basis == "means" or (self.basis == "auto" and means),
            decay=float(self.forgetting) ** 2,
            seed=seed,
        )

    def _learn(self, rows: Rows, weights: Floats) -> None:
        """Learn valid rows."""
        stream = self._stream.with_settings(int(self.n_components), float(self.forgetting) ** 2)
        rows = rows.astype(stream.basis_rows.dtype, copy=False)
        check_exponents(stream.kernel, rows, stream.row_sum / stream.n if stream.n else None)
        if isinstance(stream, MomentState):
            stream, novelty = stream.learn(rows, weights)
        else:
            parts = []
            for part in tile_slices(rows.shape[0], _PREIMAGE_BATCH):
                stream, novelty = stream.learn(rows[part], weights[part])
                parts.append(novelty)
            novelty = np.concatenate(parts)
        self._set_stream(stream, novelty, rows.shape[0])
        if self.verbose:
            sys.stderr.write(
                f"{self.n_samples_seen_} samples, basis {len(self.mean_coefficients_)}, explained "
                f"{self.explained_variance_ratio_.sum():.4f}, drift {self.drift_:.2f}\n"
            )

    def _set_stream(
        self, stream: MomentState | PreimageState, novelty: Floats, n_rows: int
    ) -> None:
        """Set the stream after a batch, from the novelty of the rows of blocks that have ended."""
        if len(self._ended):
            self._signal = self._update_signal(self._signal, self._ended)[0]
        self._stream, self._ended, self._n_last = stream, novelty, n_rows
        self.n_samples_seen_ = stream.n_seen

    @property
    def _novelties(self) -> Floats:
        """Novelty of the rows since the drift test: of blocks that have ended, and pending rows."""
        if isinstance(self._stream, PreimageState) or not self._stream.n_pending:
            return self._ended
        return np.concatenate([self._ended, self._stream.pending_novelty])

    @property
    def novelty_(self) -> Floats:  # type: ignore[override]
        """Novelty of the rows of the last batch."""
        novelties = self._novelties
        return novelties[len(novelties) - self._n_last :]

    @property
    def drift_(self) -> float:  # type: ignore[override]
        """Largest test statistic of the last batch, divided by the threshold."""
        novelties = self._novelties
        first = len(novelties) - self._n_last
        signal, _ = self._update_signal(self._signal, novelties[:first])
        return self._update_signal(signal, novelties[first:])[1]

    @property
    def drift_detected_(self) -> bool:  # type: ignore[override]
        """True if ``drift_`` ≥ 1."""
        return self.drift_ >= 1

    def _set_components(
        self, subspace: Subspace, eigenvalues: Floats, n: int, total: float, mean: Floats,
        gamma: float,
    ) -> None:  # fmt: skip
        """Start from known components of n rows."""
        seed = draw_seed(self.random_state)
        self._start(subspace.basis, seed, gamma)
        kept = np.append(np.flatnonzero(eigenvalues > 0), len(eigenvalues))
        subspace = Subspace(subspace.kernel, subspace.basis, subspace.coefficients[kept])
        empty = self._empty_stream(subspace.kernel, subspace.basis, seed)
        assert isinstance(empty, MomentState)
        values = eigenvalues[kept[:-1]].astype(np.float64)
        with learning():
            state = from_components(empty, subspace, values, n, total)
        state.row_sum = n * np.asarray(mean, dtype=np.float64)
        self._set_stream(state, np.zeros(0), 0)

    def _validated_rows(self, X: ArrayLike) -> Rows:
        check_is_fitted(self)
        sparse_rows = "csr" if sparse.issparse(self._stream.basis_rows) else False
        return validate_rows(self, X, accept_sparse=sparse_rows)

    def _validate_batch(self, X: ArrayLike, *, reset: bool) -> Rows:
        """Return a valid batch as float32 or float64."""
        if not reset and self._is_plain(X):
            check_values(X, self._stream.n_seen)
            return X
        rows = validate_data(
            self, X, reset=reset, dtype=FLOAT_DTYPES, ensure_all_finite=sparse.issparse(X),
            accept_sparse=False if self.basis in ("means", "preimages") else "csr",
        )  # fmt: skip
        stream = None if reset else self._stream
        if stream is not None and sparse.issparse(rows) != sparse.issparse(stream.basis_rows):
            raise InvalidInput("X must be CSR in all batches of a stream, or in none; convert it.")
        check_values(rows, 0 if stream is None else stream.n_seen)
        return rows

    def _is_plain(self, X: object) -> bool:
        """Return True for arrays that ``validate_data``, which is slow, would not change."""
        return (
            type(X) is np.ndarray
            and X.dtype in FLOAT_DTYPES
            and X.ndim == 2
            and len(X) > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
            and isinstance(self._stream.basis_rows, np.ndarray)
        )

    def _validate_data_set(self, X: Any) -> Any:
        """Validate all rows of a data set, which may be read in slices."""
        if not (is_lazy(X) or isinstance(X, np.memmap)):
            return self._validate_batch(X, reset=True)
        is_integer = np.dtype(X.dtype).kind in "biu"
        rows = validate_rows(self, LazyRows(X, np.float64) if is_integer else X, reset=True)
        check_overflow(rows)
        return rows if isinstance(rows, LazyRows) else LazyRows(rows)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.basis in ("auto", "rows")
        return tags

    def _check_parameters(self) -> None:
        self._check_stream_parameters()
        check_parameters(self, _RULES)


def _check_batch_model(model: object) -> None:
    """Raise an error if a stream cannot be initialized from the model."""
    if not isinstance(model, KernelPCA):
        raise InvalidInput(
            f"{type(model).__name__} cannot be converted: pass a fitted ikpca.KernelPCA; convert "
            "scikit-learn's with KernelPCA.from_sklearn."
        )
    check_is_fitted(model)
    if model._is_precomputed:
        raise InvalidInput(
            "kernel='precomputed': a stream needs the rows; fit the model on rows and a kernel."
        )
    rows = model._subspace.basis
    if not sparse.issparse(rows) and not isinstance(rows, np.ndarray):
        raise InvalidInput(
            "The model was fitted on rows on disk: a stream needs them in memory; fit it on X[:]."
        )


@cache
def _parameter_names() -> tuple[str, ...]:
    return tuple(signature(IncrementalKernelPCA).parameters)


@lru_cache(maxsize=16, typed=True)
def _checked(*values: object) -> None:
    model = IncrementalKernelPCA()
    model.set_params(**dict(zip(_parameter_names(), values, strict=True)))._check_parameters()


def _are_valid(*values: object) -> bool:
    """Return True for valid parameters that were checked before; checking takes long."""
    try:
        _checked(*values)
    except TypeError:
        # A parameter cannot be hashed.
        return False
    return True
