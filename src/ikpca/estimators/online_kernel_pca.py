"""Online kernel PCA, which uses each row of a stream once."""

from __future__ import annotations

import sys
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from ikpca.errors import Choice, invalid_parameter
from ikpca.estimators.base import atomic
from ikpca.estimators.stream_base import DriftSignal, StreamTransformer, learning
from ikpca.estimators.validation import (
    FLOAT_DTYPES,
    centered_kernel,
    check_values,
    draw_seed,
    finite_values,
    resolve_gamma,
)
from ikpca.kernels import Floats, Kernel
from ikpca.solvers import KHA, Gain
from ikpca.solvers.problem import check_exponents
from ikpca.streams import OnlineState, random_points
from ikpca.subspace import Subspace

#: h_i λ_i/l at t = 0 of automatic gains, after kernel PCA of the first rows and for points.
_STEP_FROM_ROWS, _STEP_FROM_POINTS = 0.1, 0.35
#: Number of patterns over which the gain stays near its initial value.
_HORIZON = 20
#: First rows from which the components start.
_MIN_ROWS, _ROWS_PER_COMPONENT = 64, 4


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
        other settings: ``KHA("kha", gain=0.05)`` is Kim's constant gain η, which tracks changes but
        does not converge, and ``KHA("kha/t", gain=0.05)`` a gain that decays as 20/(t + 20).
        ``init``: "rows" (the default) is kernel PCA of the first rows; "random" is one point per
        component, drawn with the mean and spread of the first rows, as in the paper; an array holds
        the points, one per component, or more, of which the components are random combinations
        (for narrow kernels, points that cover the data as in figure 7). ``rayleigh_ritz``: if True,
        the fitted attributes hold orthonormal, ordered components, unlike in the paper; learning is
        not affected.
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
        ``reconstruction_error`` of every row of the last batch before the update; NaN for the first
        rows of a stream, from which the components start.
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
    _seed: int
    _state: OnlineState
    #: First rows, until there are enough for the initialization.
    _first_rows: Floats
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
        self.__dict__.pop("_state", None)
        return self.partial_fit(X)

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
        self._check_stream_parameters()
        self._check_rule()
        first = not hasattr(self, "_state")
        rows = validate_data(self, X, reset=first, dtype=FLOAT_DTYPES, ensure_all_finite=False)
        check_values(rows, 0 if first else self.n_samples_seen_)
        if first:
            self._start(rows)
        elif self._state.n_components != self.n_components:
            raise invalid_parameter(
                "n_components",
                self.n_components,
                f"the stream has {self._state.n_components} components",
                "reset it, or start again with fit",
            )
        finite_values(lambda: self._kernel.diagonal(rows))
        rows = rows.astype(self._first_rows.dtype, copy=False)
        check_exponents(self._kernel, rows, None if first else self.mean_)
        with learning():
            novelty = self._learn(rows)
        self._set_components()
        self._signal = self._detect_drift(self._signal, novelty)
        if self.verbose:
            sys.stderr.write(
                f"online KPCA: {self.n_samples_seen_} samples, "
                f"novelty {self.novelty_.mean():.3g}, drift {self.drift_:.2f}\n"
            )
        return self

    def _start(self, rows: Floats) -> None:
        """Reset the stream, and set the parameters that depend on the first batch."""
        self._seed = draw_seed(self.random_state)
        self.gamma_ = resolve_gamma(self.gamma, rows, self.kernel, self._seed)
        # The origin must not depend on the batch.
        self._kernel = centered_kernel(self._make_kernel(self.gamma_), rows[:1])
        self._check_preimage_of(self._kernel)
        self._first_rows, self._signal = rows[:0].copy(), DriftSignal()
        self.n_samples_seen_, self.mean_ = 0, np.zeros(rows.shape[1])

    def _learn(self, rows: Floats) -> Floats:
        """Learn valid rows, and return their novelty."""
        seen, named = self.n_samples_seen_, isinstance(self._rule.init, str)
        self.n_samples_seen_ = seen + len(rows)
        total = seen * self.mean_ + rows.sum(axis=0, dtype=np.float64)
        self.mean_ = total / self.n_samples_seen_
        size = max(_MIN_ROWS, _ROWS_PER_COMPONENT * int(self.n_components)) if named else 1
        first, rows = np.split(rows, [max(size - seen, 0)])
        if len(first):
            self._first_rows = np.vstack([self._first_rows, first])
            self._state = self._initial_state(self._first_rows)
        if self.n_samples_seen_ >= size:
            self._first_rows = self._first_rows[:0].copy()
        self._state, novelty = self._advance(self._state, rows)
        return np.append(np.full(len(first), np.nan), novelty)

    def _initial_state(self, rows: Floats) -> OnlineState:
        """Return the state after these rows, the first of the stream."""
        rule, number = self._rule, int(self.n_components)
        points = random_points(rows, number, self._seed)
        if isinstance(rule.init, str) and rule.init != "random":
            return OnlineState.from_rows(self._kernel, rows, points)
        if not isinstance(rule.init, str):
            is_matrix = isinstance(rule.init, np.ndarray) and rule.init.ndim == 2
            n_points = max(number, len(rule.init)) if is_matrix else number
            points = np.asarray(rule.initial_array((n_points, rows.shape[1])), rows.dtype)
        weights: Floats = np.eye(number)
        if len(points) > number:
            rng = np.random.default_rng([self._seed, 4])
            weights = rng.normal(size=(number, len(points)))
        return self._advance(OnlineState.from_points(self._kernel, points, weights), rows)[0]

    def _advance(self, state: OnlineState, rows: Floats) -> tuple[OnlineState, Floats]:
        """Return the state after rows, and their novelty."""
        rule = self._rule
        from_rows = isinstance(rule.init, str) and rule.init != "random"
        schedule = rule.stream_gain(_STEP_FROM_ROWS if from_rows else _STEP_FROM_POINTS)

        def gain(times: Floats) -> Floats:
            # The state divides automatic gains by the eigenvalues.
            return np.full(len(times), schedule.gains(times, _HORIZON, np.ones(1))[:, 0])

        return state.learn(self._kernel, rows, gain, automatic=rule.automatic, memory=self._memory)

    def _set_components(self) -> None:
        """Set the fitted attributes from the state."""
        state, ritz = self._state, self._rule.rayleigh_ritz
        subspace, variances = state.subspace(self._kernel, ritz=ritz)
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
        self.memory_usage_ = state.nbytes + self._first_rows.nbytes + subspace.components.nbytes
        self._subspace: Subspace = subspace
        self._scale = scale.astype(dtype)

    @property
    def _rule(self) -> KHA:
        return self.rule if isinstance(self.rule, KHA) else KHA(self.rule)

    @property
    def _memory(self) -> float:
        """Limit of the sum of weights, which decay by f² per row."""
        lost = 1 - float(self.forgetting) ** 2
        return 1 / lost if lost > 0 else np.inf

    def _check_rule(self) -> None:
        if not isinstance(self.rule, KHA):
            Choice(("kha/et",)).check("rule", self.rule)
        rule = self._rule
        rule.check_options(("auto", "rows", "random"), ("backoff", "clock"))
        methods = ("kha/et",) if rule.automatic else ("kha", "kha/t")
        if rule.method not in methods or isinstance(rule.gain, Gain):
            raise invalid_parameter(
                "rule",
                self.rule,
                "is not a rule of streams",
                "pass 'kha/et', KHA('kha', gain=0.05) or KHA('kha/t', gain=0.05)",
            )
