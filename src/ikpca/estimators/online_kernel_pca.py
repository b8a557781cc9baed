"""Online kernel PCA: each row is seen once."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, Self

from ikpca.errors import DivergenceWarning
from ikpca.estimators.checkpoint import drawn_seed, fit_stream, learn_batch, watch_rows
from ikpca.estimators.conversion import (
    check_batch_model,
    refined_state,
    shared_parameters,
    state_of_batch,
)
from ikpca.estimators.input_checks import batch_of_stream, check_images
from ikpca.estimators.online_stream import (
    OnlineStream,
    check_online,
    online_attributes,
    online_stream_from_batch,
)
from ikpca.estimators.stream_base import StreamTransformer
from ikpca.estimators.validation import one_thread
from ikpca.solvers import deterministic_signs


class OnlineKernelPCA(StreamTransformer):
    r"""Kernel PCA of a stream, one row at a time, in bounded memory.

    The kernel Hebbian algorithm of Kim 2003, appendix A, in which every new row joins the expansion
    of the components and the mean moves with each. How rows are cut into batches does not matter,
    their order does. A row costs O(m(r + N)), m the rows of the expansion.

    Parameters
    ----------
    n_components : int, default=2
        How many components to learn.
    kernel : str, callable or kernel object, default="linear"
        As for :class:`KernelPCA`, but "precomputed": a stream has no kernel matrix.
    gamma : float, "scale", "median" or None, default=None
        As for :class:`KernelPCA`; "scale" and "median" are read off the first batch.
    degree : float, default=3
        Degree of poly.
    coef0 : float, default=1
        Independent term of poly and sigmoid.
    kernel_params : dict, default=None
        Keyword arguments of a callable kernel.
    gain : "auto", float or gain object, default="auto"
        How far to step. "auto" needs no tuning: reciprocal to eigenvalue and time, or to the memory
        where ``forgetting`` is below 1. A number is Kim's constant η: it never stops
        tracking, nor ever settles. An object from :mod:`ikpca.gains` is the papers' other gains,
        with λ as running means and τ = 20 where ``inverse_time`` has none of its own.
    forgetting : float, default=1.0
        f in (0, 1]: with every row, those seen before weigh f² of what they did in the mean and in
        λ, and the gain's clock stops at the 1/(1 − f²) rows that are remembered. For drifting data
        0.995 remembers a hundred.
    init : {"rows", "random", "covering"} or ndarray, default="rows"
        Where components begin. "rows": kernel PCA of the first rows. "random": a point for each,
        drawn with the mean and spread of the first rows, as in the paper. "covering": combinations
        of points that cover the ball of the first rows, for narrow kernels (figures 6 and 7). An
        array of shape (n_components, n_features) holds the points.
    budget : int, "auto" or None, default="auto"
        Rows of the expansion, at most. "auto": 512, or 8 per component. None: it grows for ever.
    reduction : str or reduction object, default="samples"
        How a full expansion is brought down to three quarters: "drop" the least important rows,
        "merge" the rows that are most alike, keep the best "samples", or find "preimages".
    preimage : str or pre-image object, default="auto"
        As for :class:`KernelPCA`, but "ridge".
    rayleigh_ritz : bool, default=True
        Report components that are orthonormal and in order, by a Rayleigh–Ritz step among them;
        what is learned is the same. The paper has none.
    whiten : bool, default=False
        Scale projections to unit variance.
    n_passes : int, default=1
        Passes of ``fit`` over its rows, in their order.
    checkpoint : str or path, default=None
        File that says, after every so many parts, where the stream is; the one before is
        kept beside it.
    checkpoint_every : int or str, default=1
        Parts of 1,024 rows in ``fit``, batches in ``partial_fit``; or a time such as "30s",
        "5min" or "1h".
    resume : bool, default=False
        Go on from the checkpoint, if there is one, to the same bits that a stream without
        interruption gives; a checkpoint of other rows or parameters is refused. ``fit`` takes the
        same X again. For ``partial_fit`` the same batches come again from the first one on, and
        those that the checkpoint has seen are compared and passed over; for a source that cannot
        be played again see :meth:`load_checkpoint`.
    random_state : int, RandomState or None, default=None
        Of the points that components begin with.
    n_jobs : int, default=None
        Threads of ``refine`` and of pre-images; None takes as many as BLAS would. Learning takes
        one, as the last bits would depend on more.
    verbose : int, default=0
        1 writes a line per batch to standard error.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Running variance of each projection times the rows that it remembers: comparable with those
        of :class:`KernelPCA` on the same rows.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Running variances over that of all components.
    library_ : ndarray of shape (m, n_features)
        Rows of the expansion.
    coefficients_ : ndarray of shape (n_components, m)
        α: component i is Σ_j α_ij Φ(x_j).
    mean_coefficients_ : ndarray of shape (m,)
        ν: the mean is Σ_j ν_j Φ(x_j).
    mean_ : ndarray of shape (n_features,)
        Mean of the rows themselves, weighted alike.
    novelty_ : ndarray of shape (n_rows,)
        For every row of the last batch, what the components left of it before they learned from it:
        ``reconstruction_error`` of that moment. Of the first row of a stream, k(x, x).
    drift_ : float
        How near the last batch came to a drift: the Page–Hinkley sum of novelties over its
        threshold. It compares with the usual novelty of the last 1,000 rows, and needs 100.
    drift_detected_ : bool
        Whether ``drift_`` reached 1.
    compression_error_ : ndarray of shape (n_components,) or None
        Relative error, in feature space, of each component the last time the expansion was brought
        down; None before the first.
    n_samples_seen_ : int
    memory_usage_ : int
        Bytes that the model holds.
    gamma_ : float
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    KernelPCA : All rows at once; ``refine`` and ``from_batch`` lead there and back.
    HebbianPCA : The same rule on explicit features.

    Notes
    -----
    Signs are kept throughout a stream; ``fit`` makes the largest projection positive.

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
    >>> model.transform(X[:3]).shape, model.n_samples_seen_, len(model.library_) <= 512
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
        budget: Any = "auto",
        reduction: Any = "samples",
        preimage: Any = "auto",
        rayleigh_ritz: bool = True,
        whiten: bool = False,
        n_passes: int = 1,
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
        self.budget = budget
        self.reduction = reduction
        self.preimage = preimage
        self.rayleigh_ritz = rayleigh_ritz
        self.whiten = whiten
        self.n_passes = n_passes
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume = resume
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget what was learned, and learn from all rows, once or in passes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        X = batch_of_stream(self, X, first=True, seen=0)
        self._forget_batches()

        def begun(seed: int) -> OnlineStream:
            stream = OnlineStream.begun(self, X, seed)
            check_images(stream.kernel, X)
            return stream

        with one_thread():
            stream, interrupted = fit_stream(
                self,
                X,
                begun=begun,
                step=lambda stream: stream.after_part(self, X),
                left=lambda stream: stream.parts_left(len(X), int(self.n_passes)),
                observers=watch_rows(X),
            )
            if stream.seen:
                self._take(stream)
                signs = deterministic_signs(self._view.project(X).T)
                stream = stream.turned(signs)
        self._take_unless_empty(stream, interrupted)
        self._tell()
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a batch of rows, or from a single one, in their order.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        self._take_checkpoint()
        earlier: OnlineStream | None = getattr(self, "_stream", None)
        seen = 0 if earlier is None else earlier.seen
        X = batch_of_stream(self, X, first=earlier is None, seen=seen)
        if self._knows(X):
            return self
        with one_thread():
            stream = earlier or OnlineStream.begun(self, X, drawn_seed(self))
            check_images(stream.kernel, X)
            stream, interrupted = learn_batch(self, stream, X, self._after(X))
        self._take_unless_empty(stream, interrupted)
        self._tell()
        return self

    def refine(self, X: Any) -> Self:
        """The exact components of a batch of rows, by block Krylov from the streamed ones.

        The stream then goes on from this batch: what was seen before counts no more, but the clock
        of the gains runs on.

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
        self._take(online_stream_from_batch(self, batch, stream.gamma, stream.clock))
        return self

    @classmethod
    def from_batch(cls, model: Any, **parameters: Any) -> Self:
        """Take over a fitted :class:`KernelPCA`, so that it can go on with ``partial_fit``.

        Parameters
        ----------
        model : KernelPCA
            A model of scikit-learn's through :meth:`KernelPCA.from_sklearn`.
        **parameters
            Of the new model, beside those that both have.

        Returns
        -------
        OnlineKernelPCA
        """
        check_batch_model(model)
        batch = state_of_batch(model)
        shared = shared_parameters(model) | {"n_components": batch.n_components}
        streaming = cls(**shared | parameters)
        streaming._check_parameters()
        streaming._take_names(model)
        streaming._take(online_stream_from_batch(streaming, batch, model.gamma_))
        return streaming

    def _after(self, X: Any) -> Callable[[OnlineStream], OnlineStream]:
        return lambda stream: stream.after(self, X)

    def _check_parameters(self) -> None:
        check_online(self)

    def _take(self, stream: OnlineStream) -> None:
        self._stream = stream
        for name, value in online_attributes(self, stream).items():
            setattr(self, name, value)

    def _widened(self, n_features: int) -> Self:
        """Take features that were zero so far, for streams of dictionaries."""
        self._take(self._stream.widened(n_features))
        self.n_features_in_ = n_features
        return self

    def _tell(self) -> None:
        if self.verbose:
            sys.stderr.write(f"online KPCA: {self._stream.line()}\n")
        if self._stream.halvings and not isinstance(self.gain, str):
            warnings.warn(
                f"gain={self.gain!r} was too large: it was halved {self._stream.halvings} times "
                "so that no component overshoots; pass gain='auto' or a smaller number.",
                DivergenceWarning,
                stacklevel=3,
            )
