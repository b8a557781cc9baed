"""Novelty detection by the reconstruction error of kernel PCA."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import groupby
from numbers import Integral
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ikpca.errors import (
    Choice,
    InvalidInput,
    Number,
    ParameterRules,
    check_parameters,
    invalid_parameter,
    is_auto,
)
from ikpca.estimators.base import SavedEstimator, atomic, warn
from ikpca.estimators.fold_fits import choose_fold_solver, fit_folds, split_rows
from ikpca.estimators.incremental_kernel_pca import IncrementalKernelPCA
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.estimators.stream_base import learning
from ikpca.estimators.validation import (
    FLOAT_DTYPES,
    GammaLike,
    KernelLike,
    RandomStateLike,
    RowsLike,
    check_overflow,
    draw_seed,
    gamma_beside,
    is_named,
    validate_rows,
)
from ikpca.gram import tile_slices
from ikpca.gram.lazy_rows import LazyRows
from ikpca.kernels import Floats, Indices, Rows
from ikpca.solvers import Solver
from ikpca.streams import MomentState
from ikpca.subspace import MeanResidual, check_shapes

#: Rows of a stream that are scored by the same model.
_CHUNK = 100
#: Smallest window of errors of a stream, and false alarms that it contains on average.
_MIN_WINDOW, _WINDOW_ALARMS = 500, 10
#: Multiple of the limit above which errors of a stream's rows are far, and the fraction of the
#: false alarm rate that far errors may make up: more of them are those of anomalies.
_FAR, _FAR_SHARE = 2.5, 0.5
#: Growth of a stream after which its rows are scored by the components of all rows.
_REFRESH = 0.05
#: Change of the logarithm of the threshold's level with a false alarm of a stream.
_LEVEL_STEP = 0.25
#: Smallest default basis of a stream.
_MIN_BASIS_ROWS = 200
_RULES: ParameterRules = {
    "false_alarm_rate": Number("must lie in (0, 0.5]", "pass 0.05", low=0, high=0.5, open_low=True),
    "calibration": Choice(("cv", "blocked-cv")),
    "drift_after": Number("must be a positive integer", "pass 20", low=1, integer=True),
    "forgetting": Number("must lie in (0, 1]", "pass 1.0 to forget nothing", low=0, high=1,
                         open_low=True),
    "max_basis_rows": Number("must be 'auto' or a positive integer", "pass 'auto'", low=1,
                             integer=True, allowed=("auto",)),
}  # fmt: skip
_N_FOLDS = Number("must be an integer of at least 2, or a splitter of scikit-learn", "pass 5",
                  low=2, integer=True)  # fmt: skip


class NoveltyDetector(OutlierMixin, SavedEstimator):
    r"""Novelty detection by the reconstruction error of kernel PCA, with calibrated thresholds.

    The rows of ``fit`` are examples of normal behavior. A new row is novel if kernel components of
    the normal rows have a large reconstruction error for it in feature space. Those of the training
    rows themselves are too small to set a threshold, so that it is the quantile of cross-validated
    errors: every row is scored by a model that was fitted without it. New rows are scored by the
    mean error of the same models, so that both errors are comparable.

    More than 4,000 rows are fitted on landmarks, random rows whose images span the components. All
    models follow from one pass over the rows, in memory that does not grow with their number. Each
    model uses only the landmarks among its own rows.

    Scale the features first, for example with :class:`sklearn.preprocessing.StandardScaler`.

    Parameters
    ----------
    n_components : int, float or None, default=0.99
        Number of components, or the fraction of the variance that they explain, as in
        :class:`KernelPCA`. With landmarks, it is a fraction of the variance in their span, and None
        selects all directions of the span.
    kernel, gamma : as in :class:`KernelPCA`
        The defaults are "rbf" and "scale", which has no effect beside a kernel object; the kernel
        is not "precomputed".
    false_alarm_rate : float, default=0.05
        Fraction of new normal rows that may be flagged, in (0, 0.5]. Rates below
        1/(n_samples + 1) cannot be resolved: no row is flagged, with a warning.
    calibration : {"cv", "blocked-cv"}, default="cv"
        Folds of the cross-validation. "cv": random. "blocked-cv": contiguous, for time series, in
        which neighboring rows are similar.
    cv : int or splitter of scikit-learn, default=5
        Number of folds, at least 2; or an object such as ``PredefinedSplit``, with which every row
        belongs to one test set, for example to leave out groups of similar rows together.
    eigen_solver : str or solver object, default="auto"
        As in :class:`KernelPCA`, except that "auto" is "nystrom" where it is not "dense". "nystrom"
        is ``Nystrom(2000)``, or four landmarks per component if that is more; more landmarks detect
        slightly better, and the time of a fit grows with the square of their number.
    tol, max_memory, n_jobs : as in :class:`KernelPCA`
        Only iterative solvers use ``tol``, by default 1e-4. A small budget reduces the default
        number of landmarks, down to 100.
    forgetting : float, default=1.0
        f in (0, 1]: with every row that ``partial_fit`` learns, the weights of earlier rows are
        multiplied by f², so that the effective window is 1/(1 − f²) rows.
    max_basis_rows : int or "auto", default="auto"
        Maximum number of basis rows in ``partial_fit``; "auto": one per component, at
        least 200.
    drift_after : int, default=20
        Number of consecutive flagged rows that ``partial_fit`` takes for a drift and learns.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the solver.

    Attributes
    ----------
    offset_ : float
        Threshold of ``score_samples``: the negative limit of the error; ``-inf`` if no row can be
        flagged.
    calibration_errors_ : ndarray of shape (n_samples,)
        Cross-validated squared errors of the training rows. After ``partial_fit``: errors of the
        last normal rows, each computed before the row was learned.
    model_ : KernelPCA or IncrementalKernelPCA
        Model of all training rows, which ``explain`` uses and ``partial_fit`` updates. Its
        ``eigen_solver`` is the solver that was used, with the number of landmarks if there are any.
    drift_detected_ : bool
        True if a drift was learned in the last call of ``partial_fit``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Defined only if X has string column names.

    See Also
    --------
    ikpca.plotting.contributions : Plot the features that contribute to an error.
    sklearn.neighbors.LocalOutlierFactor : Novelty detection by density ratios.
    sklearn.svm.OneClassSVM : Novelty detection with the same kernels.

    Notes
    -----
    If rows are exchangeable and n_samples + 1 is a multiple of 1/``false_alarm_rate``, a threshold
    from rows that no model has seen has exactly this rate on average. Cross-validated errors share
    training rows; as for the jackknife+ and cross-conformal prediction, the rate is proven only up
    to a factor of two, and in practice close to the nominal one. A rate that is realized for one
    training set varies about its mean. Anomalies among the training rows raise the threshold, and
    training rows that are all anomalies define what is normal: this cannot be detected.

    References
    ----------
    - \H. Hoffmann, Kernel PCA for novelty detection, Pattern Recognition 40, 2007.
    - \V. Vovk, Cross-conformal predictors, Annals of Mathematics and Artificial Intelligence 74,
      2015.
    - \I. Gibbs, E. Candès, Adaptive conformal inference under distribution shift, NeurIPS 2021.
    - \B. Kim, C. Xu, R. F. Barber, Predictive inference is free with the
      jackknife+-after-bootstrap, NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import NoveltyDetector
    >>> rng = np.random.default_rng(0)
    >>> angles = rng.uniform(0, 2 * np.pi, size=400)
    >>> ring = np.column_stack([np.cos(angles), np.sin(angles)]) + rng.normal(0, 0.05, (400, 2))
    >>> detector = NoveltyDetector(false_alarm_rate=0.01, random_state=0).fit(ring)
    >>> detector.predict([[1.0, 0.0], [0.0, 0.0]])
    array([ 1, -1])
    >>> detector.p_values([[0.0, 0.0]]) <= 0.01
    array([ True])
    """

    def __init__(
        self,
        n_components: float | None = 0.99,
        *,
        kernel: KernelLike = "rbf",
        gamma: GammaLike = "scale",
        false_alarm_rate: float = 0.05,
        calibration: Literal["cv", "blocked-cv"] = "cv",
        cv: int | BaseCrossValidator = 5,
        eigen_solver: str | Solver = "auto",
        tol: float = 1e-4,
        max_memory: int | str | None = None,
        forgetting: float = 1.0,
        max_basis_rows: int | Literal["auto"] = "auto",
        drift_after: int = 20,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.false_alarm_rate = false_alarm_rate
        self.calibration = calibration
        self.cv = cv
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_memory = max_memory
        self.forgetting = forgetting
        self.max_basis_rows = max_basis_rows
        self.drift_after = drift_after
        self.n_jobs = n_jobs
        self.random_state = random_state

    _residual: MeanResidual
    _scorer: MomentState
    model_: KernelPCA | IncrementalKernelPCA

    @atomic
    def fit(self, X: RowsLike, y: object = None) -> Self:
        """Fit the components of normal rows and calibrate the threshold by cross-validation.

        Parameters
        ----------
        X : array-like or CSR of shape (n_samples, n_features)
            Normal rows, at least one per fold. Rows on disk, from :func:`ikpca.open_rows`, are read
            in strips.
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        rows: Rows = validate_rows(self, X, reset=True, accept_sparse="csr", min_samples=2)
        n_samples, seed = rows.shape[0], draw_seed(self.random_state)
        solver = choose_fold_solver(self.eigen_solver, self.n_components, n_samples)
        folds = split_rows(n_samples, self.cv, seed if self.calibration == "cv" else None)
        self.model_ = KernelPCA(
            self.n_components,
            kernel=self.kernel,
            gamma=gamma_beside(self.kernel, self.gamma),
            eigen_solver=solver,
            tol=self.tol,
            max_memory=self.max_memory,
            n_jobs=self.n_jobs,
            remove_zero_eig=True,
            random_state=seed,
        )
        errors, self._residual = fit_folds(self.model_, rows, folds)
        self.drift_detected_ = False
        self._set_calibration(errors)
        if np.isinf(self.offset_):
            warn(
                f"false_alarm_rate={self.false_alarm_rate!r} is below 1/(n_samples + 1) with "
                f"n_samples={n_samples}: no row can be flagged; pass more rows or a higher rate.",
                UserWarning,
            )
        return self

    def fit_predict(self, X: RowsLike, y: object = None) -> Indices:
        """Fit, and flag rows whose cross-validated error exceeds the threshold.

        Unlike in ``predict``, no row is scored by a model that knows it, so that anomalies among
        the training rows are found. The threshold is a quantile of the same errors: a fraction of
        ``false_alarm_rate`` of the rows is flagged, also if there are no anomalies.

        Parameters
        ----------
        X : array-like or CSR of shape (n_samples, n_features)
            As for :meth:`fit`, but with some anomalies.
        y : Ignored

        Returns
        -------
        ndarray of shape (n_samples,)
            −1 for anomalies, 1 for normal rows.
        """
        self.fit(X)
        return np.where(self.calibration_errors_ > -self.offset_, -1, 1)

    def score_samples(self, X: RowsLike) -> Floats:
        """Compute the negative squared reconstruction error in feature space.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Higher values are more normal. After ``fit``: −1 times the mean, over the folds, of
            ``reconstruction_error`` of the :class:`KernelPCA` that was fitted without the fold.
            After ``partial_fit``: that of ``model_``, whose components are refreshed after a drift
            and when the stream has grown by a twentieth.
        """
        return -self._errors(self._validated_rows(X))

    def decision_function(self, X: RowsLike) -> Floats:
        """Compute the difference of the scores and the threshold; novel rows are negative.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            ``score_samples(X) - offset_``
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: RowsLike) -> Indices:
        """Flag novel rows: those with ``p_values(X) <= false_alarm_rate``.

        For new rows; training rows, which the models know, are flagged by ``fit_predict``.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            −1 for novel rows, 1 for normal ones.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def p_values(self, X: RowsLike) -> Floats:
        """Compute conformal p-values of the hypothesis that a row is normal.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            (1 + number of calibration errors at least as large as that of the row)/(n + 1) with n
            ``calibration_errors_``. About uniform for new normal rows; larger where errors are
            tied, as for repeated rows. After ``partial_fit`` multiplied by the correction of the
            false alarm rate.
        """
        return self._p_values(-self.score_samples(X))

    def _p_values(self, errors: Floats) -> Floats:
        calibration = np.sort(self.calibration_errors_)
        n_larger = len(calibration) - np.searchsorted(calibration, errors, side="left")
        return np.minimum(1, (1 + n_larger) / (1 + len(calibration)) * self._correction)

    def explain(self, X: RowsLike) -> Floats:
        """Compute the contribution of every feature to the error of a row.

        The error is divided among the features in proportion to the squared differences between the
        row and the pre-image of its projection, its nearest normal row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Each row sums to ``-score_samples(X)``.
        """
        rows = self._validated_rows(X)
        rows = rows[:] if isinstance(rows, LazyRows) else rows
        differences = np.square(rows - self.model_.reconstruct(rows), dtype=np.float64)
        totals = differences.sum(axis=1, keepdims=True)
        shares = np.divide(
            differences, totals, out=np.full_like(differences, 1 / rows.shape[1]), where=totals > 0
        )
        return shares * self._errors(rows)[:, None]

    @atomic
    def partial_fit(self, X: RowsLike, y: object = None) -> Self:
        """Learn from the normal rows of a batch; the first batch is passed to ``fit``.

        Rows are scored before they are learned, at most 100 at a time, and their errors update the
        threshold. Flagged rows are not learned, unless ``drift_after`` of them follow each
        other. The threshold is a quantile of the last errors, without those of a drift, which the
        model then has learned. Errors above 2.5 times the limit or, for a kernel with a
        largest error, nearer to that, are far: normal rows have some, and anomalies have more, so
        that they count up to half of the false alarm rate. As errors change within the
        window, the level of the quantile follows the number of false alarms, that is, of flagged
        rows which count (adaptive conformal inference).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows in their order; the first batch must contain only normal rows.
        y : Ignored

        Returns
        -------
        self
        """
        if not hasattr(self, "model_"):
            return self.fit(X)
        self._check_parameters()
        X = validate_data(self, X, dtype=FLOAT_DTYPES, reset=False)
        check_overflow(X, first=False)
        if isinstance(self.model_, KernelPCA):
            self._start_stream()
        # Learning changes this model, and not the one before the batch.
        self.model_ = copy.copy(self.model_)
        self.drift_detected_ = False
        for part in tile_slices(X.shape[0], _CHUNK):
            self._learn(X[part])
        return self

    def _start_stream(self) -> None:
        if not isinstance(self.model_._subspace.basis, np.ndarray):
            raise InvalidInput(
                "The detector was fitted on sparse rows or rows on disk: partial_fit needs them "
                "dense and in memory; fit it on X.toarray() or X[:]."
            )
        number = max(1, len(self.model_.eigenvalues_))
        limit = self.max_basis_rows
        if is_auto(limit):
            limit = max(_MIN_BASIS_ROWS, number)
        self.model_ = IncrementalKernelPCA.from_batch(
            self.model_,
            n_components=number,
            max_basis_rows=limit,
            forgetting=self.forgetting,
            random_state=draw_seed(self.random_state),
        )
        self._far_allowance, self._has_drifted = 0.0, False
        self._refresh_scorer()
        del self._residual
        # Flagged rows at the end of the stream, their errors, and those that are not far.
        self._pending = np.zeros((0, self.n_features_in_)), np.zeros(0), np.zeros(0, dtype=bool)

    def _learn(self, X: Floats) -> None:
        """Score rows, learn the normal ones, and update the threshold."""
        limit, new = -self.offset_, (X, *self._errors_and_near(X))
        rows, errors, near = (np.concatenate(pair) for pair in zip(self._pending, new, strict=True))
        flagged = errors > limit
        flagged[: len(self._pending[0])] = True
        drifted = _long_runs(flagged, int(self.drift_after))
        waits = np.logical_and.accumulate((flagged & ~drifted)[::-1])[::-1]
        # Errors from before the model learned a drift are not those of normal rows.
        counted = ~waits & ~drifted
        self._count(errors[counted], near[counted], flagged[counted])
        self._pending = rows[waits], errors[waits], near[waits]
        has_drifted = bool(drifted.any())
        self.drift_detected_ = self.drift_detected_ or has_drifted
        learned = ~flagged | drifted
        if learned.any():
            with learning():
                self.model_._learn(rows[learned], np.ones(np.count_nonzero(learned)))
        stream = self.model_._stream
        assert isinstance(stream, MomentState)
        n_new = stream.n_seen - self._scorer.n_seen
        if has_drifted or n_new > _REFRESH * stream.count:
            self._has_drifted = self._has_drifted or has_drifted
            self._refresh_scorer()

    def _refresh_scorer(self) -> None:
        """Score rows by the components of all rows so far; choose their number after a drift."""
        number, fraction = self.n_components, None
        if self._has_drifted and number is not None and not isinstance(number, Integral):
            fraction = float(number)
        stream = self.model_._stream
        assert isinstance(stream, MomentState)
        with learning():
            self._scorer = stream.scorer(fraction)
        self.model_.set_params(n_components=self._scorer.n_components)

    def _count(self, errors: Floats, near: NDArray[np.bool_], flagged: NDArray[np.bool_]) -> None:
        """Update threshold and level with the errors of normal rows, and of some that are far."""
        rate, n_rows = self.false_alarm_rate, len(errors)
        if not n_rows:
            return
        allowance = self._far_allowance + _FAR_SHARE * rate * n_rows
        far = np.flatnonzero(~near)[: int(allowance)]
        self._far_allowance = min(allowance - len(far), _FAR_SHARE * rate * self._window)
        near[far] = True
        calibration = np.append(self.calibration_errors_, errors[near])[-self._window :]
        excess = np.count_nonzero(flagged & near) - rate * n_rows
        highest = max(1.0, rate * (len(calibration) + 1))
        correction = np.clip(
            self._correction * np.exp(_LEVEL_STEP * excess), 1 / _WINDOW_ALARMS, highest
        )
        self._set_calibration(calibration, 1.0 if np.isinf(self.offset_) else float(correction))

    def _errors_and_near(self, X: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return errors, and True for those that are not far above the limit.

        The error e is far above the limit L if e/(E − e) > 2.5 L/(E − L), where E is the error of a
        row that is orthogonal to all basis rows. For e ≪ E this is e > 2.5 L; with a Gaussian
        kernel, errors have the maximum E, and e > 2.5 L would hold for no row if L is large.
        """
        errors, highest = self._scorer.scores(X.astype(self._scorer.basis_rows.dtype, copy=False))
        limit = -self.offset_
        with np.errstate(all="ignore"):
            far = _FAR * limit / (1 + (_FAR - 1) * limit / highest)
        return errors, (errors <= limit) | (errors <= far)

    @property
    def _window(self) -> int:
        """Number of errors that determine the threshold of a stream."""
        return max(_MIN_WINDOW, int(np.ceil(_WINDOW_ALARMS / self.false_alarm_rate)))

    def _errors(self, X: Rows) -> Floats:
        """Return the mean errors; infinite for rows so far away that kernel values overflow."""
        if isinstance(self.model_, IncrementalKernelPCA):
            dtype = self._scorer.basis_rows.dtype
            strips = [X[part].astype(dtype, copy=False) for part in tile_slices(X.shape[0])]
            return np.concatenate([self._scorer.scores(strip)[0] for strip in strips])
        with np.errstate(over="ignore", invalid="ignore"):
            errors = self._residual.residuals(X).astype(np.float64)
        return np.where(np.isnan(errors), np.inf, errors)

    def _set_calibration(self, errors: Floats, correction: float = 1.0) -> None:
        """Set the limit to the k-th largest of n errors, with k = ⌊(n + 1)·rate/correction⌋."""
        self.calibration_errors_, self._correction = errors, correction
        # Rounded as the p-values, so that both agree.
        p_values = np.arange(1, len(errors) + 1) / (1 + len(errors)) * correction
        k = np.count_nonzero(p_values <= self.false_alarm_rate)
        self.offset_ = -float(np.partition(errors, -k)[-k]) if k else -np.inf

    def _check_loaded(self, make_row: Callable[[int], Rows | None]) -> None:
        super()._check_loaded(make_row)
        self.model_._check_loaded(make_row)
        if isinstance(self.model_, KernelPCA):
            number = len(self._residual.components)
            self._residual.check_shapes(number, self.n_features_in_)
        else:
            span = self._scorer.span
            check_shapes((span.rows, (len(span), self.n_features_in_)))
        check_shapes((self.calibration_errors_, (len(self.calibration_errors_),)))
        row = make_row(self.n_features_in_)
        if row is not None:
            self.predict(row)
            self.p_values(row)

    def _validated_rows(self, X: RowsLike) -> Rows:
        check_is_fitted(self)
        sparse = "csr" if isinstance(self.model_, KernelPCA) else False
        return validate_rows(self, X, accept_sparse=sparse)

    def _check_parameters(self) -> None:
        if is_named(self.kernel, "precomputed"):
            raise invalid_parameter(
                "kernel",
                self.kernel,
                "novelty needs k(x, x) of new rows, which a kernel matrix does not hold",
                "pass rows and a kernel",
            )
        check_parameters(self, _RULES)
        if not hasattr(self.cv, "split"):
            _N_FOLDS.check("cv", self.cv)
        elif self.calibration != "cv":
            raise invalid_parameter(
                "calibration", self.calibration, "has no effect beside a splitter",
                "leave it out, or pass an integer as cv",
            )  # fmt: skip

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _long_runs(flags: NDArray[np.bool_], length: int) -> NDArray[np.bool_]:
    """Return True for members of runs of at least ``length`` flags."""
    runs = [list(group) for _, group in groupby(flags)]
    return np.concatenate([np.full(len(run), run[0] and len(run) >= length) for run in runs])
