"""Linear PCA by Sanger's generalized Hebbian algorithm."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ikpca.errors import (
    DivergenceWarning,
    InvalidInput,
    check_choice,
    check_number,
    invalid_parameter,
)
from ikpca.estimators.base import (
    CallbackSupport,
    FitInterrupted,
    FitMonitor,
    SavedEstimator,
    atomic,
    stacklevel,
    warn_of_divergence,
    warn_of_rank,
    warn_of_recovery,
    warn_of_tolerance,
    with_callbacks,
)
from ikpca.estimators.validation import (
    FLOAT_DTYPES,
    check_overflow,
    draw_seed,
    finite_values,
    limit_threads,
)
from ikpca.kernels import Floats, Rows
from ikpca.solvers import (
    KHA,
    FeatureStore,
    GHAState,
    Outcome,
    RunSettings,
    deterministic_signs,
    gha_batch,
    plain_interrupts,
    safety_for,
)
from ikpca.subspace import check_shapes

#: Minimum number of rows over which the gain of a stream stays near its initial value.
_HORIZON = 100
#: h_i λ_i of a stream at t = 0.
_STREAM_STEP = 2.0


class HebbianPCA(
    CallbackSupport,
    SavedEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Linear PCA by Sanger's rule, on a data set in passes or on a stream in batches.

    W ← W + η[y xᵀ − lt(yyᵀ)W] for centered rows x and y = Wx (Kim 2003, eq. 1). This is the kernel
    Hebbian algorithm with a linear kernel, at a cost of N per row instead of l.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components; None: the smaller of the numbers of rows and features.
    eigen_solver : {"kha", "kha/t", "kha/et"} or KHA, default="kha/et"
        Learning rule, with a gain that needs no tuning. Pass a :class:`ikpca.solvers.KHA` for other
        settings, such as Sanger's constant gain, ``KHA("kha", gain=0.01)``. ``init`` is "random" or
        an array of shape (n_components, n_features), the initial W.
    tol : float, default=0
        Stop when ‖Cw − λw‖/λ₁ ≤ ``tol`` for all components; 0 means machine precision.
    max_iter : int, default=50
        Maximum number of passes of ``fit``.
    whiten : bool, default=False
        If True, scale projections to unit variance.
    random_state : int, RandomState or None, default=None
        Seed of the initialization and of the order of the rows.
    n_jobs : int, default=None
        Number of threads of the matrix products; None does not limit them.
    verbose : int, default=0
        If positive, write a line per pass to standard error.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
    mean_ : ndarray of shape (n_features,)
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
    n_samples_seen_ : int
    n_components_, n_iter_ : int
    history_ : list of PassRecord
        One record per pass of ``fit``.
    outcome_ : Outcome
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    sklearn.decomposition.IncrementalPCA : Exact up to truncation, in batches.
    KernelPCA : The same learning rule in feature space.

    References
    ----------
    T. D. Sanger, Optimal unsupervised learning in a single-layer linear feedforward neural
    network, Neural Networks 2, 1989.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ikpca import HebbianPCA
    >>> X = load_digits().data
    >>> HebbianPCA(4, random_state=0).fit_transform(X).shape
    (1797, 4)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        eigen_solver: str | KHA = "kha/et",
        tol: float = 0,
        max_iter: int = 50,
        whiten: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.whiten = whiten
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic
    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from all rows, in passes of random order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        X = self._validated(X, reset=True, ensure_min_samples=2)
        check_overflow(X)
        seed = draw_seed(self.random_state)
        W = self._first_components(X.shape, seed).astype(X.dtype)
        with limit_threads(self.n_jobs), plain_interrupts():
            self._run_passes(X, W, seed)
        self._warn(X)
        return self

    @atomic
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one batch of rows in their order.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        first = not hasattr(self, "_stream")
        X = self._validated(X, reset=first)
        check_overflow(X, first=first)
        if first:
            self._stream = self._initial_stream(X)
        solver = self._solver
        gain = solver.stream_gain(_STREAM_STEP)
        with limit_threads(self.n_jobs), plain_interrupts():
            self._stream, undone = gha_batch(
                self._stream, X, gain, safety_for(automatic=solver.automatic)
            )
        self._set_stream_attributes()
        if undone and not solver.automatic:
            warnings.warn(
                f"gain={solver.gain!r} was too large: the batch was undone {undone} times and "
                "repeated with half the gain; pass gain='auto' or a smaller number.",
                DivergenceWarning,
                stacklevel=stacklevel(),
            )
        return self

    def transform(self, X: Any) -> Floats:
        """Project rows on the components.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        check_is_fitted(self, "components_")
        X = self._validated(X, reset=False)
        return finite_values(lambda: ((X - self.mean_) @ self.components_.T) * self._scale)

    def inverse_transform(self, X: Any) -> Floats:
        """Transform projections back to input space: the mean plus a sum of components.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components)

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        check_is_fitted(self, "components_")
        X = check_array(X, dtype=FLOAT_DTYPES)
        if X.shape[1] != len(self.components_):
            raise InvalidInput(
                f"X has {X.shape[1]} columns: the model has {len(self.components_)} components; "
                "pass projections returned by transform."
            )
        unscaled = np.divide(X, self._scale, out=np.zeros_like(X), where=self._scale > 0)
        return unscaled @ self.components_ + self.mean_

    def _check_parameters(self) -> None:
        if self.n_components is not None:
            check_number("n_components", self.n_components, "must be a positive integer or None",
                         "pass None for all", low=1, integer=True)  # fmt: skip
        solver = self._solver
        solver.check_options(("auto", "random"), unused=("backoff",))
        if solver.has_companion:
            raise invalid_parameter(
                "eigen_solver", solver, "meta-descent needs a kernel", "pass 'kha/et'"
            )
        check_number("tol", self.tol, "must not be negative", "pass 0", low=0)
        check_number("max_iter", self.max_iter, "must be a positive integer", "pass 50",
                     low=1, integer=True)  # fmt: skip
        self._check_flags("whiten")
        self._check_runtime_parameters()

    @property
    def _solver(self) -> KHA:
        if isinstance(self.eigen_solver, KHA):
            return self.eigen_solver
        check_choice("eigen_solver", self.eigen_solver, ("kha", "kha/t", "kha/et"))
        return KHA(self.eigen_solver)

    def _validated(self, X: Any, *, reset: bool, ensure_min_samples: int = 1) -> Floats:
        return validate_data(
            self,
            X,
            dtype=FLOAT_DTYPES,
            reset=reset,
            ensure_min_samples=ensure_min_samples,
        )

    def _check_loaded(self, make_row: Callable[[int], Rows | None]) -> None:
        super()._check_loaded(make_row)
        number, n_features = len(self.components_), self.n_features_in_
        check_shapes(
            (self.components_, (number, n_features)),
            (self.mean_, (n_features,)),
            (self._scale, (number,)),
        )
        self.transform(make_row(n_features))

    def _first_components(self, shape: tuple[int, int], seed: int) -> Floats:
        n_features = shape[1]
        number = min(shape) if self.n_components is None else int(self.n_components)
        if number > n_features:
            raise invalid_parameter(
                "n_components",
                number,
                f"X has {n_features} features",
                f"pass at most {n_features}",
            )
        array = self._solver.initial_array((number, n_features))
        if array is not None:
            return array
        rng = np.random.default_rng([seed, 0])
        return rng.normal(scale=np.sqrt(1 / (number * n_features)), size=(number, n_features))

    def _run_passes(self, X: Floats, W: Floats, seed: int) -> None:
        """Apply Sanger's rule to all rows, in passes of random order, and set the result."""
        mean = X.mean(axis=0, dtype=np.float64)
        store = FeatureStore(X - mean.astype(X.dtype), W)
        max_iter = int(self.max_iter)
        monitor = FitMonitor(self, "gha", max_iter, lambda _: self._attributes_of(store, mean))
        settings = RunSettings(
            max_iter,
            tol=max(float(self.tol), float(np.finfo(X.dtype).eps)),
            callback=monitor,
        )
        solver = self._solver.started_from(W)
        passes = solver.passes(store, len(W), seed, solver.block_size)
        _, self.outcome_, self.history_ = solver.run(passes, settings)
        monitor.end()
        self.n_iter_ = len(self.history_)
        self.__dict__.update(self._attributes_of(store, mean))
        # A later partial_fit continues from the components of the fit.
        seen = self.n_samples_seen_
        self._stream = GHAState(
            components=self.components_,
            mean=mean,
            seen=seen,
            variances=self.explained_variance_ * (seen - 1) / seen,
            total_variance=store.mean_diagonal * store.n_samples / seen,
            horizon=max(seen, _HORIZON),
        )

    def _attributes_of(self, store: FeatureStore, mean: Floats) -> dict[str, Any]:
        """Return the fitted attributes of a fit."""
        W, projections = store.read()
        freedom = store.n_samples - 1
        variances = np.square(projections).sum(axis=1, dtype=np.float64) / freedom
        total = store.mean_diagonal * store.n_samples / freedom
        signs = deterministic_signs(W)[:, None]
        return self._attributes(W * signs, mean, variances, total, store.n_samples)

    def _initial_stream(self, X: Floats) -> GHAState:
        seed = draw_seed(self.random_state)
        W = self._first_components(X.shape, seed)
        if isinstance(self._solver.init, str):
            W = np.linalg.qr(W.T)[0].T
        nothing = np.zeros(len(W))
        horizon = max(len(X), _HORIZON)
        return GHAState(W.astype(X.dtype), np.zeros(X.shape[1]), 0, nothing, 0.0, horizon)

    def _set_stream_attributes(self) -> None:
        stream = self._stream
        unbiased = stream.seen / max(stream.seen - 1, 1)
        attributes = self._attributes(
            stream.components,
            stream.mean,
            stream.variances * unbiased,
            stream.total_variance * unbiased,
            stream.seen,
        )
        self.__dict__.update(attributes)

    def _attributes(
        self, W: Floats, mean: Floats, variances: Floats, total: float, seen: int
    ) -> dict[str, Any]:
        """Return the fitted attributes of a fit or of a stream."""
        spread = np.sqrt(variances)
        whitening = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
        variances = variances.astype(W.dtype)
        return {
            "components_": W,
            "mean_": mean.astype(W.dtype, copy=False),
            "explained_variance_": variances,
            "explained_variance_ratio_": variances / total if total > 0 else 0 * variances,
            "n_components_": len(W),
            "n_samples_seen_": seen,
            "_scale": whitening.astype(W.dtype) if self.whiten else np.ones_like(variances),
        }

    def _warn(self, X: Floats) -> None:
        if self.outcome_ is Outcome.INTERRUPTED:
            raise FitInterrupted if self.history_ else KeyboardInterrupt
        mean_square = float(np.square(X).mean(dtype=np.float64))
        rounding = 100 * float(np.finfo(X.dtype).eps) ** 2 * mean_square
        rank = int(np.count_nonzero(self.explained_variance_ > rounding))
        warn_of_rank(self.n_components, self.n_components_, rank)
        warn_of_divergence(self._solver.gain, self.history_)
        warn_of_recovery([record.recovery for record in self.history_])
        residuals, n_passes = self.history_[-1].residuals, len(self.history_)
        warn_of_tolerance(self.tol, self._solver.change_tol, self.outcome_, residuals, n_passes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)
