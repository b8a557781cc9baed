"""Linear PCA by Sanger's generalized Hebbian algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ikpca.errors import (
    Choice,
    DivergenceWarning,
    InvalidInput,
    Number,
    ParameterRules,
    check_parameters,
    invalid_parameter,
)
from ikpca.estimators.base import SavedEstimator, atomic, warn, warn_of_rank
from ikpca.estimators.validation import (
    FLOAT_DTYPES,
    RandomStateLike,
    check_overflow,
    draw_seed,
    finite_values,
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
_RULES: ParameterRules = {
    "n_components": Number("must be a positive integer or None", "pass None for all",
                           low=1, integer=True, allowed=(None,)),
    "rule": Choice(("kha/et",), objects=KHA),
    "max_iter": Number("must be a positive integer", "pass 50", low=1, integer=True),
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
    max_iter : int, default=50
        Number of passes of ``fit``.
    random_state : int, RandomState or None, default=None
        Seed of the initialization and of the order of the rows.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
    mean_ : ndarray of shape (n_features,)
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
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
        max_iter: int = 50,
        random_state: RandomStateLike = None,
    ) -> None:
        self.n_components = n_components
        self.rule = rule
        self.max_iter = max_iter
        self.random_state = random_state

    @atomic
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from all rows, in passes of random order.

        A pass that loses variance with an automatic gain is undone, and the gain is reduced.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        rows, rule = self._validate(X, first=True, min_samples=2), self._rule
        n, seed, eps = len(rows), draw_seed(self.random_state), float(np.finfo(rows.dtype).eps)
        mean = rows.mean(axis=0, dtype=np.float64)
        centered = rows - mean.astype(rows.dtype)
        W = self._initial_components(rows, seed)
        captured, rotated = _rayleigh_ritz(W, centered)
        W = rotated if rule.automatic else W
        gain, scale, n_limited = rule.stream_gain(_FIT_STEP), 1.0, 0
        for number in range(int(self.max_iter)):
            order = np.random.default_rng([seed, 1, number]).permutation(n)
            times = np.arange(number * n, (number + 1) * n, dtype=np.float64)
            eta = scale * gain.gains(times, n, _rayleigh_quotients(W, centered))
            after, limited = _learn(W, centered[order], eta, automatic=rule.automatic)
            n_limited += limited
            variance, rotated = _rayleigh_ritz(after, centered)
            if rule.automatic and variance < captured * (1 - 10 * eps):
                scale *= _BACKOFF
            else:
                W, captured = rotated if rule.rayleigh_ritz else after, variance
        W *= deterministic_signs(W)[:, None]
        self._horizon, self.n_iter_ = max(n, _HORIZON), int(self.max_iter)
        self._set_fitted(W, mean, _mean_squares(W, centered), _mean_square_norm(centered), n)
        if n_limited:
            self._warn_of_limits(f"{n_limited} of {self.max_iter} passes")
        rounding = 100 * eps**2 * np.square(rows).mean(dtype=np.float64)
        rank = int(np.count_nonzero(self.explained_variance_ > rounding))
        warn_of_rank(self.n_components, len(W), rank)
        return self

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
        rows, rule = self._validate(X, first=first), self._rule
        if first:
            W = self._initial_components(rows, draw_seed(self.random_state))
            self._horizon = max(len(rows), _HORIZON)
            self._set_fitted(W, np.zeros(rows.shape[1]), np.zeros(len(W)), 0.0, 0)
        W, seen = self.components_, self.n_samples_seen_
        weight = len(rows) / (seen + len(rows))
        mean = self._mean + weight * (rows.mean(axis=0, dtype=np.float64) - self._mean)
        centered = (rows - mean.astype(rows.dtype)).astype(W.dtype)
        variances = self._variances if seen else _mean_squares(W, centered)
        times = np.arange(seen, seen + len(rows), dtype=np.float64)
        eta = rule.stream_gain(_STREAM_STEP).gains(times, self._horizon, variances * self._horizon)
        W, limited = _learn(W, centered, eta, automatic=rule.automatic)
        variances = (1 - weight) * self._variances + weight * _mean_squares(W, centered)
        total = (1 - weight) * self._total_variance + weight * _mean_square_norm(centered)
        self._set_fitted(W, mean, variances, total, seen + len(rows))
        if limited:
            self._warn_of_limits("the batch")
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
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=FLOAT_DTYPES, reset=False)
        return finite_values(lambda: (rows - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Transform projections back to input space: the mean plus a sum of components.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components)

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        check_is_fitted(self)
        Y = check_array(X, dtype=FLOAT_DTYPES)
        if Y.shape[1] != len(self.components_):
            raise InvalidInput(
                f"X has {Y.shape[1]} columns: the model has {len(self.components_)} components; "
                "pass projections returned by transform."
            )
        return Y @ self.components_ + self.mean_

    def _validate(self, X: ArrayLike, *, first: bool, min_samples: int = 1) -> Floats:
        """Validate the parameters and the rows."""
        check_parameters(self, _RULES)
        self._rule.check_options(("auto", "random"), ("backoff", "clock"))
        if self._rule.has_companion:
            reason = "meta-descent needs a kernel"
            raise invalid_parameter("rule", self.rule, reason, "pass 'kha/et'")
        rows: Floats = validate_data(
            self, X, dtype=FLOAT_DTYPES, reset=first, ensure_min_samples=min_samples
        )
        check_overflow(rows, first=first)
        return rows

    @property
    def _rule(self) -> KHA:
        return self.rule if isinstance(self.rule, KHA) else KHA(self.rule)

    def _initial_components(self, rows: Floats, seed: int) -> Floats:
        """Return orthonormal random components, or the array ``init``."""
        n_features = rows.shape[1]
        number = min(rows.shape) if self.n_components is None else int(self.n_components)
        if number > n_features:
            reason = f"X has {n_features} features"
            raise invalid_parameter("n_components", number, reason, f"pass at most {n_features}")
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
        self.components_, self.mean_ = W, mean.astype(W.dtype)
        self.explained_variance_ = (variances * (seen / max(seen - 1, 1))).astype(W.dtype)
        self.explained_variance_ratio_ = (variances / (total or 1.0)).astype(W.dtype)
        self.n_components_, self.n_samples_seen_ = len(W), seen

    def _warn_of_limits(self, where: str) -> None:
        warn(
            f"gain={self._rule.gain!r} was too large in {where}, where it was limited to 1/‖x‖²; "
            "pass gain='auto' or a smaller number.",
            DivergenceWarning,
        )

    def _check_loaded(self, make_row: Callable[[int], Rows | None]) -> None:
        super()._check_loaded(make_row)
        number, n_features = len(self.components_), self.n_features_in_
        check_shapes(
            (self.components_, (number, n_features)),
            (self.mean_, (n_features,)),
            (self._mean, (n_features,)),
            (self._variances, (number,)),
        )
        self.transform(np.ones((1, n_features)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def _learn(W: Floats, rows: Floats, eta: Floats, *, automatic: bool) -> tuple[Floats, bool]:
    """Return W after all rows in order, and True if gains of the user had to be limited."""
    eta = np.broadcast_to(np.minimum(eta, np.finfo(np.float64).max), (len(rows), len(W)))
    with plain_interrupts(), np.errstate(over="ignore", invalid="ignore"):
        if automatic:
            return _sweep(W, rows, eta, limited=True), False
        after = _sweep(W, rows, eta, limited=False)
        max_square = 2 * max(1.0, float(np.linalg.norm(W, 2)) ** 2)
        if np.square(after).sum(axis=1).max() <= max_square:
            return after, False
        return _sweep(W, rows, eta, limited=True), True


def _sweep(W: Floats, rows: Floats, eta: Floats, *, limited: bool) -> Floats:
    """Return W ← W + η[y xᵀ − lt(yyᵀ)W] after all rows x; infinite if a step diverged.

    Steps with gains limited to 1/‖x‖² and 1/‖y‖² do not diverge.
    """
    # Imported here because importing it starts the compiler.
    from ikpca.solvers import kha_pass

    largest = np.finfo(np.float64).max
    for part in tile_slices(len(rows), _BLOCK):
        X = rows[part]
        Y, G = (W @ X.T).astype(np.float64), (X @ X.T).astype(np.float64)
        limits = np.full(len(X), largest)
        T, C, failed = kha_pass.plain_sweep(Y, G, eta[part].copy(), limited, limits)
        if failed != kha_pass.OK:
            return np.full_like(W, np.inf)
        W = T.astype(W.dtype) @ W + C.astype(W.dtype) @ X
    return W


def _rayleigh_ritz(W: Floats, rows: Floats) -> tuple[float, Floats]:
    """Return the variance that the span of W captures, and orthonormal components of the span."""
    double = W.astype(np.float64)
    Y = (W @ rows.T).astype(np.float64)
    drop = max(1e-12, 10 * float(np.finfo(W.dtype).eps))
    values, T = rayleigh_ritz(double @ double.T, Y @ Y.T, drop=drop)
    return float(values.sum()), (T @ double).astype(W.dtype)


def _rayleigh_quotients(W: Floats, rows: Floats) -> Floats:
    """Return λ = ‖y‖²/‖w‖² of every component."""
    squares = np.square(W @ rows.T).sum(axis=1, dtype=np.float64)
    lengths = np.square(W).sum(axis=1, dtype=np.float64)
    return np.divide(squares, lengths, out=np.zeros_like(squares), where=lengths > 0)


def _mean_squares(W: Floats, rows: Floats) -> Floats:
    """Return the mean of y² over the rows."""
    return np.square(rows @ W.T).mean(axis=0, dtype=np.float64)


def _mean_square_norm(rows: Floats) -> float:
    return float(np.einsum("ij,ij->", rows, rows, dtype=np.float64)) / len(rows)
