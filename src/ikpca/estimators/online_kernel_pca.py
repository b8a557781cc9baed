"""Online kernel PCA, which uses each row of a stream once."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, Self

from ikpca.errors import DivergenceWarning
from ikpca.estimators.checkpoint import data_change_observers, fit_stream, learn_batch
from ikpca.estimators.conversion import (
    check_batch_model,
    refined_state,
    shared_parameters,
    state_from_batch,
)
from ikpca.estimators.input_checks import check_diagonal, validate_batch
from ikpca.estimators.online_stream import (
    OnlineStream,
    check_online,
    online_attributes,
    online_stream_from_batch,
)
from ikpca.estimators.stream_base import StreamTransformer
from ikpca.estimators.validation import draw_seed, single_thread
from ikpca.solvers import deterministic_signs


class OnlineKernelPCA(StreamTransformer):
    r"""Kernel PCA of a stream, one row at a time, in bounded memory.

    The kernel Hebbian algorithm of Kim 2003, appendix A: every new row is added to the expansion of
    the components and updates the mean. The result depends on the order of the rows, not on the
    batches. A row costs O(m(r + N)), where m is the number of rows of the expansion.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    kernel : str, callable or kernel object, default="linear"
        As for :class:`KernelPCA`, except "precomputed".
    gamma : float, "scale", "median" or None, default=None
        As for :class:`KernelPCA`; "scale" and "median" are computed from the first batch.
    degree : float, default=3
        Degree of poly.
    coef0 : float, default=1
        Independent term of poly and sigmoid.
    kernel_params : dict, default=None
        Keyword arguments of a callable kernel.
    gain : "auto", float or gain object, default="auto"
        "auto" needs no tuning: proportional to 1/(eigenvalue · time), with the time bounded by the
        memory if ``forgetting`` < 1. A number is Kim's constant η, which keeps tracking and does
        not converge. Objects from :mod:`ikpca.gains` are the other gains of the papers, with
        running means of λ and τ = 20 unless ``inverse_time`` sets it.
    forgetting : float, default=1.0
        f in (0, 1]: every row multiplies the weights of earlier rows in the mean and in λ by f²,
        and the time of the gain is bounded by the memory of 1/(1 − f²) rows. For drifting data,
        0.995 gives a memory of a hundred rows.
    init : {"rows", "random", "covering"} or ndarray, default="rows"
        Initialization of the components. "rows": kernel PCA of the first rows. "random": one point
        per component, drawn with the mean and spread of the first rows, as in the paper.
        "covering": combinations of points that cover the ball of the first rows, for narrow kernels
        (figures 6 and 7). An array of shape (n_components, n_features) holds the points.
    max_basis_rows : int, "auto" or None, default="auto"
        Maximum number of rows of the expansion. "auto": the larger of 512 and 8 per component.
        None: no limit.
    reduction : str or reduction object, default="samples"
        Method that reduces a full expansion to three quarters: "drop" the least important rows,
        "merge" the most similar rows, keep the best "samples", or compute "preimages".
    preimage : str or pre-image object, default="auto"
        As for :class:`KernelPCA`, except "ridge".
    rayleigh_ritz : bool, default=True
        If True, the fitted attributes hold orthonormal, ordered components of a Rayleigh–Ritz
        step, unlike in the paper; learning is not affected.
    drift_threshold : float, default=25.0
        Threshold of the Page–Hinkley test on ``novelty_``; a larger one signals fewer drifts.
    drift_delta : float, default=0.5
        Increase of the novelty, in standard deviations, that the test tolerates.
    whiten : bool, default=False
        If True, scale projections to unit variance.
    max_iter : int, default=1
        Number of passes of ``fit`` over the rows, in their order.
    checkpoint : str or path, default=None
        Checkpoint file of the stream; the previous checkpoint is kept next to it.
    checkpoint_every : int or str, default=1
        Interval in parts of 1,024 rows for ``fit`` and in batches for ``partial_fit``, or a time
        such as "30s", "5min" or "1h".
    resume : bool, default=False
        If True, resume from the checkpoint if it exists; the result is bit-identical to that of an
        uninterrupted stream. A checkpoint of other rows or parameters raises an error. Pass the
        same X to ``fit``, or the same batches to ``partial_fit``, from the first one on: batches
        in the checkpoint are compared and skipped. For a stream that cannot be replayed see
        :meth:`load_checkpoint`.
    random_state : int, RandomState or None, default=None
        Seed of the initial points of the components.
    n_jobs : int, default=None
        Number of threads of ``refine`` and of pre-images; None uses as many as BLAS. Learning uses
        one thread, as its last bits would depend on the number.
    verbose : int, default=0
        If positive, write a line per batch to standard error.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Running variance of each projection times the number of rows in memory; comparable with
        those of :class:`KernelPCA` on the same rows.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Running variances divided by the running total variance.
    basis_ : ndarray of shape (m, n_features)
        Rows of the expansion.
    coefficients_ : ndarray of shape (n_components, m)
        α: component i is Σ_j α_ij Φ(x_j).
    mean_coefficients_ : ndarray of shape (m,)
        ν: the mean is Σ_j ν_j Φ(x_j).
    mean_ : ndarray of shape (n_features,)
        Unweighted mean of the rows in input space.
    novelty_ : ndarray of shape (n_rows,)
        ``reconstruction_error`` of every row of the last batch before the update; k(x, x) for the
        first row of a stream.
    drift_ : float
        Largest Page–Hinkley test statistic of the last batch divided by its threshold; values ≥ 1
        signal a drift. The test compares with the novelty of the last 1,000 rows and needs 100.
    drift_detected_ : bool
        True if ``drift_`` ≥ 1.
    reduction_error_ : ndarray of shape (n_components,) or None
        Relative error of each component in feature space in the last reduction of the expansion;
        None before the first.
    n_samples_seen_ : int
    n_iter_ : int
        Number of passes of ``fit`` over its rows.
    memory_usage_ : int
        Size of the model in bytes.
    gamma_ : float
        Value of ``gamma`` used by the kernel.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Defined only if X has string column names.

    See Also
    --------
    KernelPCA : Batch kernel PCA; see also ``refine`` and ``from_batch``.
    HebbianPCA : The same learning rule on explicit features.

    Notes
    -----
    The signs of components do not change in a stream; ``fit`` makes the largest projection
    positive.

    References
    ----------
    K. I. Kim, M. O. Franz, B. Schölkopf, Kernel Hebbian Algorithm for Iterative Kernel Principal
    Component Analysis, MPI technical report 109, 2003, appendix A.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ikpca import OnlineKernelPCA
    >>> X = load_digits().data / 16
    >>> model = OnlineKernelPCA(8, kernel="rbf", gamma=0.02, random_state=0)
    >>> for batch in (X[:1000], X[1000:1001], X[1001:]):
    ...     model = model.partial_fit(batch)
    >>> model.transform(X[:3]).shape, model.n_samples_seen_, len(model.basis_) <= 512
    ((3, 8), 1797, True)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        gain: Any = "auto",
        forgetting: float = 1.0,
        init: Any = "rows",
        max_basis_rows: Any = "auto",
        reduction: Any = "samples",
        preimage: Any = "auto",
        rayleigh_ritz: bool = True,
        drift_threshold: float = 25.0,
        drift_delta: float = 0.5,
        whiten: bool = False,
        max_iter: int = 1,
        checkpoint: Any = None,
        checkpoint_every: Any = 1,
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
        self.gain = gain
        self.forgetting = forgetting
        self.init = init
        self.max_basis_rows = max_basis_rows
        self.reduction = reduction
        self.preimage = preimage
        self.rayleigh_ritz = rayleigh_ritz
        self.drift_threshold = drift_threshold
        self.drift_delta = drift_delta
        self.whiten = whiten
        self.max_iter = max_iter
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume = resume
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from all rows in one or more passes, after resetting the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        X = validate_batch(self, X, first=True, seen=0)
        self._reset_fingerprint()

        def initial(seed: int) -> OnlineStream:
            stream = OnlineStream.from_first_batch(self, X, seed)
            check_diagonal(stream.kernel, X)
            return stream

        with single_thread():
            stream, interrupted = fit_stream(
                self,
                X,
                initial=initial,
                step=lambda stream: stream.learn_part(self, X),
                n_steps_left=lambda stream: stream.n_parts_left(len(X), int(self.max_iter)),
                observers=data_change_observers(X),
            )
            if stream.seen:
                self._set_stream(stream)
                signs = deterministic_signs(self._view.project(X).T)
                stream = stream.flip_signs(signs)
        self._set_stream_or_interrupt(stream, interrupted)
        self.n_iter_ = int(self.max_iter)
        self._report()
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a batch of one or more rows in their order.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        self._restore_checkpoint()
        earlier: OnlineStream | None = getattr(self, "_stream", None)
        seen = 0 if earlier is None else earlier.seen
        X = validate_batch(self, X, first=earlier is None, seen=seen)
        if self._skip_if_learned(X):
            return self
        with single_thread():
            stream = earlier or OnlineStream.from_first_batch(self, X, draw_seed(self.random_state))
            check_diagonal(stream.kernel, X)
            stream, interrupted = learn_batch(self, stream, X, self._step(X))
        self._set_stream_or_interrupt(stream, interrupted)
        self._report()
        return self

    def refine(self, X: Any) -> Self:
        """Compute the exact components of a batch by block Krylov from the streamed ones.

        The stream continues from this batch; earlier samples are dropped, but the time of the
        gains continues.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        self
        """
        self._check_parameters()
        X, stream = self._validated_rows(X).copy(), self._stream
        batch = refined_state(
            stream.kernel, X, int(self.n_components), self._subspace.project(X), self
        )
        self._set_stream(online_stream_from_batch(self, batch, stream.gamma, stream.clock))
        return self

    @classmethod
    def from_batch(cls, model: Any, **parameters: Any) -> Self:
        """Convert a fitted :class:`KernelPCA` to continue with ``partial_fit``.

        Parameters
        ----------
        model : KernelPCA
            Convert a model of scikit-learn with :meth:`KernelPCA.from_sklearn` first.
        **parameters
            Parameters of the new model that override those of the batch model.

        Returns
        -------
        OnlineKernelPCA
        """
        check_batch_model(model)
        batch = state_from_batch(model)
        shared = shared_parameters(model) | {"n_components": batch.n_components}
        streaming = cls(**shared | parameters)
        streaming._check_parameters()
        streaming._copy_feature_names(model)
        streaming._set_stream(online_stream_from_batch(streaming, batch, model.gamma_))
        return streaming

    def _step(self, X: Any) -> Callable[[OnlineStream], OnlineStream]:
        return lambda stream: stream.learn(self, X)

    def _check_parameters(self) -> None:
        check_online(self)

    def _set_stream(self, stream: OnlineStream) -> None:
        self._stream = stream
        for name, value in online_attributes(self, stream).items():
            setattr(self, name, value)

    def _add_features(self, n_features: int) -> Self:
        """Add features that were zero so far, for streams of dictionaries."""
        self._set_stream(self._stream.pad_features(n_features))
        self.n_features_in_ = n_features
        return self

    def _report(self) -> None:
        if self.verbose:
            sys.stderr.write(f"online KPCA: {self._stream.progress_line()}\n")
        if self._stream.halvings and not isinstance(self.gain, str):
            warnings.warn(
                f"gain={self.gain!r} was too large: it was halved {self._stream.halvings} times "
                "to prevent divergence; pass gain='auto' or a smaller number.",
                DivergenceWarning,
                stacklevel=3,
            )
