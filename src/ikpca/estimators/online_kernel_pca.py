"""Online kernel PCA, which uses each row of a stream once."""

from __future__ import annotations

import sys
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from ikpca.errors import (
    DivergenceWarning,
    InvalidInput,
    check_choice,
    invalid_parameter,
    is_auto,
)
from ikpca.estimators.base import atomic, warn
from ikpca.estimators.stream_base import DriftSignal, StreamTransformer, learning
from ikpca.estimators.validation import (
    FLOAT_DTYPES,
    centered_kernel,
    check_diagonal,
    check_values,
    draw_seed,
    resolve_gamma,
    single_thread,
)
from ikpca.gram.centering import NOT_FINITE
from ikpca.kernels import Floats, Kernel
from ikpca.solvers import KHA
from ikpca.solvers.base import plain_interrupts
from ikpca.solvers.problem import check_exponents
from ikpca.solvers.rayleigh_ritz import deterministic_signs
from ikpca.streams import START_NAMES, OnlineSettings, OnlineStart, OnlineState, learn_stream
from ikpca.subspace import Subspace

#: h_i λ_i/l at t = 0, divided by 20, for init="rows" and for points.
_STEP_FROM_ROWS, _STEP_FROM_POINTS = 2.0, 7.0
#: Number of patterns over which the gain stays near its initial value.
_HORIZON = 20
#: Rows of ``fit`` between interrupts.
_STRIP = 1024


