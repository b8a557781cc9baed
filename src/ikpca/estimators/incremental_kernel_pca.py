"""Incremental kernel PCA of data that arrive in batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ikpca.estimators.checkpoint import data_change_observers, fit_stream, learn_batch
from ikpca.estimators.conversion import (
    check_batch_model,
    refined_state,
    shared_parameters,
    state_from_batch,
)
from ikpca.estimators.incremental_stream import (
    IncrementalStream,
    check_incremental,
    fit_batch_size,
    incremental_attributes,
)
from ikpca.estimators.input_checks import validate_batch, validate_rows
from ikpca.estimators.reporting import warn_of_rank
from ikpca.estimators.stream_base import StreamTransformer
from ikpca.estimators.validation import draw_seed, single_thread
from ikpca.kernels import Floats


class IncrementalKernelPCA(StreamTransformer):
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
        rows; for one that takes two blocks of rows see :func:`ikpca.vectorized`.
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
        Number of additional components, as later batches cannot restore what an update truncates.
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
    checkpoint : str or path, default=None
        Checkpoint file of the stream; the previous checkpoint is kept next to it.
    checkpoint_every : int or str, default=10
        Interval in batches, or a time such as "30s", "5min" or "1h".
    resume : bool, default=False
        If True, resume from the checkpoint if it exists; the result is bit-identical to that of an
        uninterrupted stream. A checkpoint of other rows or parameters raises an error. Pass the
        same X to ``fit``, or the same batches to ``partial_fit``, from the first one on: batches
        in the checkpoint are compared and skipped. For a stream that cannot be replayed see
        :meth:`load_checkpoint`.
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
        Eigenvalues of the centred kernel matrix of all samples seen, as in :class:`KernelPCA`;
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
        Value of ``gamma`` used by the kernel.
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
        checkpoint: Any = None,
        checkpoint_every: Any = 10,
        resume: bool = False,
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
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume = resume
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        X = validate_rows(self, X)
        self._reset_fingerprint()
        size = fit_batch_size(self)

        def step(stream: IncrementalStream) -> IncrementalStream:
            return stream.learn(self, X[stream.seen : stream.seen + size])

        with single_thread():
            stream, interrupted = fit_stream(
                self,
                X,
                initial=lambda seed: IncrementalStream.from_first_batch(self, X[:size], seed),
                step=step,
                n_steps_left=lambda stream: -(-(X.shape[0] - stream.seen) // size),
                observers=data_change_observers(X),
            )
        self._set_stream_or_interrupt(stream, interrupted)
        rank = int(np.count_nonzero(self.eigenvalues_))
        warn_of_rank(self.n_components, len(self.eigenvalues_), rank, "reduce it")
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one batch of rows.

        An invalid batch, for example with NaN, leaves the model unchanged.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            At least one row.
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        self._restore_checkpoint()
        earlier: IncrementalStream | None = getattr(self, "_stream", None)
        seen = 0 if earlier is None else earlier.seen
        batch = validate_batch(self, X, first=earlier is None, seen=seen)
        if self._skip_if_learned(batch):
            return self
        with single_thread():
            if earlier is None:
                stream = IncrementalStream.from_first_batch(
                    self, batch, draw_seed(self.random_state)
                )
            else:
                stream = earlier.with_settings(self)
            stream, interrupted = learn_batch(self, stream, batch, self._step(batch))
        self._set_stream_or_interrupt(stream, interrupted)
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
        X = self._validated_rows(X).copy()
        stream = self._stream.with_settings(self)
        start = stream.state.subspace().project(X)
        number = stream.settings.n_kept
        state = refined_state(stream.state.kernel, X, number, start, self)
        self._set_stream(stream.from_state(state))
        return self

    @classmethod
    def from_batch(cls, model: Any, **parameters: Any) -> Self:
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
        initial = IncrementalStream.from_first_batch(
            streaming, model.X_fit_, draw_seed(streaming.random_state)
        )
        streaming._set_stream(initial.from_state(state_from_batch(model)))
        return streaming

    def _step(self, batch: Any) -> Callable[[IncrementalStream], IncrementalStream]:
        return lambda stream: stream.learn(self, batch)

    def _check_parameters(self) -> None:
        check_incremental(self)

    def _set_stream(self, stream: IncrementalStream) -> None:
        self._stream = stream
        for name, value in incremental_attributes(self, stream).items():
            setattr(self, name, value)
