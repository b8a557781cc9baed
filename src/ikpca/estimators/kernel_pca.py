"""Kernel PCA with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from ikpca.estimators.base import (
    ConversionMixin,
    InverseMixin,
    SaveMixin,
    check_preimage,
)
from ikpca.estimators.checkpoint import (
    Checkpoint,
    check_checkpoint,
    data_change_observers,
    interruptible_fit,
    open_checkpoint,
)
from ikpca.estimators.decomposition import (
    Components,
    GramTransform,
    Problem,
    decompose,
    identity,
    n_passes,
    resolve_solver,
)
from ikpca.estimators.input_checks import check_overflow, explain_memory_errors, finite_projections
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
    check_kernel_pca,
    draw_seed,
    is_precomputed,
    learns_ridge,
    needs_dense_rows,
    resolve_gamma,
    resolve_kernel,
    validate_training_rows,
)
from ikpca.kernels import Floats, Kernel, Rows
from ikpca.preimages import ridge_coefficients
from ikpca.solvers import Observer, Outcome, interruptible
from ikpca.subspace import Subspace


class KernelPCA(
    CallbackSupport,
    InverseMixin,
    ConversionMixin,
    SaveMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    r"""Kernel principal component analysis, exact or iterative.

    A drop-in replacement for :class:`sklearn.decomposition.KernelPCA` with the same names and
    defaults. The Hebbian solvers (Kim 2003; Günter 2006) never store the l×l kernel matrix.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components. A fraction in (0, 1) selects the number that explains this fraction
        of the variance; None keeps all components with a non-zero eigenvalue. The Hebbian solvers
        need an integer; krylov needs an integer or a fraction, for which it doubles the number of
        components until they explain enough.
    kernel : str, callable or kernel object, default="linear"
        "linear", "poly", "rbf", "sigmoid", "cosine", "laplacian" or "precomputed". A callable takes
        one pair of rows; for one that takes two blocks of rows see :func:`ikpca.vectorized`.
    gamma : float, "scale", "median" or None, default=None
        Coefficient of rbf, poly, sigmoid and laplacian. None: 1/n_features. "scale":
        1/(n_features · X.var()). "median": σ is the median distance between rows.
    degree : float, default=3
        Degree of poly.
    coef0 : float, default=1
        Independent term of poly and sigmoid.
    kernel_params : dict, default=None
        Keyword arguments of a callable kernel.
    alpha : float, default=1.0
        Ridge penalty of ``fit_inverse_transform``.
    fit_inverse_transform : bool, default=False
        Learn ``inverse_transform`` by kernel ridge regression, as scikit-learn does.
    preimage : str or pre-image object, default="auto"
        Method of ``inverse_transform``. "fixed-point": for kernels of a distance. "gradient": for
        kernels with a gradient. "mds": for linear, poly and rbf, from distances to neighbours.
        "ridge": for any kernel, learned in the fit with ``alpha``. "neighbours": for any kernel,
        the mean of the nearest training rows. "auto": ridge with ``fit_inverse_transform=True``,
        otherwise the first of fixed-point, gradient and neighbours that the kernel supports. Pass
        an object from :mod:`ikpca.preimages` for other settings.
    eigen_solver : str, default="auto"
        "dense": eigendecomposition of the full kernel matrix. "krylov" (also "arpack" and
        "randomized", scikit-learn's names): landmarks, then block Krylov, on tiles. "kha",
        "kha/t", "kha/et", "kha-smd": Hebbian solvers. "auto": dense up to 1,200 rows plus 30 per
        component, where it is faster in benchmarks, then krylov.
    tol : float, default=0
        Stop when ‖K'v − λv‖/λ₁ ≤ ``tol`` for all components; 0 means machine precision. With a
        loose tolerance, krylov computes kernel values in single precision if a sample shows that
        this costs at most a twentieth of the tolerance.
    max_iter : int, default=None
        Maximum number of passes over the kernel matrix; None: 50 for the Hebbian solvers, 100 for
        krylov.
    iterated_power : int or "auto", default="auto"
        Accepted for compatibility with scikit-learn; not used.
    remove_zero_eig : bool, default=False
        If True, remove components with zero eigenvalues.
    random_state : int, RandomState or None, default=None
        Seed of the initialization and of the order of the patterns.
    copy_X : bool, default=True
        If True, ``X_fit_`` is a copy of X. X is never modified.
    n_jobs : int, default=None
        Number of threads; None uses as many as BLAS. The result does not depend on it.
    gain : "auto", float or gain object, default="auto"
        Gain of the Hebbian solvers. "auto" needs no tuning. A number is η0 of the papers. An
        object from :mod:`ikpca.gains` replaces the gain of the solver.
    meta_gain : "auto" or float, default="auto"
        Meta-gain µ of KHA-SMD.
    meta_decay : float, default=0.99
        Decay ξ of KHA-SMD.
    log_gain_init : float, default=0.0
        Initial log-gain ρ0 of KHA-SMD; 1 in the paper.
    clock : {"pattern", "pass"}, default="pattern"
        1/t gains decay at every pattern, or once per pass as in Günter 2006.
    init : {"auto", "landmarks", "pivoted", "random", "sparse"} or ndarray, default="auto"
        Initialization of A. "auto": landmarks with automatic gains, random otherwise. "landmarks":
        rows drawn uniformly. "pivoted": rows drawn by randomly pivoted Cholesky, for data with a
        few outlying rows. krylov supports both. An array of shape (n_components, n_samples) sets A,
        for example to the initialization of the papers.
    rayleigh_ritz : bool, default=True
        If True, end every pass with a Rayleigh–Ritz step, unlike the papers.
    block_size : int or "auto", default="auto"
        Patterns per block; affects the speed, not the result.
    change_tol : float, default=None
        Stopping criterion of the papers: stop when a pass changes the components by at most this
        squared distance.
    max_memory : int, str or None, default=None
        Memory budget of the fit, excluding X, such as "500MB" or "2GB"; None: a quarter of the
        machine's memory. An explicit budget determines the size of the tiles; K is stored as far
        as it fits.
    warm_start : bool, default=False
        If True, start from the components of the previous fit, also for other rows or more
        components.
    whiten : bool, default=False
        If True, scale projections to unit variance.
    checkpoint : str or path, default=None
        Checkpoint file of an iterative fit; the previous checkpoint is kept next to it. The dense
        solver has no passes and writes no checkpoint.
    checkpoint_every : int or str, default=1
        Interval in passes, or a time such as "30s", "5min" or "1h".
    resume : bool, default=False
        If True, resume from the checkpoint if it exists; the result is bit-identical to that of an
        uninterrupted fit. A checkpoint of other rows or parameters raises an error; only
        ``max_iter`` may differ.
    verbose : int, default=0
        If positive, write a line per pass to standard error.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the centred kernel matrix, descending.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Eigenvectors of the centred kernel matrix; ``coefficients_.T * sqrt(eigenvalues_)``.
    coefficients_ : ndarray of shape (n_components, n_samples)
        A of the papers: components are W = AΦ'.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Eigenvalues divided by the trace of K', which includes the components not computed.
    history_ : list of PassRecord
        One record per pass: seconds, eigenvalues, residuals, gains, entries evaluated, change,
        note, recovery.
    certificate_ : Certificate
        Residuals, orthonormality, bounds on eigenvalues, an estimate of the excess error.
    n_iter_ : int
        Number of passes.
    outcome_ : Outcome
        Reason why the fit ended; its value is a sentence.
    X_fit_ : array of shape (n_samples, n_features)
        Training rows.
    gamma_ : float
        Value of ``gamma`` used by the kernel.
    dual_coef_, X_transformed_fit_ : ndarray
        Ridge regression, with ``fit_inverse_transform=True`` or ``preimage="ridge"``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Defined only if X has string column names.

    See Also
    --------
    sklearn.decomposition.KernelPCA : Stores the kernel matrix.
    HebbianPCA : The same learning rule on explicit features.

    References
    ----------
    - K. I. Kim, M. O. Franz, B. Schölkopf, Kernel Hebbian Algorithm for Iterative Kernel Principal
      Component Analysis, MPI technical report 109, 2003.
    - \S. Günter, N. N. Schraudolph, S. V. N. Vishwanathan, Fast Iterative Kernel PCA, NIPS 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ikpca import KernelPCA
    >>> X = load_digits().data / 16
    >>> model = KernelPCA(8, kernel="rbf", gamma=0.02, eigen_solver="kha/et", random_state=0)
    >>> model.fit_transform(X).shape
    (1797, 8)
    >>> len(model.history_), model.outcome_.name
    (50, 'PASS_LIMIT')
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        preimage: Any = "auto",
        eigen_solver: str = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: Any = "auto",
        remove_zero_eig: bool = False,
        random_state: Any = None,
        copy_X: bool = True,
        n_jobs: int | None = None,
        gain: Any = "auto",
        meta_gain: Any = "auto",
        meta_decay: float = 0.99,
        log_gain_init: float = 0.0,
        clock: Any = "pattern",
        init: Any = "auto",
        rayleigh_ritz: bool = True,
        block_size: Any = "auto",
        change_tol: float | None = None,
        max_memory: Any = None,
        warm_start: bool = False,
        whiten: bool = False,
        checkpoint: Any = None,
        checkpoint_every: Any = 1,
        resume: bool = False,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.preimage = preimage
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.copy_X = copy_X
        self.n_jobs = n_jobs
        self.gain = gain
        self.meta_gain = meta_gain
        self.meta_decay = meta_decay
        self.log_gain_init = log_gain_init
        self.clock = clock
        self.init = init
        self.rayleigh_ritz = rayleigh_ritz
        self.block_size = block_size
        self.change_tol = change_tol
        self.max_memory = max_memory
        self.warm_start = warm_start
        self.whiten = whiten
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.resume = resume
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the components.

        Parameters
        ----------
        X : array-like or CSR of shape (n_samples, n_features)
            Training rows, or the kernel matrix with ``kernel="precomputed"``.
        y : Ignored

        Returns
        -------
        self
        """
        self._fit(X)
        return self

    @with_callbacks
    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Compute the components and project the training rows on them.

        Parameters
        ----------
        X : array-like or CSR of shape (n_samples, n_features)
            As for :meth:`fit`.
        y : Ignored

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self._fit(X)

    def transform(self, X: Any) -> Floats:
        """Project rows on the components, one strip of rows at a time.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)
            With ``kernel="precomputed"``: kernel values with the training rows.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        X = self._validated_rows(X)
        return finite_projections(lambda: self._subspace.project(X) * self._scale)

    @with_callbacks
    def refine(self, X: Any = None) -> Self:
        """Improve the fitted components to machine precision by block Krylov iterations.

        Parameters
        ----------
        X : array-like or CSR of shape (n_samples, n_features), optional
            Training rows; those of the fit by default.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        X = self.X_fit_ if X is None else self._validated_rows(X)
        if not len(self.eigenvalues_):
            # Rows without variance have no components to start from.
            return self
        kernel = self._subspace.kernel
        start = self._subspace.project(X)
        exact = clone(self).set_params(
            n_components=len(self.eigenvalues_),
            eigen_solver="krylov",
            tol=0,
            max_iter=None,
            checkpoint=None,
        )
        fit_components(self, exact, Problem(kernel, X, 0, start))
        return self

    def _fit(self, X: Any) -> Floats:
        check_kernel_pca(self)
        check_checkpoint(self)
        start = self._previous_projections(X) if self.warm_start else None
        return fit_rows(self, X, start)

    def _previous_projections(self, X: Any) -> Floats | None:
        """Return the projections of the rows by an earlier fit, to start from."""
        if not hasattr(self, "_subspace") or self._subspace.kernel is None:
            return None
        return self._subspace.project(self._validated_rows(X))

    @property
    def _mean_row(self) -> Floats:
        return self.X_fit_.mean(axis=0)

    def _validated_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=FLOAT_DTYPES, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not needs_dense_rows(self)
        tags.input_tags.pairwise = is_precomputed(self)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)


def fit_rows(
    model: Any, X: Any, start: Floats | None = None, gram_transform: GramTransform = identity
) -> Floats:
    """Validate the rows, resolve the parameters that depend on them, and fit.

    Parameters
    ----------
    model : KernelPCA
        With validated parameters.
    X : array-like, CSR or memory map
    start, gram_transform
        As in :class:`Problem`.
    """
    X = validate_training_rows(model, X)
    check_overflow(X)
    seed = draw_seed(model.random_state)
    checkpoint, seed = open_checkpoint(model, X, seed, start)
    model.gamma_ = resolve_gamma(model.gamma, X, model.kernel, seed)
    kernel = resolve_kernel(model, X)
    check_preimage(model, kernel)
    problem = Problem(kernel, X, seed, start, gram_transform)
    if checkpoint is not None:
        problem = replace(problem, checkpoint=checkpoint)
    with interruptible_fit(checkpoint):
        return fit_components(model, model, problem)


def fit_components(model: Any, settings: Any, problem: Problem) -> Floats:
    """Run the solver of ``settings`` and set the fitted attributes of the model.

    Returns
    -------
    ndarray of shape (n_samples, n_components)
        Projections of the training rows.
    """
    passes = n_passes(settings, problem.n_samples)
    context = fit_context(model, passes)
    change_observers = data_change_observers(problem.X)

    def attributes(components: Components) -> dict[str, Any]:
        return fitted_attributes(components, problem.kernel, problem.X, whiten=model.whiten)

    def make_observers(snapshot: Callable[[], Components]) -> Sequence[Observer[Any, Any]]:
        requested = requested_observers(
            settings,
            resolve_solver(settings, problem.n_samples),
            passes,
            problem.X.dtype,
            context,
            lambda: attributes(snapshot()),
        )
        return [*change_observers, *problem.observers, *requested]

    remedy = "pass max_memory, eigen_solver='krylov', or fewer rows or components"
    with interruptible(), explain_memory_errors(remedy):
        components = decompose(settings, problem, make_observers)
    for observer in change_observers:
        # The dense solver has no passes that would call the observers.
        observer.on_step_end(None, None)
    if isinstance(problem.checkpoint, Checkpoint):
        problem.checkpoint.finish()
    set_fitted_attributes(model, attributes(components))
    projections = components.projections.T * model._scale
    if learns_ridge(model) and problem.kernel is not None:
        model.X_transformed_fit_ = projections
        model.dual_coef_ = ridge_coefficients(problem.kernel, projections, problem.X, model.alpha)
    if context is not None:
        context.call_on_fit_task_end(estimator=model, reconstruction_attributes=dict)
    _warn(model, components)
    return projections


def fitted_attributes(
    components: Components, kernel: Kernel | None, X_fit: Rows, *, whiten: bool
) -> dict[str, Any]:
    """Return the fitted attributes of ``KernelPCA`` by name."""
    eigenvalues = components.eigenvalues
    subspace = Subspace.from_centered(
        kernel,
        X_fit,
        components.coefficients,
        components.centering,
        components.projections,
    )
    return {
        "X_fit_": X_fit,
        "coefficients_": components.coefficients,
        "eigenvalues_": eigenvalues,
        "eigenvectors_": components.eigenvectors,
        "explained_variance_ratio_": eigenvalues / (components.trace or 1.0),
        "certificate_": components.certificate,
        "history_": components.records,
        "n_iter_": len(components.records),
        "outcome_": components.outcome,
        "_subspace": subspace,
        "_scale": _whitening(components) if whiten else np.ones_like(eigenvalues),
    }


def _whitening(components: Components) -> Floats:
    """Return 1/standard deviation of each projection; zero for a component without variance."""
    freedom = components.projections.shape[1] - 1
    spread = np.linalg.norm(components.projections, axis=1) / np.sqrt(freedom)
    spread = np.where(components.eigenvalues > 0, spread, 0).astype(components.projections.dtype)
    return np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)


def set_fitted_attributes(model: Any, attributes: dict[str, Any]) -> None:
    """Set fitted attributes and remove optional ones of an earlier fit."""
    for stale in ("dual_coef_", "X_transformed_fit_"):
        model.__dict__.pop(stale, None)
    for name, value in attributes.items():
        setattr(model, name, value)


def _warn(model: Any, components: Components) -> None:
    if components.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    warn_of_divergence(model.gain, components.records)
    warn_of_recovery([record.recovery for record in components.records])
    warn_of_rank(model.n_components, len(components.eigenvalues), components.rank)
    warn_of_tolerance(model, components.outcome, components.records)