class OnlineKernelPCA(StreamTransformer):
    r"""Kernel Hebbian algorithm on a stream, one row at a time (Kim 2003, appendix A).

    Every row is added to the expansion of the components and updates the mean, so that memory grows
    with the stream, and a row costs O(m(r + N)) after m rows. The result depends on the order of
    the rows, not on the batches. For bounded memory see :class:`IncrementalKernelPCA`.

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
    rule : {"kha/et"} or KHA, default="kha/et"
        Learning rule, with a gain that needs no tuning: proportional to 1/(eigenvalue · time), with
        the time bounded by the memory if ``forgetting`` < 1. Pass a :class:`ikpca.solvers.KHA` for
        other settings. ``gain``: a number is Kim's constant η of ``KHA("kha")``, which tracks
        changes but does not converge; objects from :mod:`ikpca.gains` are the other gains of the
        papers, with running means of λ and τ = 20 unless ``InverseTime`` sets it, except
        meta-descent. ``init``: "rows" (the default) is kernel PCA of the first rows; "random" is
        one point per component, drawn with the mean and spread of the first rows, as in the paper;
        "covering" is combinations of points that cover the ball of the first rows, for narrow
        kernels (figures 6 and 7); an array of shape (n_components, n_features) holds the points.
        ``rayleigh_ritz``: if True, the fitted attributes hold orthonormal, ordered components,
        unlike in the paper; learning is not affected.
    forgetting : float, default=1.0
        f in (0, 1]: every row multiplies the weights of earlier rows in the mean and in λ by f²,
        and the time of the gain is bounded by the memory of 1/(1 − f²) rows.
    preimage : str or pre-image object, default="auto"
        As for :class:`KernelPCA`, except "ridge".
    drift_threshold : float, default=25.0
        Threshold of the Page–Hinkley test on ``novelty_``; a larger one signals fewer drifts.
    drift_delta : float, default=0.5
        Increase of the novelty, in standard deviations, that the test tolerates.
    whiten : bool, default=False
        If True, scale projections to unit variance.
    random_state : int, RandomState or None, default=None
        Seed of the initial points of the components.
    n_jobs : int, default=None
        Number of threads of ``transform`` and of pre-images; None uses as many as BLAS. Learning
        uses one thread, as its last bits would depend on the number.
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
    n_samples_seen_ : int
    memory_usage_ : int
        Size of the model in bytes.
    gamma_ : float
        As in :class:`KernelPCA`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Defined only if X has string column names.

    See Also
    --------
    IncrementalKernelPCA : Streams in bounded memory.
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
    >>> model.transform(X[:3]).shape, model.n_samples_seen_
    ((3, 8), 1797)
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
        rule: str | KHA = "kha/et",
        forgetting: float = 1.0,
        preimage: Any = "auto",
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
        self.rule = rule
        self.forgetting = forgetting
        self.preimage = preimage
        self.drift_threshold = drift_threshold
        self.drift_delta = drift_delta
        self.whiten = whiten
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    _kernel: Kernel
    _initial: OnlineStart
    _state: OnlineState | None
    #: First rows, stored until the initialization is complete.
    _kept: Floats
    _signal: DriftSignal

    @atomic
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from all rows in one pass, after resetting the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        rows = self._validate_batch(X, reset=True)
        self._start(rows)
        check_diagonal(self._kernel, rows)
        novelties, halvings = list[Floats](), list[int]()

        def step(number: int) -> None:
            part = rows[number * _STRIP : (number + 1) * _STRIP]
            halvings.append(self._learn(part))
            novelties.append(self.novelty_)

        self._fit_stream(-(-len(rows) // _STRIP), step)
        with single_thread():
            signs = deterministic_signs(self._subspace.project(rows).T)
        assert self._state is not None
        self._set_state(self._state.flip_signs(signs.astype(np.float64)))
        self._detect_drift(DriftSignal(), np.concatenate(novelties))
        self._report(sum(halvings))
        return self

    @atomic
    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
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
        self._check_parameters()
        is_first = not hasattr(self, "_state")
        rows = self._validate_batch(X, reset=is_first)
        if is_first:
            self._start(rows)
        check_diagonal(self._kernel, rows)
        if self._initial.n_components != self.n_components:
            raise invalid_parameter(
                "n_components",
                self.n_components,
                f"the stream has {self._initial.n_components} components",
                "reset it, or start again with fit",
            )
        with learning():
            halvings = self._learn(rows)
        self._report(halvings)
        return self

    def _start(self, rows: Floats) -> None:
        """Set the stream before its first row, and the parameters that depend on the rows."""
        seed = draw_seed(self.random_state)
        self.gamma_ = resolve_gamma(self.gamma, rows, self.kernel, seed)
        # The origin must not depend on the batch.
        self._kernel = centered_kernel(self._make_kernel(self.gamma_), rows[:1])
        self._check_preimage_of(self._kernel)
        number = int(self.n_components)
        points = self._solver.initial_array((number, rows.shape[1]))
        self._initial = OnlineStart(self._init if points is None else points, number, seed)
        self._state, self._kept, self._signal = None, rows[:0], DriftSignal()
        self.n_samples_seen_, self.mean_ = 0, np.zeros(rows.shape[1])

    def _learn(self, rows: Floats) -> int:
        """Learn valid rows; return the number of times that the gains were halved."""
        rows = rows.astype(self._kept.dtype, copy=False)
        seen = self.n_samples_seen_
        check_exponents(self._kernel, rows, self.mean_ if seen else None)
        with plain_interrupts():
            state, self._kept, novelty, halvings = learn_stream(
                self._initial, self._state, self._kept, rows, self._settings
            )
        if not np.isfinite(state.lengths).all():
            raise InvalidInput(NOT_FINITE)
        self.n_samples_seen_ = seen + len(rows)
        total = seen * self.mean_ + rows.sum(axis=0, dtype=np.float64)
        self.mean_ = total / self.n_samples_seen_
        self._set_state(state)
        self._signal = self._detect_drift(self._signal, novelty)
        return halvings

    def _set_state(self, state: OnlineState) -> None:
        self._state = state
        subspace, variances = state.subspace(self._kernel, ritz=self._solver.rayleigh_ritz)
        dtype = subspace.components.dtype
        n = min(self.n_samples_seen_, self._memory)
        scale = np.ones_like(variances)
        if self.whiten:
            spread = np.sqrt(variances * (n / max(n - 1, 1)))
            scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
        total = state.total_variance if state.total_variance > 0 else 1.0
        self.eigenvalues_ = (n * variances).astype(dtype)
        self.explained_variance_ratio_ = (variances / total).astype(dtype)
        self.basis_ = subspace.basis
        self.coefficients_ = subspace.components
        self.mean_coefficients_ = subspace.mean
        self.memory_usage_ = state.nbytes + self._kept.nbytes + subspace.components.nbytes
        self._subspace: Subspace = subspace
        self._scale = scale.astype(dtype)

    @property
    def _solver(self) -> KHA:
        if isinstance(self.rule, KHA):
            return self.rule
        check_choice("rule", self.rule, ("kha/et",))
        return KHA(self.rule)

    @property
    def _init(self) -> str | Floats:
        return "rows" if is_auto(self._solver.init) else self._solver.init

    @property
    def _settings(self) -> OnlineSettings:
        """Gain and memory."""
        from_rows = isinstance(self._init, str) and self._init == "rows"
        return OnlineSettings(
            kernel=self._kernel,
            gain=self._solver.stream_gain(_STEP_FROM_ROWS if from_rows else _STEP_FROM_POINTS),
            is_capped=self._solver.automatic,
            horizon=_HORIZON,
            memory=self._memory,
        )

    @property
    def _memory(self) -> float:
        """Limit of the sum of weights, which decay by f² per row."""
        lost = 1 - float(self.forgetting) ** 2
        return 1 / lost if lost > 0 else np.inf

    def _validate_batch(self, X: ArrayLike, *, reset: bool) -> Floats:
        rows = validate_data(self, X, reset=reset, dtype=FLOAT_DTYPES, ensure_all_finite=False)
        check_values(rows, 0 if reset else self.n_samples_seen_)
        return rows

    def _check_parameters(self) -> None:
        self._check_stream_parameters()
        solver = self._solver
        solver.check_options(("auto", *START_NAMES), unused=("backoff", "clock", "change_tol"))
        if solver.has_companion:
            raise invalid_parameter(
                "rule", self.rule, "meta-descent is not a rule of streams", "pass KHA('kha/et')"
            )

    def _report(self, halvings: int) -> None:
        if self.verbose:
            sys.stderr.write(
                f"online KPCA: {self.n_samples_seen_} samples, "
                f"novelty {self.novelty_.mean():.3g}, drift {self.drift_:.2f}\n"
            )
        if halvings and not self._solver.automatic:
            warn(
                f"gain={self._solver.gain!r} was too large: it was halved {halvings} times to "
                "prevent divergence; pass gain='auto' or a smaller number.",
                DivergenceWarning,
            )
