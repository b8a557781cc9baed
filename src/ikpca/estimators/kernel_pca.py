"""Kernel PCA with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ikpca.estimators.base import (
    ConversionMixin,
    InverseMixin,
    SaveMixin,
    check_preimage,
    expansion_of,
)
from ikpca.estimators.checkpoint import (
    Checkpoint,
    check_checkpoint,
    interruptible_fit,
    open_checkpoint,
    watch_rows,
)
from ikpca.estimators.decomposition import (
    Components,
    Problem,
    View,
    chosen_solver,
    decompose,
    fitted_attributes,
    identity,
    n_passes,
)
from ikpca.estimators.input_checks import check_overflow, finite_projections, named_memory_errors
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
    check_kernel_pca,
    chosen_kernel,
    is_precomputed,
    learns_ridge,
    needs_dense_rows,
    resolve_gamma,
    training_rows,
)
from ikpca.kernels import Floats
from ikpca.preimages import ridge_coefficients
from ikpca.solvers import Observer, Outcome, interruptible
from ikpca.subspace import Subspace


def fit_rows(model: Any, X: Any, start: Floats | None = None, view: View = identity) -> Floats:
    """Check the rows, settle what depends on them, and fit.

    Parameters
    ----------
    model : KernelPCA
        Its own parameters are checked already.
    X : array-like, CSR or memory map
    start, view
        As in :class:`Problem`.
    """
    X = training_rows(model, X)
    check_overflow(X)
    seed = int(check_random_state(model.random_state).randint(np.iinfo(np.int32).max))
    checkpoint, seed = open_checkpoint(model, X, seed, start)
    model.gamma_ = resolve_gamma(model.gamma, X, model.kernel, seed)
    kernel = chosen_kernel(model, X)
    check_preimage(model, kernel)
    problem = Problem(kernel, X, seed, start, view)
    if checkpoint is not None:
        problem = replace(problem, keeper=checkpoint)
    with interruptible_fit(checkpoint):
        return fit_components(model, model, problem)


def fit_components(model: Any, settings: Any, problem: Problem) -> Floats:
    """Run the solver that ``settings`` asks for; the model takes what it finds.

    Returns
    -------
    ndarray of shape (n_samples, n_components)
        Projections of the training rows.
    """
    passes = n_passes(settings, problem.n_samples)
    context = fit_context(model, passes)
    unchanged = watch_rows(problem.X)

    def attributes(components: Components) -> dict[str, Any]:
        return fitted_attributes(components, problem.kernel, problem.X, whiten=model.whiten)

    def watch(snapshot: Callable[[], Components]) -> Sequence[Observer[Any, Any]]:
        requested = requested_observers(
            settings,
            chosen_solver(settings, problem.n_samples),
            passes,
            problem.X.dtype,
            context,
            lambda: attributes(snapshot()),
        )
        return [*unchanged, *problem.observers, *requested]

    remedy = "pass max_memory, eigen_solver='krylov', or fewer rows or components"
    with interruptible(), named_memory_errors(remedy):
        components = decompose(settings, problem, watch)
    for observer in unchanged:
        # A direct solver has no passes after which to look.
        observer.see(None, None)
    if isinstance(problem.keeper, Checkpoint):
        problem.keeper.finish()
    set_fitted_attributes(model, attributes(components))
    projections = components.projections.T * model._scale
    if learns_ridge(model) and problem.kernel is not None:
        model.X_transformed_fit_ = projections
        model.dual_coef_ = ridge_coefficients(problem.kernel, projections, problem.X, model.alpha)
    if context is not None:
        context.call_on_fit_task_end(estimator=model, reconstruction_attributes=dict)
    _warn(model, components)
    return projections


def set_fitted_attributes(model: Any, attributes: dict[str, Any]) -> None:
    """Set the attributes of a fit; those of an earlier one that it lacks go."""
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

    A drop-in for :class:`sklearn.decomposition.KernelPCA`: what means the same has the same name
    and default. The Hebbian solvers (Kim 2003; Günter 2006) never store the l×l kernel matrix.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components; a fraction in (0, 1) asks for that share of the variance; None keeps
        all with a non-zero eigenvalue. The Hebbian solvers need a number; krylov takes a number
        or a share, for which it doubles the number until the share is held.
    kernel : str, callable or kernel object, default="linear"
        "linear", "poly", "rbf", "sigmoid", "cosine", "laplacian" or "precomputed". A callable takes
        one pair of rows; for one that takes two blocks of rows see :func:`ikpca.vectorised`.
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
        Ridge of ``fit_inverse_transform``.
    fit_inverse_transform : bool, default=False
        Learn ``inverse_transform`` by kernel ridge regression, as scikit-learn does.
    preimage : str or pre-image object, default="auto"
        How ``inverse_transform`` finds rows. "fixed-point": kernels of a distance. "gradient":
        kernels with a gradient. "mds": linear, poly, rbf, from distances to neighbours. "ridge":
        any kernel, learned in the fit with ``alpha``. "neighbours": any kernel, the mean of the
        nearest training rows. "auto": ridge with ``fit_inverse_transform=True``, else the first
        of fixed-point, gradient and neighbours that the kernel has. An object from
        :mod:`ikpca.preimages` has settings of its own.
    eigen_solver : str, default="auto"
        "dense": eigendecomposition of the whole matrix. "krylov" (also under scikit-learn's names
        "arpack" and "randomized"): landmarks, then block Krylov, on tiles. "kha", "kha/t",
        "kha/et", "kha-smd": the Hebbian family. "auto": dense up to 1,200 rows and 30 more per
        component, where it was measured to be faster, then krylov.
    tol : float, default=0
        Stop when ‖K'v − λv‖/λ₁ is no larger for any component; 0 is machine precision. With a
        loose one, krylov computes kernel values in single precision where a sample of them shows
        that no more than a twentieth of the tolerance is lost by it.
    max_iter : int, default=None
        Passes over the kernel matrix; None: 50 for the Hebbian solvers, 100 for krylov.
    iterated_power : int or "auto", default="auto"
        Accepted for compatibility; no solver here uses it.
    remove_zero_eig : bool, default=False
        Drop components without variance.
    random_state : int, RandomState or None, default=None
        Of the start and the order of patterns.
    copy_X : bool, default=True
        Whether ``X_fit_`` is a copy. X is never written to, either way.
    n_jobs : int, default=None
        Threads; None takes as many as BLAS would. The result does not depend on it.
    gain : "auto", float or gain object, default="auto"
        "auto" needs no tuning. A number is η0 of the papers. An object from :mod:`ikpca.gains`
        replaces the gain of the solver altogether.
    meta_gain : "auto" or float, default="auto"
        µ of KHA-SMD.
    meta_decay : float, default=0.99
        ξ of KHA-SMD.
    log_gain_init : float, default=0.0
        ρ0 of KHA-SMD; the paper has 1.
    clock : {"pattern", "pass"}, default="pattern"
        Whether 1/t gains decay at every pattern, or once per pass as in Günter 2006.
    init : {"auto", "landmarks", "pivoted", "random", "sparse"} or ndarray, default="auto"
        Where A starts. "auto": landmarks with automatic gains, random otherwise. "landmarks":
        rows drawn uniformly; "pivoted": by randomly pivoted Cholesky, for data with a few unlike
        rows; krylov takes either. An array of shape (n_components, n_samples) is the way to the
        papers' own start.
    rayleigh_ritz : bool, default=True
        End every pass with a Rayleigh–Ritz step. The papers have none.
    block_size : int or "auto", default="auto"
        Patterns per block; changes the speed, not the result.
    change_tol : float, default=None
        The papers' criterion: stop when a pass moved the components by a squared distance of no
        more than this.
    max_memory : int, str or None, default=None
        Budget such as "500MB" or "2GB" for all that the fit holds beside X; None: a quarter of
        the machine's memory. Tiles follow from an explicit budget; K is kept as far as it fits.
    warm_start : bool, default=False
        Start from the components of the earlier fit, also for other rows or more components.
    whiten : bool, default=False
        Scale projections to unit variance.
    checkpoint : str or path, default=None
        File that says, after every so many passes, where an iterative fit is; the one before is
        kept beside it. The dense solver has no passes, and needs none.
    checkpoint_every : int or str, default=1
        Passes, or a time such as "30s", "5min" or "1h".
    resume : bool, default=False
        Go on from the checkpoint, if there is one, to the same bits that a fit without interruption
        gives. One of other rows or parameters is refused; only ``max_iter`` may differ.
    verbose : int, default=0
        1 writes a line per pass to standard error.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Of the centred kernel matrix, descending.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Of the centred kernel matrix; ``coefficients_.T * sqrt(eigenvalues_)``.
    coefficients_ : ndarray of shape (n_components, n_samples)
        A of the papers: components are W = AΦ'.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        λ over the trace of K', right without knowing the other eigenvalues.
    history_ : list of PassRecord
        One per pass: seconds, eigenvalues, residuals, gains, entries evaluated, change, note,
        recovery.
    certificate_ : Certificate
        Residuals, orthonormality, bounds on eigenvalues, an estimate of the excess error.
    n_iter_ : int
        Passes done.
    outcome_ : Outcome
        How the fit ended; its value is a sentence.
    X_fit_ : array of shape (n_samples, n_features)
        The training rows.
    gamma_ : float
    dual_coef_, X_transformed_fit_ : ndarray
        Of the ridge regression, with ``fit_inverse_transform=True`` or ``preimage="ridge"``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has string column names.

    See Also
    --------
    sklearn.decomposition.KernelPCA : Stores the kernel matrix.
    HebbianPCA : The same rule on explicit features.

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
        """Find the components.

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
        """Find the components and project the training rows on them.

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
        """Project rows on the components, a strip of rows at a time.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)
            With ``kernel="precomputed"``: their kernel values with the training rows.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        X = self._validated_rows(X)
        return finite_projections(lambda: self._projector.project(X) * self._scale)

    @with_callbacks
    def refine(self, X: Any = None) -> Self:
        """Take the fitted components to machine precision, by block Krylov from where they are.

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
            # Rows without variance have left no component to go on from.
            return self
        kernel = self._projector.kernel
        start = self._projector.project(X)
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
        start = self._earlier_projections(X) if self.warm_start else None
        return fit_rows(self, X, start)

    def _earlier_projections(self, X: Any) -> Floats | None:
        """Where the model of an earlier fit sees the rows: the start of a warm one."""
        if not hasattr(self, "_projector") or self._projector.kernel is None:
            return None
        return self._projector.project(self._validated_rows(X))

    @property
    def _subspace(self) -> Subspace:
        return Subspace(expansion_of(self._projector, self._projector.kernel))

    @property
    def _basis(self) -> Any:
        """The training rows, of any kind; not all kinds have a subspace to work with."""
        return self.X_fit_

    @property
    def _mean_row(self) -> Floats:
        return self.X_fit_.mean(axis=0)

    def _residuals(self, X: Any) -> Floats:
        return self._projector.residuals(X, self._projector.kernel)

    def _share(self, X: Any) -> float:
        return self._projector.explained_share(X, self._projector.kernel)

    def _validated_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not needs_dense_rows(self)
        tags.input_tags.pairwise = is_precomputed(self)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)
