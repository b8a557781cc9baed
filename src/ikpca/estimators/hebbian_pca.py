"""Linear PCA by Sanger's generalized Hebbian algorithm."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ikpca.errors import DivergenceWarning, InvalidInput, invalid_parameter
from ikpca.estimators.base import SaveMixin
from ikpca.estimators.checkpoint import (
    Checkpoint,
    check_checkpoint,
    interruptible_fit,
    open_checkpoint,
)
from ikpca.estimators.input_checks import check_overflow, finite_projections
from ikpca.estimators.reporting import (
    CallbackSupport,
    fit_context,
    requested_observers,
    warn_of_divergence,
    warn_of_rank,
    warn_of_recovery,
    warn_of_tolerance,
    with_callbacks,
)
from ikpca.estimators.validation import (
    FLOAT_DTYPES,
    check_choice,
    check_gain,
    check_init,
    check_number,
    check_runtime_parameters,
    draw_seed,
    is_auto,
    limit_threads,
)
from ikpca.gains import Gain, MetaDescent, constant, inverse_time, reciprocal_eigenvalues
from ikpca.kernels import Floats
from ikpca.solvers import (
    NO_CHECKPOINT,
    CheckpointProtocol,
    FeatureStore,
    GHAState,
    HebbianOptions,
    HebbianProgress,
    Outcome,
    PassRecord,
    deterministic_signs,
    gha_batch,
    iterate,
    safety_for,
)

#: Minimum number of rows over which the gain of a stream stays near its initial value.
_HORIZON = 100


class HebbianPCA(
    CallbackSupport, SaveMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Linear PCA by Sanger's rule, on a data set in passes or on a stream in batches.

    W ← W + η[y xᵀ − lt(yyᵀ)W] for centred rows x and y = Wx (Kim 2003, eq. 1). This is the kernel
    Hebbian algorithm with a linear kernel, at a cost of N per row instead of l.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components; None: the smaller of the numbers of rows and features.
    gain : "auto", float or gain object, default="auto"
        "auto" is proportional to 1/(eigenvalue · time); a number is Sanger's constant η.
    clock : {"pattern", "pass"}, default="pattern"
        1/t gains decay at every row or once per pass.
    init : "random" or ndarray of shape (n_components, n_features), default="random"
        Initialization of W.
    rayleigh_ritz : bool, default=True
        If True, end every pass of ``fit`` with a Rayleigh–Ritz step, unlike Sanger's rule.
    block_size : int or "auto", default="auto"
        Rows per block; affects the speed, not the result.
    tol : float, default=0
        Stop when ‖Cw − λw‖/λ₁ ≤ ``tol`` for all components; 0 means machine precision.
    change_tol : float, default=None
        Stop when a pass changes the components by at most this squared distance.
    max_iter : int, default=50
        Maximum number of passes of ``fit``.
    whiten : bool, default=False
        If True, scale projections to unit variance.
    checkpoint, checkpoint_every, resume : as in :class:`KernelPCA`
        For ``fit`` only; after ``partial_fit``, save the model instead.
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
        gain: Any = "auto",
        clock: Any = "pattern",
        init: Any = "random",
        rayleigh_ritz: bool = True,
        block_size: Any = "auto",
        tol: float = 0,
        change_tol: float | None = None,
        max_iter: int = 50,
        whiten: bool = False,
        checkpoint: Any = None,
        checkpoint_every: Any = 1,
        resume: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.gain = gain
        self.clock = clock
        self.init = init
        self.rayleigh_ritz = rayleigh_ritz
        self.block_size = block_size
        self.tol = tol
        self.change_tol = change_tol
        self.max_iter = max_iter
        self.whiten = whiten
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume = resume
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        checkpoint, seed = open_checkpoint(self, X, seed)
        W = self._first_components(X.shape, seed).astype(X.dtype)
        with limit_threads(self.n_jobs), interruptible_fit(checkpoint):
            self._set_result(run_gha_passes(self, X, W, seed, checkpoint))
        self._warn(X)
        return self

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
        safety = safety_for(automatic=isinstance(self.gain, str))
        with limit_threads(self.n_jobs):
            self._stream, undone = gha_batch(self._stream, X, self._stream_gain(), safety)
        self._set_stream_attributes()
        if undone and not isinstance(self.gain, str):
            warnings.warn(
                f"gain={self.gain!r} was too large: the batch was undone {undone} times and "
                "repeated with half the gain; pass gain='auto' or a smaller number.",
                DivergenceWarning,
                stacklevel=2,
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
        return finite_projections(lambda: ((X - self.mean_) @ self.components_.T) * self._scale)

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
        check_gain(self.gain)
        if isinstance(self.gain, MetaDescent):
            raise invalid_parameter(
                "gain", self.gain, "needs a kernel", "pass the gain that it multiplies"
            )
        check_choice("clock", self.clock, ("pattern", "pass"))
        check_runtime_parameters(self)
        if not is_auto(self.block_size):
            check_number("block_size", self.block_size, "must be 'auto' or a positive integer",
                         "pass 'auto'", low=1, integer=True)  # fmt: skip
        check_number("tol", self.tol, "must not be negative", "pass 0", low=0)
        if self.change_tol is not None:
            check_number("change_tol", self.change_tol, "must not be negative", "pass None", low=0)
        check_number("max_iter", self.max_iter, "must be a positive integer", "pass 50",
                     low=1, integer=True)  # fmt: skip
        for flag in ("rayleigh_ritz", "whiten"):
            check_choice(flag, getattr(self, flag), (True, False))
        check_checkpoint(self)

    def _validated(self, X: Any, *, reset: bool, ensure_min_samples: int = 1) -> Floats:
        return validate_data(
            self,
            X,
            dtype=FLOAT_DTYPES,
            reset=reset,
            ensure_min_samples=ensure_min_samples,
        )

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
        init = check_init(self.init, ("random",), (number, n_features))
        if not isinstance(init, str):
            return init
        rng = np.random.default_rng([seed, 0])
        return rng.normal(scale=np.sqrt(1 / (number * n_features)), size=(number, n_features))

    def _set_result(self, passes: GHAResult) -> None:
        for name, value in gha_attributes(self, **passes.found).items():
            setattr(self, name, value)
        self.outcome_, self.history_ = passes.outcome, passes.records
        self.n_iter_ = len(passes.records)
        # A later partial_fit continues from the components of the fit.
        seen = self.n_samples_seen_
        self._stream = GHAState(
            components=self.components_,
            mean=self.mean_,
            seen=seen,
            variances=self.explained_variance_ * (seen - 1) / seen,
            total_variance=passes.found["total"] * (seen - 1) / seen,
            horizon=max(seen, _HORIZON),
        )

    def _initial_stream(self, X: Floats) -> GHAState:
        seed = draw_seed(self.random_state)
        W = self._first_components(X.shape, seed)
        if isinstance(self.init, str):
            W = np.linalg.qr(W.T)[0].T
        nothing = np.zeros(len(W))
        horizon = max(len(X), _HORIZON)
        return GHAState(W.astype(X.dtype), np.zeros_like(X[0]), 0, nothing, 0.0, horizon)

    def _stream_gain(self) -> Gain:
        if isinstance(self.gain, str):
            return 2.0 * inverse_time() * reciprocal_eigenvalues(with_norm=False)
        return self.gain if isinstance(self.gain, Gain) else constant(self.gain)

    def _set_stream_attributes(self) -> None:
        stream = self._stream
        unbiased = stream.seen / max(stream.seen - 1, 1)
        attributes = gha_attributes(
            self,
            stream.components,
            stream.mean,
            stream.variances * unbiased,
            stream.total_variance * unbiased,
            stream.seen,
        )
        for name, value in attributes.items():
            setattr(self, name, value)

    def _warn(self, X: Floats) -> None:
        if self.outcome_ is Outcome.INTERRUPTED:
            raise KeyboardInterrupt
        rounding = 100 * float(np.finfo(X.dtype).eps) ** 2 * float(np.square(X).mean())
        rank = int(np.count_nonzero(self.explained_variance_ > rounding))
        warn_of_rank(self.n_components, self.n_components_, rank)
        warn_of_divergence(self.gain, self.history_)
        warn_of_recovery([record.recovery for record in self.history_])
        warn_of_tolerance(self, self.outcome_, self.history_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


@dataclass(frozen=True)
class GHAResult:
    """Outcome and records of a fit, and the arguments of ``gha_attributes``."""

    outcome: Outcome
    records: list[PassRecord]
    found: dict[str, Any]


def run_gha_passes(
    model: Any, X: Floats, W: Floats, seed: int, checkpoint: Checkpoint | None
) -> GHAResult:
    """Apply Sanger's rule to all rows, in passes of random order."""
    mean = X.mean(axis=0)
    run_checkpoint: CheckpointProtocol = NO_CHECKPOINT if checkpoint is None else checkpoint
    kept = run_checkpoint.restore()
    store = FeatureStore(X - mean, W if kept is None else kept.progress.rows)
    run_checkpoint.set_snapshot(lambda state: HebbianProgress(state, *store.read(), None))
    max_iter = int(model.max_iter)
    context = fit_context(model, max_iter)
    observers = requested_observers(
        model,
        "gha",
        max_iter,
        store.dtype,
        context,
        lambda: gha_attributes(model, **_solution(store, mean)),
    )
    outcome, records = iterate(
        store,
        len(W),
        _options(model),
        seed=seed,
        observers=observers,
        estimate="quotients",
        checkpoint=run_checkpoint,
    )
    if checkpoint is not None:
        checkpoint.finish()
    if context is not None:
        context.call_on_fit_task_end(estimator=model, reconstruction_attributes=dict)
    return GHAResult(outcome, records, _solution(store, mean))


