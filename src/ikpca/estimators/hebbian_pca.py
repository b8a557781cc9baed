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
    InvalidInput,
    Number,
    ParameterRules,
    check_parameters,
    invalid_parameter,
)
from ikpca.estimators.base import SavedEstimator, atomic, warn_of_rank
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

#: Number of rows over which the gain of a stream stays near its initial value.
_HORIZON = 100
#: h_i λ_i at t = 0 of a fit and of a stream.
_FIT_STEP, _STREAM_STEP = 7.0, 2.0
#: Largest entry of W, of rows of unit length at the start, before the rule has diverged.
_MAX_WEIGHT = 1e3
#: Rows per sweep.
_BLOCK = 128
_RULES: ParameterRules = {
    "n_components": Number("must be a positive integer or None", "pass None for all",
                           low=1, integer=True, allowed=(None,)),
    "rule": Choice(("kha/et",), objects=KHA),
    "max_iter": Number("must be a positive integer", "pass 50", low=1, integer=True),
}  # fmt: skip


class HebbianPCA(SavedEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Linear PCA by Sanger's rule, on a data set in passes or on a stream in batches.

    W ← W + η[y xᵀ − lt(yyᵀ)W] for centered rows x and y = Wx (Kim 2003, eq. 1). This is the kernel
    Hebbian algorithm with a linear kernel, at a cost of N per row instead of l. Automatic gains η
    are limited to 1/‖x‖² and 1/‖y‖²; too large a gain of the user raises an error.

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

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self
        """
        seed = draw_seed(self.random_state)
        rows, rule = self._validate(X, reset=True, min_samples=2), self._rule
        W, n = self._start(rows, seed), len(rows)
        mean = rows.mean(axis=0, dtype=np.float64)
        centered = rows - mean.astype(rows.dtype)
        if rule.automatic:
            W = _rayleigh_ritz(W, centered)
        gain = rule.stream_gain(_FIT_STEP)
        for number in range(int(self.max_iter)):
            order = np.random.default_rng([seed, 1, number]).permutation(n)
            times = np.arange(number * n, (number + 1) * n, dtype=np.float64)
            W = self._learn(W, centered[order], gain.gains(times, n, _quotients(W, centered)))
            if rule.rayleigh_ritz:
                W = _rayleigh_ritz(W, centered)
        W *= deterministic_signs(W)[:, None]
        self.n_iter_ = int(self.max_iter)
        self._set_fitted(W, mean, centered)
        rounding = 100 * np.finfo(rows.dtype).eps ** 2 * np.square(rows).mean(dtype=np.float64)
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
        first = not hasattr(self, "components_")
        rows, rule = self._validate(X, reset=first), self._rule
        if first:
            self.components_ = self._start(rows, draw_seed(self.random_state))
        W, seen = self.components_, self.n_samples_seen_
        weight = len(rows) / (seen + len(rows))
        mean = self._mean + weight * (rows.mean(axis=0, dtype=np.float64) - self._mean)
        centered = (rows - mean.astype(rows.dtype)).astype(W.dtype)
        variances = self._variances if seen else _mean_squares(centered @ W.T)
        times = np.arange(seen, seen + len(rows), dtype=np.float64)
        eta = rule.stream_gain(_STREAM_STEP).gains(times, _HORIZON, variances * _HORIZON)
        self._set_fitted(self._learn(W, centered, eta), mean, centered)
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

    def _validate(self, X: ArrayLike, *, reset: bool, min_samples: int = 1) -> Floats:
        """Validate the parameters and the rows."""
        check_parameters(self, _RULES)
        self._rule.check_options(("auto", "random"), ("backoff", "clock"))
        if self._rule.has_companion:
            reason = "meta-descent needs a kernel"
            raise invalid_parameter("rule", self.rule, reason, "pass 'kha/et'")
        rows: Floats = validate_data(
            self, X, dtype=FLOAT_DTYPES, reset=reset, ensure_min_samples=min_samples
        )
        check_overflow(rows, first=reset)
        return rows

    @property
    def _rule(self) -> KHA:
        return self.rule if isinstance(self.rule, KHA) else KHA(self.rule)

    def _start(self, rows: Floats, seed: int) -> Floats:
        """Reset the stream, and return orthonormal random components, or the array ``init``."""
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
        self._mean: Floats = np.zeros(n_features)
        self._variances: Floats = np.zeros(number)
        self._total_variance, self.n_samples_seen_ = 0.0, 0
        return np.ascontiguousarray(W, dtype=rows.dtype)

    def _set_fitted(self, W: Floats, mean: Floats, rows: Floats) -> None:
        """Set the fitted attributes after centered rows; running means in double precision."""
        seen = self.n_samples_seen_ + len(rows)
        weight = len(rows) / seen
        variances = (1 - weight) * self._variances + weight * _mean_squares(rows @ W.T)
        total = (1 - weight) * self._total_variance + weight * float(_mean_squares(rows).sum())
        self._mean, self._variances, self._total_variance = mean, variances, total
        self.components_, self.mean_ = W, mean.astype(W.dtype)
        self.explained_variance_ = (variances * (seen / max(seen - 1, 1))).astype(W.dtype)
        self.explained_variance_ratio_ = (variances / (total or 1.0)).astype(W.dtype)
        self.n_components_, self.n_samples_seen_ = len(W), seen

    def _learn(self, W: Floats, rows: Floats, eta: Floats) -> Floats:
        """Return W ← W + η[y xᵀ − lt(yyᵀ)W] after all rows x in order."""
        # Imported here because importing it starts the compiler.
        from ikpca.solvers import kha_pass

        largest, limited = np.finfo(np.float64).max, self._rule.automatic
        eta = np.broadcast_to(np.minimum(eta, largest), (len(rows), len(W)))
        with plain_interrupts(), np.errstate(over="ignore", invalid="ignore"):
            for part in tile_slices(len(rows), _BLOCK):
                X = rows[part]
                Y, G = (W @ X.T).astype(np.float64), (X @ X.T).astype(np.float64)
                limits = np.full(len(X), largest)
                T, C, failed = kha_pass.plain_sweep(Y, G, eta[part].copy(), limited, limits)
                W = T.astype(W.dtype) @ W + C.astype(W.dtype) @ X
                if failed != kha_pass.OK or not np.abs(W).max() < _MAX_WEIGHT:
                    raise invalid_parameter(
                        "gain",
                        self._rule.gain,
                        "is too large: the components diverged",
                        "pass gain='auto' or a smaller number",
                    )
        return W

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


def _rayleigh_ritz(W: Floats, rows: Floats) -> Floats:
    """Return orthonormal components of the span of W, ordered by their variances."""
    double = W.astype(np.float64)
    Y = (W @ rows.T).astype(np.float64)
    drop = max(1e-12, 10 * float(np.finfo(W.dtype).eps))
    T = rayleigh_ritz(double @ double.T, Y @ Y.T, drop=drop)[1]
    return (T @ double).astype(W.dtype)


def _quotients(W: Floats, rows: Floats) -> Floats:
    """Return λ = ‖y‖²/‖w‖² of every component."""
    squares = np.square(W @ rows.T).sum(axis=1, dtype=np.float64)
    lengths = np.square(W).sum(axis=1, dtype=np.float64)
    return squares / np.where(lengths > 0, lengths, 1)


def _mean_squares(rows: Floats) -> Floats:
    return np.square(rows).mean(axis=0, dtype=np.float64)
