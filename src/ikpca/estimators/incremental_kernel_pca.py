"""Incremental kernel PCA of data that arrive in batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ikpca.estimators.checkpoint import drawn_seed, fit_stream, learn_batch, watch_rows
from ikpca.estimators.conversion import (
    check_batch_model,
    refined_state,
    shared_parameters,
    state_of_batch,
)
from ikpca.estimators.incremental_stream import (
    IncrementalStream,
    check_stream,
    first_batch_size,
    stream_attributes,
)
from ikpca.estimators.input_checks import batch_of_stream, rows_of_data
from ikpca.estimators.reporting import warn_of_rank
from ikpca.estimators.stream_base import StreamTransformer
from ikpca.estimators.validation import one_thread
from ikpca.kernels import Floats


class IncrementalKernelPCA(StreamTransformer):
    r"""Kernel PCA of a stream, in one pass and, if wanted, in bounded memory.

    Each batch updates mean and components exactly (Chin & Suter 2006). Both are combinations of
    the images of a library of rows, which compression keeps small: it replaces the rows by fewer
    ones on which components and mean are nearly the same.

    Parameters
    ----------
    n_components : int or None, default=None
        Components to keep. None keeps all that carry variance, and with them the whole library:
        it goes with ``compression=None`` or "auto" only.
    kernel : str, callable or kernel object, default="linear"
        "linear", "poly", "rbf", "sigmoid", "cosine" or "laplacian". A callable takes one pair of
        rows; for one that takes two blocks of rows see :func:`ikpca.vectorised`.
    gamma : float, "scale", "median" or None, default=None
        Coefficient of rbf, poly, sigmoid and laplacian. None: 1/n_features. "scale" and "median"
        are taken from the first batch, and stay.
    degree : float, default=3
        Degree of poly.
    coef0 : float, default=1
        Independent term of poly and sigmoid.
    kernel_params : dict, default=None
        Keyword arguments of a callable kernel.
    preimage : str or method object, default="auto"
        How ``inverse_transform`` goes back, as for :class:`KernelPCA`, without "ridge".
    compression : {"auto", "preimages", "samples", None}, default="auto"
        What the library is reduced to: "samples" are rows that were seen, for any kernel;
        "preimages" are rows made for it, for kernels with a gradient, which lose less on as many
        rows and take several times as long; None keeps all rows: exact. "auto" is "samples", and
        None without ``n_components``.
    library_size : int or "auto", default="auto"
        Rows that the library has at most after a batch. "auto": 20 for
        every component (those beyond ``n_components`` too) and the mean, and 200 at least.
    preimages_per_component : int or "auto", default="auto"
        The paper's n': "preimages" are then found one after the other, so many for each component
        and the mean, and ``library_size="auto"`` has room for them. "auto" moves all of them
        together, which is more accurate.
    compression_tol : float, default=1e-4
        Relative error of a component at which "preimages" stop before the library is full.
    n_oversamples : int or "auto", default="auto"
        Components that are kept beyond those asked for, as what one batch truncates cannot come
        back with the next. 0 truncates as the paper and scikit-learn's IncrementalPCA do; "auto"
        is half of ``n_components``, and 8 at least, unless the library is too small for them.
    batch_size : int or None, default=None
        Rows per update, in ``fit`` and where ``partial_fit`` gets more of them. None: in ``fit``
        200, or two per component, or a quarter of ``library_size``, whichever is most; in
        ``partial_fit`` what is passed; and never more than 1,000.
    forgetting : float, default=1.0
        f in (0, 1]: with every update, samples seen before weigh f² of what they did.
    whiten : bool, default=False
        Scale projections to unit variance.
    checkpoint : str or path, default=None
        File that says, after every so many batches, where the stream is; the one before is
        kept beside it.
    checkpoint_every : int or str, default=10
        Batches, or a time such as "30s", "5min" or "1h".
    resume : bool, default=False
        Go on from the checkpoint, if there is one, to the same bits that a stream without
        interruption gives; a checkpoint of other rows or parameters is refused. ``fit`` takes the
        same X again. For ``partial_fit`` the same batches come again from the first one on, and
        those that the checkpoint has seen are compared and passed over; for a source that cannot
        be played again see :meth:`load_checkpoint`.
    random_state : int, RandomState or None, default=None
        Of what is drawn: rows for ``gamma="median"``, rows to choose from.
    n_jobs : int, default=None
        Threads of ``refine`` and of pre-images; None takes as many as BLAS would. Learning takes
        one, as the last bits would depend on more.
    verbose : int, default=0
        1 writes a line per batch to standard error.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Of the centred kernel matrix of all samples seen, as :class:`KernelPCA` has them. Zero for
        components that no variance has been seen for yet.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        λ over the trace of K', which is counted as samples come.
    n_samples_seen_, n_batches_ : int
    library_ : ndarray of shape (n_rows, n_features)
        The rows that components and mean are combinations of.
    coefficients_ : ndarray of shape (n_components, n_rows)
        α: component i is Σ_j α_ij Φ(x_j).
    mean_coefficients_ : ndarray of shape (n_rows,)
        ν: the mean is Σ_j ν_j Φ(x_j).
    mean_ : ndarray of shape (n_features,)
        Mean of the rows themselves.
    novelty_ : ndarray of shape (rows of the last batch,)
        What the components left of each row before they learned from it, squared; NaN for the
        first batch.
    drift_ : float
        How near the last batch came to a drift: the Page–Hinkley sum of novelties over its
        threshold. It compares with the usual novelty of the last 1,000 rows, and needs 100.
    drift_detected_ : bool
        Whether ``drift_`` reached 1.
    compression_error_ : ndarray of shape (n_components,) or None
        Relative error, in feature space, of each component in the last reduction of the library;
        None before the first.
    mean_compression_error_ : float or None
        That of the mean.
    recovery_ : str
        Empty, or what gave way in the last batch without harm, such as orthonormality.
    memory_usage_ : int
        Bytes of the model.
    gamma_ : float
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has string column names.

    See Also
    --------
    KernelPCA : All rows at once.
    sklearn.decomposition.IncrementalPCA : What this is with a linear kernel, at a lower cost.

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
        compression: Any = "auto",
        library_size: Any = "auto",
        preimages_per_component: Any = "auto",
        compression_tol: float = 1e-4,
        n_oversamples: Any = "auto",
        batch_size: int | None = None,
        forgetting: float = 1.0,
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
        self.compression = compression
        self.library_size = library_size
        self.preimages_per_component = preimages_per_component
        self.compression_tol = compression_tol
        self.n_oversamples = n_oversamples
        self.batch_size = batch_size
        self.forgetting = forgetting
        self.whiten = whiten
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume = resume
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from all rows, a batch at a time; what was learned before is forgotten.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Memory maps and arrays that are read in slices, such as those of h5py or zarr, are
            never loaded whole.
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        X = rows_of_data(self, X)
        self._forget_batches()
        size = first_batch_size(self)

        def after(stream: IncrementalStream) -> IncrementalStream:
            return stream.after(X[stream.seen : stream.seen + size], self.verbose)

        with one_thread():
            stream, interrupted = fit_stream(
                self,
                X,
                begun=lambda seed: IncrementalStream.begun(self, X[:size], seed),
                step=after,
                left=lambda stream: -(-(X.shape[0] - stream.seen) // size),
                observers=watch_rows(X),
            )
        self._take_unless_empty(stream, interrupted)
        rank = int(np.count_nonzero(self.eigenvalues_))
        warn_of_rank(self.n_components, len(self.eigenvalues_), rank, "ask for fewer")
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one batch of rows.

        A batch that is refused, for NaN or another width, leaves the model as it was.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            One row is enough.
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        self._take_checkpoint()
        earlier: IncrementalStream | None = getattr(self, "_stream", None)
        seen = 0 if earlier is None else earlier.seen
        batch = batch_of_stream(self, X, first=earlier is None, seen=seen)
        if self._knows(batch):
            return self
        with one_thread():
            if earlier is None:
                stream = IncrementalStream.begun(self, batch, drawn_seed(self))
            else:
                stream = earlier.told(self)
            stream, interrupted = learn_batch(self, stream, batch, self._after(batch))
        self._take_unless_empty(stream, interrupted)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Learn from all rows, then project them on the components.

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
        """The exact components of a batch of rows, by block Krylov from the streamed ones.

        The stream then goes on from this batch: what was seen before counts no more.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        self
        """
        self._check_parameters()
        X = self._validated_rows(X).copy()
        stream = self._stream.told(self)
        start = stream.state.subspace().project(X)
        number = stream.settings.n_kept
        state = refined_state(stream.state.kernel, X, number, start, self)
        self._take(stream.from_state(state))
        return self

    @classmethod
    def from_batch(cls, model: Any, **parameters: Any) -> Self:
        """Take over a fitted :class:`KernelPCA`, so that it can go on with ``partial_fit``.

        What the batch left out, the stream does not have: with components for all of its variance
        the two together are exact.

        Parameters
        ----------
        model : KernelPCA
            A model of scikit-learn's through :meth:`KernelPCA.from_sklearn`.
        **parameters
            Of the new model, beside those that both have.

        Returns
        -------
        IncrementalKernelPCA
        """
        check_batch_model(model)
        streaming = cls(**shared_parameters(model) | parameters)
        streaming._check_parameters()
        streaming._take_names(model)
        begun = IncrementalStream.begun(streaming, model.X_fit_, drawn_seed(streaming))
        streaming._take(begun.from_state(state_of_batch(model)))
        return streaming

    def _after(self, batch: Any) -> Callable[[IncrementalStream], IncrementalStream]:
        return lambda stream: stream.after(batch, self.verbose)

    def _check_parameters(self) -> None:
        check_stream(self)

    def _take(self, stream: IncrementalStream) -> None:
        self._stream = stream
        for name, value in stream_attributes(self, stream).items():
            setattr(self, name, value)