def _options(model: Any) -> HebbianOptions:
    return HebbianOptions(
        method="kha/et" if isinstance(model.gain, str) else "kha",
        gain=model.gain,
        clock=model.clock,
        # The store holds the initial components already.
        init=np.empty((0, 0)),
        rayleigh_ritz=model.rayleigh_ritz,
        block_size=model.block_size,
        max_iter=int(model.max_iter),
    )


def _solution(store: FeatureStore, mean: Floats) -> dict[str, Any]:
    W, projections = store.read()
    freedom = store.n_samples - 1
    return {
        "W": W * deterministic_signs(W)[:, None],
        "mean": mean,
        "variances": np.square(projections).sum(axis=1, dtype=np.float64) / freedom,
        "total": store.mean_diagonal * store.n_samples / freedom,
        "seen": store.n_samples,
    }


def gha_attributes(
    model: Any, W: Floats, mean: Floats, variances: Floats, total: float, seen: int
) -> dict[str, Any]:
    """Return the fitted attributes of a fit or of a stream."""
    spread = np.sqrt(variances)
    whitening = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    variances = variances.astype(W.dtype)
    return {
        "components_": W,
        "mean_": mean,
        "explained_variance_": variances,
        "explained_variance_ratio_": variances / total if total > 0 else 0 * variances,
        "n_components_": len(W),
        "n_samples_seen_": seen,
        "_scale": whitening.astype(W.dtype) if model.whiten else np.ones_like(variances),
    }
