"""Linear PCA by Sanger's generalized Hebbian algorithm."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ikpca.errors import (
    FLAG,
    DivergenceWarning,
    InvalidInput,
    Number,
    ParameterRules,
    check_choice,
    check_parameters,
    invalid_parameter,
)
from ikpca.estimators.base import FitInterrupted, SavedEstimator, atomic, stacklevel, warn_of_rank
from ikpca.estimators.validation import (
    FLOAT_DTYPES,
    RandomStateLike,
    check_overflow,
    draw_seed,
    finite_values,
    limit_threads,
)
from ikpca.gram import tile_slices
from ikpca.kernels import Floats, Rows
from ikpca.solvers import KHA
from ikpca.solvers.base import plain_interrupts
from ikpca.solvers.rayleigh_ritz import deterministic_signs, rayleigh_ritz
from ikpca.subspace import check_shapes

#: Minimum number of rows over which the gain of a stream stays near its initial value.
_HORIZON = 100
#: h_i λ_i at t = 0 of a fit and of a stream.
_FIT_STEP, _STREAM_STEP = 7.0, 2.0
#: Rows per sweep, and factor of an automatic gain after a pass that lost variance.
_BLOCK, _BACKOFF = 128, 0.25
#: Residuals of exact eigenvectors after rounding, in units of machine epsilon.
_ROUNDING = 8
_RULES: ParameterRules = {
    "n_components": Number("must be a positive integer or None", "pass None for all",
                           low=1, integer=True, allowed=(None,)),
    "tol": Number("must not be negative", "pass 0", low=0),
    "max_iter": Number("must be a positive integer", "pass 50", low=1, integer=True),
    "whiten": FLAG,
}  # fmt: skip


class HebbianPCA(SavedEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Linear PCA by Sanger's rule, on a data set in passes or on a stream in batches.

    W ← W + η[y xᵀ − lt(yyᵀ)W] for centered rows x and y = Wx (Kim 2003, eq. 1). This is the kernel
    Hebbian algorithm with a linear kernel, at a cost of N per row instead of l. Where steps would
    diverge, gains η are limited to 1/‖x‖² and 1/‖y‖².

    Parameters
    ----------
    n_components : int or None, default=2
        Number of components; None: the smaller of the numbers of rows and features.
    rule : "kha/et" or KHA, default="kha/et"
        Learning rule, with a gain that needs no tuning. Pass a :class:`ikpca.solvers.KHA` for
        another gain, such as Sanger's constant gain, ``KHA("kha", gain=0.01)``; its ``init`` is
        "random" or the initial W.
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
    residuals_ : ndarray of shape (n_components,)
        ‖Cw − λw‖/λ₁ after ``fit``.
    n_samples_seen_, n_components_, n_iter_, n_features_in_ : int
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
        n_components: int | None = 2,
        *,
        rule: Literal["kha/et"] | KHA = "kha/et",
        tol: float = 0,
        max_iter: int = 50,
        whiten: bool = False,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.rule = rule
        self.tol = tol
        self.max_iter = max_iter
        self.whiten = whiten
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @atomic
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from all rows, in passes of random order.

        A pass that loses variance with an automatic gain is undone, and the gain is reduced. After
        an interrupt, the model has the components of the finished passes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        rows = self._validate(X, first=True, min_samples=2)
        n, seed = len(rows), draw_seed(self.random_state)
        mean = rows.mean(axis=0, dtype=np.float64)
        centered = rows - mean.astype(rows.dtype)
        finished, interrupted = None, False
        try:
            with limit_threads(self.n_jobs), plain_interrupts():
                for finished in self._passes(self._initial_components(rows, seed), centered, seed):
                    if self.verbose:
                        progress = (
                            f"{finished[2]}/{self.max_iter}: residual {finished[1].max():.2e}"
                        )
                        sys.stderr.write(f"HebbianPCA pass {progress}\n")
        except KeyboardInterrupt:
            interrupted = True
        if finished is None:
            raise KeyboardInterrupt
        W, self.residuals_, self.n_iter_, n_limited = finished
        W *= deterministic_signs(W)[:, None]
        self._horizon = max(n, _HORIZON)
        self._set_fitted(W, mean, _mean_squares(W, centered), _mean_square_norm(centered), n)
        if interrupted:
            raise FitInterrupted
        self._warn_of_limits(f"{n_limited} of {self.n_iter_} passes" if n_limited else "")
        eps = float(np.finfo(W.dtype).eps)
        rounding = 100 * eps**2 * np.square(rows).mean(dtype=np.float64)
        rank = int(np.count_nonzero(self.explained_variance_ > rounding))
        warn_of_rank(self.n_components, len(W), rank)
        residual = float(self.residuals_.max())
        if residual > self._tolerance(eps) and self.tol > 0:
            warnings.warn(
                f"max_iter={self.max_iter} passes did not reach tol={self.tol!r} (the largest "
                f"relative residual is {residual:.2g}); increase max_iter or the tolerance.",
                ConvergenceWarning,
                stacklevel=stacklevel(),
            )
        return self

    def _passes(
        self, W: Floats, centered: Floats, seed: int
    ) -> Iterator[tuple[Floats, Floats, int, int]]:
        """Yield components, residuals, passes, and passes with limited gains, after every pass."""
        n, rule, eps = len(centered), self._rule, float(np.finfo(W.dtype).eps)
        gain, scale, n_limited = rule.stream_gain(_FIT_STEP), 1.0, 0
        captured, rotated = _rayleigh_ritz(W, centered)
        W = rotated if rule.automatic else W
        eigenvalues, _ = _rayleigh_quotients(W, centered)
        for number in range(int(self.max_iter)):
            order = np.random.default_rng([seed, 1, number]).permutation(n)
            times = np.arange(number * n, (number + 1) * n, dtype=np.float64)
            eta = scale * gain.gains(times, n, eigenvalues)
            after, limited = _learn(W, centered[order], eta, rule)
            variance, rotated = _rayleigh_ritz(after, centered)
            if rule.automatic and variance < captured * (1 - 10 * eps):
                scale *= _BACKOFF
            else:
                W, captured = rotated if rule.rayleigh_ritz else after, variance
            eigenvalues, residuals = _rayleigh_quotients(W, centered)
            n_limited += limited
            yield W, residuals, number + 1, n_limited
            if residuals.max() <= self._tolerance(eps):
                return

    def _tolerance(self, eps: float) -> float:
        return max(float(self.tol), _ROUNDING * eps)

    @atomic
    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from one batch of rows in their order.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        first = not hasattr(self, "_horizon")
        rows = self._validate(X, first=first)
        if first:
            W = self._initial_components(rows, draw_seed(self.random_state))
            self._horizon = max(len(rows), _HORIZON)
            self._set_fitted(W, np.zeros(rows.shape[1]), np.zeros(len(W)), 0.0, 0)
        W, seen, rule = self.components_, self.n_samples_seen_, self._rule
        weight = len(rows) / (seen + len(rows))
        mean = self._mean + weight * (rows.mean(axis=0, dtype=np.float64) - self._mean)
        centered = (rows - mean.astype(rows.dtype)).astype(W.dtype)
        with limit_threads(self.n_jobs), plain_interrupts():
            variances = self._variances if seen else _mean_squares(W, centered)
            times = np.arange(seen, seen + len(rows), dtype=np.float64)
            gain = rule.stream_gain(_STREAM_STEP)
            eta = gain.gains(times, self._horizon, variances * self._horizon)
            W, limited = _learn(W, centered, eta, rule)
            variances = (1 - weight) * self._variances + weight * _mean_squares(W, centered)
        total = (1 - weight) * self._total_variance + weight * _mean_square_norm(centered)
        self._set_fitted(W, mean, variances, total, seen + len(rows))
        self._warn_of_limits("the batch" if limited else "")
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Project rows on the components.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        check_is_fitted(self, "components_")
        rows = validate_data(self, X, dtype=FLOAT_DTYPES, reset=False)
        return finite_values(lambda: ((rows - self.mean_) @ self.components_.T) * self._scale)

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Transform projections back to input space: the mean plus a sum of components.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components)

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        check_is_fitted(self, "components_")
        Y = check_array(X, dtype=FLOAT_DTYPES)
        if Y.shape[1] != len(self.components_):
            raise InvalidInput(
                f"X has {Y.shape[1]} columns: the model has {len(self.components_)} components; "
                "pass projections returned by transform."
            )
        unscaled = np.divide(Y, self._scale, out=np.zeros_like(Y), where=self._scale > 0)
        return unscaled @ self.components_ + self.mean_

    def _validate(self, X: ArrayLike, *, first: bool, min_samples: int = 1) -> Floats:
        """Validate the parameters and the rows."""
        check_parameters(self, _RULES)
        self._check_runtime_parameters()
        unused = ("backoff", "change_tol", "clock")
        self._rule.check_options(("auto", "random"), unused)
        if self._rule.has_companion:
            rule = "meta-descent needs a kernel"
            raise invalid_parameter("rule", self.rule, rule, "pass 'kha/et'")
        rows: Floats = validate_data(
            self, X, dtype=FLOAT_DTYPES, reset=first, ensure_min_samples=min_samples
        )
        check_overflow(rows, first=first)
        return rows

    @property
    def _rule(self) -> KHA:
        if isinstance(self.rule, KHA):
            return self.rule
        check_choice("rule", self.rule, ("kha/et",))
        return KHA(self.rule)

    def _initial_components(self, rows: Floats, seed: int) -> Floats:
        """Return orthonormal random components, or the array ``init``."""
        n_features = rows.shape[1]
        number = min(rows.shape) if self.n_components is None else int(self.n_components)
        if number > n_features:
            rule = f"X has {n_features} features"
            raise invalid_parameter("n_components", number, rule, f"pass at most {n_features}")
        W = self._rule.initial_array((number, n_features))
        if W is None:
            rng = np.random.default_rng([seed, 0])
            W = np.linalg.qr(rng.normal(size=(number, n_features)).T)[0].T
        elif not W.any():
            raise invalid_parameter("init", "array", "is zero and would stay zero", "pass 'random'")
        return np.ascontiguousarray(W, dtype=rows.dtype)

    def _set_fitted(
        self, W: Floats, mean: Floats, variances: Floats, total: float, seen: int
    ) -> None:
        """Set the fitted attributes from means over all rows, in double precision."""
        self._mean, self._variances, self._total_variance = mean, variances, total
        unbiased = variances * (seen / max(seen - 1, 1))
        deviations = np.sqrt(unbiased) if self.whiten else np.ones(len(W))
        scale = np.divide(1, deviations, out=np.zeros(len(W)), where=deviations > 0)
        self._scale = scale.astype(W.dtype)
        self.components_, self.mean_ = W, mean.astype(W.dtype)
        self.explained_variance_ = unbiased.astype(W.dtype)
        self.explained_variance_ratio_ = (variances / (total or 1.0)).astype(W.dtype)
        self.n_components_, self.n_samples_seen_ = len(W), seen

    def _warn_of_limits(self, where: str) -> None:
        if where:
            warnings.warn(
                f"gain={self._rule.gain!r} was too large in {where}, where it was limited to "
                "1/‖x‖²; pass gain='auto' or a smaller number.",
                DivergenceWarning,
                stacklevel=stacklevel(),
            )

    def _check_loaded(self, make_row: Callable[[int], Rows | None]) -> None:
        super()._check_loaded(make_row)
        number, n_features = len(self.components_), self.n_features_in_
        rows, values = (self.mean_, self._mean), (self._scale, self._variances)
        check_shapes(
            (self.components_, (number, n_features)),
            *((array, (n_features,)) for array in rows),
            *((array, (number,)) for array in values),
        )
        self.transform(np.ones((1, n_features)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def _learn(W: Floats, rows: Floats, eta: Floats, rule: KHA) -> tuple[Floats, bool]:
    """Return W after all rows in order, and True if gains of the user had to be limited."""
    eta = np.broadcast_to(np.minimum(eta, np.finfo(np.float64).max), (len(rows), len(W)))
    after = None if rule.automatic else _sweep(W, rows, eta, limited=False)
    if after is not None:
        return after, False
    after = _sweep(W, rows, eta, limited=True)
    assert after is not None
    return after, not rule.automatic


def _sweep(W: Floats, rows: Floats, eta: Floats, *, limited: bool) -> Floats | None:
    """Return W ← W + η[y xᵀ − lt(yyᵀ)W] after all rows x; None if a step diverged.

    Steps with gains limited to 1/‖x‖² and 1/‖y‖² do not diverge.
    """
    # Imported here because importing it starts the compiler.
    from ikpca.solvers import kha_sweep

    largest = np.finfo(np.float64).max
    max_length = largest if limited else 2 * max(1.0, float(np.linalg.norm(W, 2)) ** 2)
    mean_square = _mean_square_norm(rows)
    for part in tile_slices(len(rows), _BLOCK):
        X = rows[part]
        Y, G = (W @ X.T).astype(np.float64), (X @ X.T).astype(np.float64)
        limits = np.full(len(X), largest)
        if not limited:
            # ‖y‖² of components within this length (Cauchy–Schwarz).
            limits = max_length * np.maximum(np.diag(G), mean_square)
        T, C, failed = kha_sweep.plain_sweep(Y, G, eta[part].copy(), limited, limits)
        if failed != kha_sweep.OK:
            return None
        W = T.astype(W.dtype) @ W + C.astype(W.dtype) @ X
    return None if np.square(W).sum(axis=1).max() > max_length else W


def _rayleigh_ritz(W: Floats, rows: Floats) -> tuple[float, Floats]:
    """Return the variance that the span of W captures, and orthonormal components of the span."""
    double = W.astype(np.float64)
    Y = (W @ rows.T).astype(np.float64)
    drop = max(1e-12, 10 * float(np.finfo(W.dtype).eps))
    values, T = rayleigh_ritz(double @ double.T, Y @ Y.T, drop=drop)
    return float(values.sum()), (T @ double).astype(W.dtype)


def _rayleigh_quotients(W: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Return λ = ‖y‖²/‖w‖² and ‖Cw − λw‖/(λ₁‖w‖) of every component, for C = Σ x xᵀ."""
    W = W.astype(np.float64)
    Y = W @ rows.T
    lengths = np.linalg.norm(W, axis=1)
    norms = np.linalg.norm(Y, axis=1)
    values = np.square(np.divide(norms, lengths, out=np.zeros_like(norms), where=lengths > 0))
    defects = np.linalg.norm(Y @ rows - values[:, None] * W, axis=1)
    scale = lengths * values.max(initial=0.0)
    return values, np.divide(defects, scale, out=np.zeros_like(defects), where=scale > 0)


def _mean_squares(W: Floats, rows: Floats) -> Floats:
    """Return the mean of y² over the rows."""
    return np.square(rows @ W.T).mean(axis=0, dtype=np.float64)


def _mean_square_norm(rows: Floats) -> float:
    return float(np.einsum("ij,ij->", rows, rows, dtype=np.float64)) / len(rows)
