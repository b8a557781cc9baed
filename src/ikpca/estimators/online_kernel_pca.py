"""Online kernel PCA, which uses each row of a stream once."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Self

import numpy as np

from ikpca.errors import (
    DivergenceWarning,
    check_choice,
    check_number,
    invalid_parameter,
    is_auto,
)
from ikpca.estimators.base import atomic, stacklevel
from ikpca.estimators.conversion import (
    check_batch_model,
    refined_state,
    shared_parameters,
    state_from_batch,
)
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.estimators.online_stream import OnlineStream
from ikpca.estimators.stream_base import StreamTransformer
from ikpca.estimators.validation import check_diagonal, draw_seed, resolve_gamma, single_thread
from ikpca.kernels import Floats, Kernel, centered_kernel
from ikpca.reduced_sets import JointPreimages, Reduction, SelectedRows
from ikpca.solvers import KHA
from ikpca.solvers.kha_pass import safety_for
from ikpca.solvers.rayleigh_ritz import deterministic_signs
from ikpca.streams import START_NAMES, IncrementalState, OnlineSettings, OnlineStart

_REDUCTIONS: dict[str, Reduction] = {"samples": SelectedRows(), "preimages": JointPreimages()}
#: h_i λ_i/l at t = 0, divided by 20, for init="rows" and for points.
_STEP_FROM_ROWS, _STEP_FROM_POINTS = 2.0, 7.0
#: Number of patterns over which the gain stays near its initial value.
_HORIZON = 20
#: Number of rows of an expansion: minimum, and per component.
_MIN_ROWS, _ROWS_PER_COMPONENT = 512, 8
#: Fraction of the maximum that an expansion is reduced to; reductions are then rare.
_REDUCED_FRACTION = 0.75


class OnlineKernelPCA(StreamTransformer[OnlineStream]):
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
    eigen_solver : {"kha/et"} or KHA, default="kha/et"
        Learning rule, with a gain that needs no tuning: proportional to 1/(eigenvalue · time), with
        the time bounded by the memory if ``forgetting`` < 1. Pass a :class:`ikpca.solvers.KHA` for
        other settings. ``gain``: a number is Kim's constant η of ``KHA("kha")``, which keeps
        tracking and does not converge; objects from :mod:`ikpca.gains` are the other gains of the
        papers, with running means of λ and τ = 20 unless ``InverseTime`` sets it. ``init``: "rows"
        (the default) is kernel PCA of the first rows; "random" is one point per component, drawn
        with the mean and spread of the first rows, as in the paper; "covering" is combinations of
        points that cover the ball of the first rows, for narrow kernels (figures 6 and 7); an array
        of shape (n_components, n_features) holds the points. ``rayleigh_ritz``: if True, the
        fitted attributes hold orthonormal, ordered components, unlike in the paper; learning is
        not affected.
    forgetting : float, default=1.0
        f in (0, 1]: every row multiplies the weights of earlier rows in the mean and in λ by f²,
        and the time of the gain is bounded by the memory of 1/(1 − f²) rows. For drifting data,
        0.995 gives a memory of a hundred rows.
    max_basis_rows : int, "auto" or None, default="auto"
        Maximum number of rows of the expansion. "auto": the larger of 512 and 8 per component.
        None: no limit.
    reduction : {"samples", "preimages"} or reduction object, default="samples"
        Method that reduces a full expansion to three quarters: keep the best "samples", or compute
        "preimages".
    preimage : str or pre-image object, default="auto"
        As for :class:`KernelPCA`, except "ridge".
    drift_threshold : float, default=25.0
        Threshold of the Page–Hinkley test on ``novelty_``; a larger one signals fewer drifts.
    drift_delta : float, default=0.5
        Increase of the novelty, in standard deviations, that the test tolerates.
    whiten : bool, default=False
        If True, scale projections to unit variance.
    max_iter : int, default=1
        Number of passes of ``fit`` over the rows, in their order.
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
        As in :class:`KernelPCA`.
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
        eigen_solver: str | KHA = "kha/et",
        forgetting: float = 1.0,
        max_basis_rows: Any = "auto",
        reduction: Any = "samples",
        preimage: Any = "auto",
        drift_threshold: float = 25.0,
        drift_delta: float = 0.5,
        whiten: bool = False,
        max_iter: int = 1,
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
        self.eigen_solver = eigen_solver
        self.forgetting = forgetting
        self.max_basis_rows = max_basis_rows
        self.reduction = reduction
        self.preimage = preimage
        self.drift_threshold = drift_threshold
        self.drift_delta = drift_delta
        self.whiten = whiten
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic
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
        X = self._validate_batch(X, None)

        stream = self._initial_stream(X, draw_seed(self.random_state))
        check_diagonal(stream.kernel, X)

        def step(stream: OnlineStream) -> OnlineStream:
            settings = self._settings(stream.kernel)
            return stream.learn_part(X, settings, self.drift_threshold, self.drift_delta)

        max_iter = int(self.max_iter)
        stream = self._fit_stream(stream, step, stream.n_parts_left(len(X), max_iter))
        self._set_stream(stream)
        with single_thread():
            signs = deterministic_signs(self._subspace.project(X).T)
        self._set_stream(stream.flip_signs(signs))
        self.n_iter_ = max_iter
        self._report()
        return self

    @atomic
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a batch of one or more rows in their order.

        An invalid batch, for example with NaN, leaves the model unchanged.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        super().partial_fit(X)
        self._report()
        return self

    @atomic
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
        X, stream = np.array(self._validated_rows(X), order="C"), self._stream
        start = self._subspace.project(X)
        number = int(self.n_components)
        batch = refined_state(stream.kernel, X, number, start, self.n_jobs, self.verbose)
        self._set_stream(self._stream_from_batch(batch, stream.gamma, stream.clock))
        return self

    @classmethod
    def from_batch(cls, model: KernelPCA, **parameters: Any) -> Self:
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
        streaming._set_stream(streaming._stream_from_batch(batch, model.gamma_))
        return streaming

    def _initial_stream(self, rows: Floats, seed: int) -> OnlineStream:
        gamma = resolve_gamma(self.gamma, rows, self.kernel, seed)
        kernel = centered_kernel(self._make_kernel(gamma), rows)
        self._check_preimage_of(kernel)
        start = self._start(rows.shape[1], seed)
        return OnlineStream(kernel, gamma, start, rows[:0], np.zeros(rows.shape[1]))

    def _stream_from_batch(
        self, batch: IncrementalState, gamma: float, clock: int = 0
    ) -> OnlineStream:
        start = self._start(batch.basis.shape[1], 0)
        return OnlineStream.from_batch(batch, gamma, start, self._settings(batch.kernel), clock)

    def _step(self, stream: OnlineStream, rows: Floats) -> OnlineStream:
        check_diagonal(stream.kernel, rows)
        if stream.start.n_components != self.n_components:
            raise invalid_parameter(
                "n_components",
                self.n_components,
                f"the stream has {stream.start.n_components} components",
                "reset it, or start again with fit",
            )
        settings = self._settings(stream.kernel)
        return stream.learn(rows, settings, self.drift_threshold, self.drift_delta)

    def _set_stream(self, stream: OnlineStream) -> None:
        self._stream = stream
        state = stream.state
        assert state is not None
        subspace, variances = state.subspace(stream.kernel, ritz=self._solver.rayleigh_ritz)
        kind = subspace.components.dtype
        n = min(stream.seen, self._memory)
        scale = np.ones_like(variances)
        if self.whiten:
            spread = np.sqrt(variances * (n / max(n - 1, 1)))
            scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
        total = state.total_variance if state.total_variance > 0 else 1.0
        self.eigenvalues_ = (n * variances).astype(kind)
        self.explained_variance_ratio_ = (variances / total).astype(kind)
        self.n_samples_seen_ = stream.seen
        self.basis_ = subspace.basis
        self.coefficients_ = subspace.components
        self.mean_coefficients_ = subspace.mean
        self.mean_ = (stream.row_sum / stream.seen).astype(kind)
        self.novelty_ = stream.novelty
        self.drift_ = stream.drift
        self.drift_detected_ = stream.drift >= 1
        self.reduction_error_ = state.errors
        self.memory_usage_ = state.nbytes + stream.kept.nbytes + subspace.components.nbytes
        self.gamma_ = stream.gamma
        self._subspace = subspace
        self._scale = scale.astype(kind)

    @property
    def _solver(self) -> KHA:
        if isinstance(self.eigen_solver, KHA):
            return self.eigen_solver
        check_choice("eigen_solver", self.eigen_solver, ("kha/et",))
        return KHA(self.eigen_solver)

    @property
    def _init(self) -> str | Floats:
        return "rows" if is_auto(self._solver.init) else self._solver.init

    def _settings(self, kernel: Kernel) -> OnlineSettings:
        """Return gain, memory and size of the expansion."""
        solver, size = self._solver, self._reduced_rows
        reduction = self.reduction
        if isinstance(reduction, str):
            reduction = _REDUCTIONS[reduction]
        if not reduction.supports(kernel):
            raise invalid_parameter(
                "reduction", self.reduction, f"does not support {kernel!r}", "pass 'samples'"
            )
        from_rows = isinstance(self._init, str) and self._init == "rows"
        return OnlineSettings(
            kernel=kernel,
            gain=solver.stream_gain(_STEP_FROM_ROWS if from_rows else _STEP_FROM_POINTS),
            safety=safety_for(automatic=solver.automatic),
            horizon=_HORIZON,
            memory=self._memory,
            budget=self._max_rows,
            reduce=lambda subspace, weights: reduction.reduce(subspace, size, weights),
        )

    def _start(self, n_features: int, seed: int) -> OnlineStart:
        """Return the initialization; initial points are validated."""
        number = int(self.n_components)
        points = self._solver.initial_array((number, n_features))
        # Leave space for at least one step before the expansion is full.
        space = max(self._reduced_rows - number, 1)
        return OnlineStart(self._init if points is None else points, number, seed, space)

    @property
    def _max_rows(self) -> int | None:
        """Maximum number of rows of the expansion."""
        if is_auto(self.max_basis_rows):
            return max(_MIN_ROWS, _ROWS_PER_COMPONENT * int(self.n_components))
        return None if self.max_basis_rows is None else int(self.max_basis_rows)

    @property
    def _reduced_rows(self) -> int:
        """Number of rows that an expansion is reduced to."""
        return 10**9 if self._max_rows is None else int(_REDUCED_FRACTION * self._max_rows)

    @property
    def _memory(self) -> float:
        """Limit of the sum of weights, which decay by f² per row."""
        lost = 1 - float(self.forgetting) ** 2
        return 1 / lost if lost > 0 else np.inf

    def _check_parameters(self) -> None:
        check_number("n_components", self.n_components, "must be a positive integer",
                     "pass an integer such as 10", low=1, integer=True)  # fmt: skip
        self._check_stream_parameters()
        self._solver.check_options(
            ("auto", *START_NAMES), unused=("backoff", "clock", "block_size", "change_tol")
        )
        least = 4 * (int(self.n_components) + 1)
        if self.max_basis_rows is not None and not is_auto(self.max_basis_rows):
            check_number(
                "max_basis_rows",
                self.max_basis_rows,
                f"must be 'auto', None or an integer of at least {least}, four rows for each "
                "component and the mean",
                "pass 'auto'",
                low=least,
                integer=True,
            )
        if not isinstance(self.reduction, Reduction):
            check_choice("reduction", self.reduction, tuple(_REDUCTIONS))
        check_number("max_iter", self.max_iter, "must be a positive integer", "pass 1",
                     low=1, integer=True)  # fmt: skip

    def _report(self) -> None:
        if self.verbose:
            sys.stderr.write(f"online KPCA: {self._stream.progress_line()}\n")
        if self._stream.halvings and not self._solver.automatic:
            warnings.warn(
                f"gain={self._solver.gain!r} was too large: it was halved {self._stream.halvings} "
                "times to prevent divergence; pass gain='auto' or a smaller number.",
                DivergenceWarning,
                stacklevel=stacklevel(),
            )
