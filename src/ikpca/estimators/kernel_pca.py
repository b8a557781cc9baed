"""Kernel PCA with scikit-learn's interface."""

from __future__ import annotations

import sys
from numbers import Integral, Real
from typing import Literal, Self

import numpy as np
from scipy import sparse
from sklearn.decomposition import KernelPCA as SklearnKernelPCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import KernelCenterer
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import (
    FLAG,
    DivergenceWarning,
    InvalidInput,
    Number,
    ParameterRules,
    check_parameters,
    invalid_parameter,
)
from ikpca.estimators.base import FitInterrupted, KernelTransformer, atomic, warn, warn_of_rank
from ikpca.estimators.checkpoint import Checkpoint, CheckpointFile
from ikpca.estimators.validation import (
    GammaLike,
    KernelLike,
    PathLike,
    PreimageLike,
    RandomStateLike,
    RowsLike,
    centered_kernel,
    check_overflow,
    draw_seed,
    explain_memory_errors,
    is_lazy,
    is_named,
    n_threads,
    resolve_gamma,
    validate_rows,
)
from ikpca.gram import read_budget
from ikpca.gram.centering import Centering
from ikpca.gram.lazy_rows import LazyRows
from ikpca.kernels import Cosine, Floats, Kernel, Linear, Rows
from ikpca.preimages import predict_rows, ridge_coefficients
from ikpca.preimages.direct import ridge_bytes
from ikpca.solvers import (
    KHA,
    Dense,
    EigenSolution,
    Nystrom,
    Outcome,
    PassRecord,
    Problem,
    RunSettings,
    Solver,
)
from ikpca.solvers.adaptive import check_solver, choose_solver, make_solver
from ikpca.solvers.base import plain_interrupts
from ikpca.subspace import Subspace

_MEMORY_REMEDY = "pass max_memory, eigen_solver='krylov', or fewer rows or components"
_SKLEARN_PARAMETERS = (
    "n_components", "kernel", "gamma", "degree", "coef0", "kernel_params", "alpha",
    "fit_inverse_transform", "tol", "max_iter", "iterated_power", "remove_zero_eig",
    "random_state", "copy_X", "n_jobs",
)  # fmt: skip
_SKLEARN_ATTRIBUTES = ("gamma_", "n_features_in_", "feature_names_in_", "dual_coef_")
_SKLEARN_KERNELS = ("linear", "poly", "rbf", "sigmoid", "cosine", "precomputed")
_N_COMPONENTS = Number(
    "must be a positive integer, a fraction in (0, 1) or None",
    "pass an integer such as 10",
    low=1,
    integer=True,
    allowed=(None,),
)
_RULES: ParameterRules = {
    "alpha": Number("must not be negative", "pass 1.0", low=0),
    "tol": Number("must not be negative", "pass 0 for machine precision", low=0),
    "max_iter": Number("must be a positive integer or None", "pass None",
                       low=1, integer=True, allowed=(None,)),
    "iterated_power": Number("must be 'auto' or an integer", "pass 'auto'",
                             low=0, integer=True, allowed=("auto",)),
    "fit_inverse_transform": FLAG,
    "remove_zero_eig": FLAG,
    "copy_X": FLAG,
    "whiten": FLAG,
    "warm_start": FLAG,
}  # fmt: skip


class KernelPCA(KernelTransformer):
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
        one pair of rows; for one that takes two blocks of rows see :func:`ikpca.vectorized`. An
        object from :mod:`ikpca.kernels` has its own parameters: ``gamma``, ``degree`` and ``coef0``
        must be left out.
    gamma : float, "scale", "median" or None, default=None
        Coefficient of rbf, poly, sigmoid and laplacian, ignored by other names and by callables.
        None: 1/n_features. "scale": 1/(n_features · X.var()). "median": σ is the median distance
        between rows.
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
        kernels with a gradient. "mds": for linear, poly and rbf, from distances to neighbors.
        "ridge": for any kernel, learned in the fit with ``alpha``. "neighbors": for any kernel,
        the mean of the nearest training rows. "auto": ridge with ``fit_inverse_transform=True``,
        otherwise the first of fixed-point, gradient and neighbors that the kernel supports. Pass
        an object from :mod:`ikpca.preimages` for other settings.
    eigen_solver : str or solver object, default="auto"
        "dense": eigendecomposition of the full kernel matrix. "krylov" (also "arpack" and
        "randomized", scikit-learn's names): landmarks, then block Krylov, on tiles. "nystrom": the
        best components in the span of landmarks, the only rows that the model keeps. "kha",
        "kha/t", "kha/et", "kha-smd": Hebbian solvers. "auto": dense up to 2,200 rows plus 10 per
        component, where it is faster in benchmarks, then krylov; with ``tol > 0``, dense up to
        1,500 rows, then landmarks where they reach it for less than a pass over the kernel matrix.
        Pass an object from :mod:`ikpca.solvers` for other settings, such as
        ``KHA("kha/et", gain=0.05)``.
    tol : float, default=0
        Stop when ‖K'v − λv‖/λ₁ ≤ ``tol`` for all components; 0 means machine precision. With a
        loose tolerance, krylov computes kernel values in single precision if this costs at most a
        twentieth of the tolerance, estimated on a sample and the rows far from the others.
    max_iter : int, default=None
        Maximum number of passes over the kernel matrix; None: 50 for the Hebbian solvers, 100 for
        krylov.
    iterated_power : int or "auto", default="auto"
        Accepted for compatibility with scikit-learn; not used.
    remove_zero_eig : bool, default=False
        If True, remove components with zero eigenvalues.
    random_state : int, RandomState or None, default=None
        Seed of the initialization and of the order of the samples.
    copy_X : bool, default=True
        If True, ``X_fit_`` is a copy of X. X is never modified.
    n_jobs : int, default=None
        Number of threads; None uses as many as BLAS. The result does not depend on it.
    max_memory : int, str or None, default=None
        Memory budget of the fit, excluding X and loaded libraries, such as "500MB" or "2GB"; None:
        a quarter of the machine's memory. An explicit budget determines the size of the tiles; K
        is stored as far as it fits. A budget that cannot be kept raises an error before the fit.
    warm_start : bool, default=False
        If True, start from the components of the previous fit, also for other rows or more
        components.
    whiten : bool, default=False
        If True, scale projections to unit variance.
    checkpoint : path, Checkpoint or None, default=None
        File in which an iterative fit stores its progress, and from which it resumes; see
        :class:`Checkpoint`. The dense solver has no passes and writes no checkpoint.
    verbose : int, default=0
        If positive, write a line per pass to standard error.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the centered kernel matrix, descending.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Eigenvectors of the centered kernel matrix; ``coefficients_.T * sqrt(eigenvalues_)``. Not
        defined if the model keeps only landmarks, like ``coefficients_`` and ``X_fit_``.
    coefficients_ : ndarray of shape (n_components, n_samples)
        A of the papers, centered so that its rows sum to zero: components are W = AΦ'.
    landmarks_ : array of shape (n_landmarks, n_features)
        Rows that the model keeps in place of ``X_fit_`` if components are in their span.
    landmark_coefficients_ : ndarray of shape (n_components, n_landmarks)
        A of components W = AΦ that are combinations of the images of landmarks, not centered.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Eigenvalues divided by the trace of K', which includes the components not computed.
    history_ : list of PassRecord
        One record per pass: seconds, eigenvalues, residuals, gains, entries evaluated, change,
        note.
    certificate_ : Certificate
        Residuals and bounds on them, orthonormality, bounds on eigenvalues, an estimate of the
        excess error.
    n_iter_ : int
        Number of passes.
    outcome_ : Outcome
        Reason why the fit ended; its value is a sentence.
    X_fit_ : array of shape (n_samples, n_features)
        Training rows; in double precision if single precision is not sufficient for their kernel
        values, like ``landmarks_``.
    n_samples_seen_ : int
        Number of training rows.
    gamma_ : float
        Value of ``gamma`` used by the kernel, also by a kernel object; for kernels without it, as
        in scikit-learn, the value that it would have.
    dual_coef_, X_transformed_fit_ : ndarray
        Ridge regression, with ``fit_inverse_transform=True`` or ``preimage="ridge"``; the fit
        needs the memory of a kernel matrix of the projections. ``landmark_dual_coef_`` if the model
        keeps only landmarks.
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
        kernel: KernelLike = "linear",
        gamma: GammaLike = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        preimage: PreimageLike = "auto",
        eigen_solver: str | Solver = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: int | Literal["auto"] = "auto",
        remove_zero_eig: bool = False,
        random_state: RandomStateLike = None,
        copy_X: bool = True,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
        warm_start: bool = False,
        whiten: bool = False,
        checkpoint: Checkpoint | PathLike | None = None,
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
        self.max_memory = max_memory
        self.warm_start = warm_start
        self.whiten = whiten
        self.checkpoint = checkpoint
        self.verbose = verbose

    #: True if the components are combinations of the images of landmarks only.
    _on_landmarks = False

    def _subspace_for(self, name: str, *, landmarks: bool = False) -> Subspace:
        """Return the subspace for an attribute of models with all rows, or with landmarks only."""
        check_is_fitted(self)
        if self._on_landmarks and not landmarks:
            raise AttributeError(
                f"{name} needs all training rows, and the model keeps only landmarks: use "
                "transform(X), landmarks_ and landmark_coefficients_, or call refine(X) first."
            )
        if landmarks and not self._on_landmarks:
            raise AttributeError(
                f"{name} belongs to models that keep only landmarks: use X_fit_ and coefficients_."
            )
        return self._subspace

    @property
    def X_fit_(self) -> Rows:
        """Training rows."""
        return self._subspace_for("X_fit_").basis

    @property
    def coefficients_(self) -> Floats:
        """A, stored only in the subspace."""
        return self._subspace_for("coefficients_").components

    @property
    def eigenvectors_(self) -> Floats:
        """Columns A_i√λ_i, and those of eigenvalues that are zero, which A does not determine."""
        A = self._subspace_for("eigenvectors_").components
        vectors = (A * np.sqrt(self.eigenvalues_)[:, None]).T
        vectors[:, self.eigenvalues_ == 0] = self._null_vectors
        return vectors

    @property
    def X_transformed_fit_(self) -> Floats:
        """Projections of the training rows, for the ridge regression."""
        subspace = self._subspace_for("X_transformed_fit_")
        if not hasattr(self, "dual_coef_"):
            raise AttributeError("X_transformed_fit_ needs fit_inverse_transform=True.")
        return subspace.projections.T * self._scale

    @property
    def landmarks_(self) -> Rows:
        """Landmarks among the training rows."""
        return self._subspace_for("landmarks_", landmarks=True).basis

    @property
    def landmark_coefficients_(self) -> Floats:
        """Coefficients of the images of the landmarks."""
        return self._subspace_for("landmark_coefficients_", landmarks=True).components

    def fit(self, X: RowsLike, y: object = None) -> Self:
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

    def fit_transform(self, X: RowsLike, y: object = None) -> Floats:
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
        solution, rows = self._fit(X)
        landmarks = solution.landmarks
        projections = solution.projections.T if landmarks is None else landmarks.row_projections
        scaled = self._project(rows) if projections is None else projections * self._scale
        return scaled.astype(rows.dtype, copy=False)

    @atomic
    def _fit(self, X: RowsLike) -> tuple[EigenSolution, Rows]:
        """Validate, set up the problem, solve and store; return the solution and valid rows."""
        self._check_parameters()
        start = None
        if self.warm_start and hasattr(self, "_subspace") and self._subspace.kernel is not None:
            start = self._start_from(self._validated_rows(X))
        rows = self._validate_training_rows(X)
        solver = choose_solver(self.eigen_solver, self.n_components, rows.shape[0], self.tol)
        checkpoint = self._open_checkpoint(solver, rows, start)
        # Resuming keeps the stored seed.
        seed = draw_seed(self.random_state) if checkpoint is None else checkpoint.seed
        self.gamma_ = resolve_gamma(self.gamma, rows, self.kernel, seed)
        problem = self._problem(self._kernel_for(rows), rows, seed, start)
        solution = self._solve(
            solver, problem, self.n_components, self.tol, self.max_iter, checkpoint
        )
        self._store(solver, solution, problem)
        return solution, rows

    @atomic
    def refine(self, X: RowsLike | None = None) -> Self:
        """Improve the fitted components to machine precision by block Krylov iterations.

        Parameters
        ----------
        X : array-like or CSR of shape (n_samples, n_features), optional
            Training rows; those of the fit by default. A model that keeps only landmarks needs
            them.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if X is None and self._on_landmarks:
            raise InvalidInput(
                "X=None: the model keeps only landmarks of its training rows; pass all rows to "
                "refine."
            )
        rows = self.X_fit_ if X is None else self._validated_rows(X)
        if self._needs_dense_rows and isinstance(rows, LazyRows):
            rows = rows[:]
        number = len(self.eigenvalues_)
        # Rows without variance have no components to start from.
        if number:
            problem = self._problem(self._subspace.kernel, rows, 0, self._start_from(rows))
            solver = choose_solver("krylov", number, problem.n_samples)
            self._store(solver, self._solve(solver, problem, number, tol=0), problem)
        return self

    def _check_parameters(self) -> None:
        if not (isinstance(self.n_components, Real) and 0 < self.n_components < 1):
            _N_COMPONENTS.check("n_components", self.n_components)
        check_solver(self.eigen_solver, self.n_components)
        solver = make_solver(self.eigen_solver)
        if isinstance(solver, Dense | Nystrom):
            self._check_unused_by(solver.name)
        self._check_kernel_parameters()
        self._check_preimage()
        check_parameters(self, _RULES)
        read_budget(self.max_memory)
        self._check_runtime_parameters()
        if self.checkpoint is not None:
            Checkpoint.from_parameter(self.checkpoint)
            if not isinstance(self.n_components, Integral | None):
                raise invalid_parameter(
                    "checkpoint",
                    self.checkpoint,
                    "a fraction of the variance needs several runs, which have no checkpoint",
                    "pass a number of components, or checkpoint=None",
                )

    def _check_unused_by(self, solver: str) -> None:
        for name, default in (("checkpoint", None), ("warm_start", False)):
            value = getattr(self, name)
            if value is not default:
                raise invalid_parameter(
                    name,
                    value,
                    f"has no effect with eigen_solver={solver!r}, which does not iterate",
                    "leave it out, or pass eigen_solver='krylov'",
                )

    def _validated_rows(self, X: RowsLike) -> Rows:
        check_is_fitted(self)
        return validate_rows(self, X, accept_sparse="csr")

    def _validate_training_rows(self, X: RowsLike) -> Rows:
        """Return X as float32 or float64, dense, CSR or on disk; check its shape and values."""
        if self._learns_ridge and self._is_precomputed:
            raise InvalidInput(
                "Cannot fit_inverse_transform with a precomputed kernel: the regression needs the "
                "training rows; pass rows and a kernel."
            )
        if is_lazy(X) and (self._is_precomputed or self._needs_dense_rows):
            raise InvalidInput(
                f"X is a {type(X).__name__} and is read in tiles: a precomputed kernel, preimage "
                "and fit_inverse_transform need rows in memory; pass X[:]."
            )
        rows: Rows = validate_rows(
            self,
            X,
            reset=True,
            accept_sparse=False if self._needs_dense_rows else "csr",
            # Landmarks are copies.
            copy=self.copy_X and not isinstance(make_solver(self.eigen_solver), Nystrom),
            min_samples=2,
        )
        if self._is_precomputed and rows.shape[0] != rows.shape[1]:
            raise InvalidInput(
                f"X has shape {rows.shape}: a precomputed kernel matrix must be square; pass rows "
                "with another kernel, or the kernel values of all pairs of training rows."
            )
        check_overflow(rows)
        return rows

    def _start_from(self, X: Rows) -> Floats:
        """Return the projections of valid rows, not whitened, from which a solver starts."""
        return self._subspace.project(X)

    def _open_checkpoint(
        self, solver: Solver, X: Rows, start: Floats | None
    ) -> CheckpointFile | None:
        if self.checkpoint is None or isinstance(solver, Dense | Nystrom):
            return None
        # A solver and its name are the same fit.
        names = {"estimator": type(self).__name__, "eigen_solver": type(solver).__name__}
        parameters = self.get_params(deep=False) | names | solver.get_params() | {"start": start}
        checkpoint = Checkpoint.from_parameter(self.checkpoint)
        return CheckpointFile(checkpoint, parameters, X, draw_seed(self.random_state))

    def _kernel_for(self, X: Rows) -> Kernel | None:
        """Return the kernel object, or None for a precomputed matrix."""
        if self._is_precomputed:
            return None
        kernel = self._make_kernel(self.gamma_)
        if sparse.issparse(X) and not kernel.supports_sparse:
            raise invalid_parameter(
                "kernel",
                self.kernel,
                "a pairwise callable does not support sparse rows",
                "pass X.toarray(), or a vectorized kernel",
            )
        return kernel

    def _problem(self, kernel: Kernel | None, X: Rows, seed: int, start: Floats | None) -> Problem:
        """Return the eigenproblem; rows get the precision that their kernel values need."""
        self._check_preimage_of(kernel)
        return Problem(
            None if kernel is None else centered_kernel(kernel, X),
            X,
            budget=read_budget(self.max_memory),
            n_threads=n_threads(self.n_jobs),
            copy_X=self.copy_X,
            seed=seed,
            start=start,
        ).in_sufficient_precision()

    def _solve(
        self,
        solver: Solver,
        problem: Problem,
        n_components: float | None,
        tol: float,
        max_iter: int | None = None,
        checkpoint: CheckpointFile | None = None,
    ) -> EigenSolution:
        """Run a solver with checkpoints and progress lines; add rounding errors to its bounds."""
        if self._learns_ridge and not isinstance(solver, Nystrom):
            copy = problem.X.nbytes if self.copy_X and problem.X.flags.owndata else 0
            problem.budget.require(
                copy + ridge_bytes(problem.X),
                f"the ridge regression on {problem.n_samples} rows",
                "raise it, or leave out fit_inverse_transform and preimage='ridge'",
            )
        n_passes = solver.default_max_iter if max_iter is None else int(max_iter)
        eps = float(np.finfo(problem.X.dtype).eps)

        def write_line(record: PassRecord, _: object) -> None:
            sys.stderr.write(record.line(solver.name, n_passes) + "\n")

        settings = RunSettings(
            n_passes,
            tol=max(float(tol), eps),
            callback=write_line if self.verbose else None,
            saved=None if checkpoint is None else checkpoint.saved,
            record=None if checkpoint is None else checkpoint.record,
        )
        with plain_interrupts(), explain_memory_errors(_MEMORY_REMEDY):
            solution = solver.solve(problem, n_components, settings)
        if checkpoint is not None:
            checkpoint.finish()
        if solution.rank:
            # Products with K' are rounded, too.
            error = problem.rounding_error / solution.eigenvalues.max() + 2 * eps
            solution = solution.with_error(error)
        if self.remove_zero_eig or n_components is None:
            solution = solution.select(solution.eigenvalues > 0)
        return solution

    def _store(self, solver: Solver, solution: EigenSolution, problem: Problem) -> None:
        """Store a solution; raise an interrupt of its run, or warn about problems."""
        self._set_components(solution, problem.kernel, problem.X)
        for name in ("dual_coef_", "landmark_dual_coef_"):
            self.__dict__.pop(name, None)
        if self._learns_ridge:
            kernel, rows = self._make_kernel(self.gamma_), self._subspace.basis
            dual = ridge_coefficients(kernel, self._basis_projections, rows, self.alpha)
            setattr(self, "landmark_dual_coef_" if self._on_landmarks else "dual_coef_", dual)
        if solution.outcome is Outcome.INTERRUPTED:
            raise FitInterrupted if solution.records else KeyboardInterrupt
        self._warn(solver, solution)

    def _set_components(self, solution: EigenSolution, kernel: Kernel | None, X: Rows) -> None:
        eigenvalues, landmarks = solution.eigenvalues, solution.landmarks
        mean, n_samples = None, solution.projections.shape[1]
        if landmarks is not None:
            X, mean, n_samples = landmarks.rows, landmarks.mean, landmarks.n_samples
        self.n_samples_seen_ = n_samples
        self.eigenvalues_ = eigenvalues
        self.explained_variance_ratio_ = eigenvalues / (solution.trace or 1.0)
        if solution.certificate is not None:
            self.certificate_ = solution.certificate
        self.history_ = list(solution.records)
        self.n_iter_ = len(solution.records)
        self.outcome_ = solution.outcome
        self._subspace = Subspace.from_centered(
            kernel, X, solution.coefficients, solution.centering, solution.projections, mean,
            eigenvalues,
        )  # fmt: skip
        self._null_vectors = solution.eigenvectors[:, eigenvalues == 0]
        self._scale = _whitening(solution) if self.whiten else np.ones_like(eigenvalues)
        self._on_landmarks = landmarks is not None

    def _warn(self, solver: Solver, solution: EigenSolution) -> None:
        """Warn about divergence, zero components and a missed tolerance."""
        records = solution.records
        diverged = [record for record in records if record.note]
        if diverged and isinstance(solver, KHA) and not solver.automatic:
            last = diverged[-1]
            warn(
                f"gain={solver.gain!r} was too large in {len(diverged)} of {len(records)} passes, "
                f"the last time in pass {last.number}: {last.note}; pass gain='auto' or a smaller "
                "number. history_ has the details.",
                DivergenceWarning,
            )
        warn_of_rank(self.n_components, len(solution.eigenvalues), solution.rank)
        self._warn_of_tolerance(solution)

    def _warn_of_tolerance(self, solution: EigenSolution) -> None:
        assert solution.certificate is not None
        residual = float(solution.certificate.residual_bounds.max(initial=0.0))
        outcome, requested = solution.outcome, f"tol={self.tol!r}"
        if outcome is Outcome.INDEFINITE:
            text = outcome.value
            remedy = "pass eigen_solver='krylov' or 'dense', or choose another kernel"
        elif outcome is Outcome.DIVERGED or not residual > self.tol > 0:
            return
        elif outcome is Outcome.PASS_LIMIT:
            text = f"max_iter={len(solution.records)} passes did not reach {requested}"
            remedy = "increase max_iter or the tolerance"
        elif outcome is Outcome.LANDMARKS:
            text = f"the landmarks did not reach {requested}"
            remedy = "pass more landmarks, or eigen_solver='auto'"
        else:
            text = f"the precision of the rows does not allow {requested}"
            remedy = "increase the tolerance, or pass rows in double precision"
        warn(f"{text} (the largest relative residual is {residual:.2g}); {remedy}.",
             ConvergenceWarning)  # fmt: skip

    @property
    def _basis_projections(self) -> Floats:
        """Projections of the training rows, or of the landmarks."""
        return self._subspace.projections.T * self._scale

    @property
    def _ridge(self) -> Floats | None:
        """Coefficients of the ridge regression that ``inverse_transform`` uses."""
        if not is_named(self.preimage, "auto", "ridge"):
            return None
        name = "landmark_dual_coef_" if self._on_landmarks else "dual_coef_"
        return getattr(self, name, None)

    def _check_invertible(self) -> None:
        super()._check_invertible()
        if is_named(self.preimage, "ridge") and self._ridge is None:
            raise NotFittedError("The ridge regression was not fitted: fit the model again.")

    def _invert(self, X: Floats) -> tuple[Floats, Floats]:
        if self._ridge is None:
            return super()._invert(X)
        points, kernel = self._points(X), self._make_kernel(self.gamma_)
        rows = predict_rows(kernel, X, self._basis_projections, self._ridge)
        return rows, self._subspace.squared_distances(points, rows)

    @property
    def _mean_row(self) -> Floats:
        return self._subspace.basis.mean(axis=0, dtype=np.float64)

    @property
    def _learns_ridge(self) -> bool:
        """True if the fit learns a kernel ridge regression to the rows."""
        return bool(self.fit_inverse_transform or is_named(self.preimage, "ridge"))

    @property
    def _needs_dense_rows(self) -> bool:
        """True if pre-images are requested, which need dense rows in memory."""
        return self._learns_ridge or not is_named(self.preimage, "auto")

    @classmethod
    def from_sklearn(cls, fitted: SklearnKernelPCA) -> Self:
        """Convert a fitted :class:`sklearn.decomposition.KernelPCA`.

        Parameters
        ----------
        fitted : sklearn.decomposition.KernelPCA

        Returns
        -------
        KernelPCA
            Fitted, with the same ``transform``.
        """
        if not isinstance(fitted, SklearnKernelPCA):
            raise InvalidInput(
                f"{type(fitted).__name__} cannot be converted: pass a fitted "
                "sklearn.decomposition.KernelPCA."
            )
        check_is_fitted(fitted)
        model = cls(**{name: getattr(fitted, name) for name in _SKLEARN_PARAMETERS})
        for name in _SKLEARN_ATTRIBUTES:
            if hasattr(fitted, name):
                setattr(model, name, getattr(fitted, name))
        eigenvalues, vectors = fitted.eigenvalues_, fitted.eigenvectors_.T
        roots = np.sqrt(eigenvalues)[:, None]
        centerer = fitted._centerer
        solution = EigenSolution(
            coefficients=np.divide(vectors, roots, out=np.zeros_like(vectors), where=roots > 0),
            projections=getattr(fitted, "X_transformed_fit_", (vectors * roots).T).T,
            eigenvalues=eigenvalues,
            eigenvectors=fitted.eigenvectors_,
            centering=Centering(centerer.K_fit_rows_, float(centerer.K_fit_all_)),
            # scikit-learn does not store the trace of K'.
            trace=float("nan"),
            certificate=None,
            outcome=Outcome.EXACT,
        )
        model._set_components(solution, model._kernel_for(fitted.X_fit_), fitted.X_fit_)
        return model

    def to_sklearn(self) -> SklearnKernelPCA:
        """Return a fitted :class:`sklearn.decomposition.KernelPCA` with the same ``transform``.

        Returns
        -------
        sklearn.decomposition.KernelPCA
        """
        check_is_fitted(self)
        if self._on_landmarks:
            raise InvalidInput(
                "The model keeps only landmarks: scikit-learn's KernelPCA needs all training rows; "
                "call refine(X) first, or fit with eigen_solver='krylov'."
            )
        if self.whiten:
            raise invalid_parameter(
                "whiten", True, "scikit-learn's KernelPCA does not whiten", "fit with whiten=False"
            )
        if not callable(self.kernel) and self.kernel not in _SKLEARN_KERNELS:
            raise invalid_parameter(
                "kernel",
                self.kernel,
                "is not supported by scikit-learn's KernelPCA",
                f"choose one of {', '.join(_SKLEARN_KERNELS)}, or a callable",
            )
        parameters = {name: getattr(self, name) for name in _SKLEARN_PARAMETERS}
        if isinstance(self.gamma, str):
            parameters["gamma"] = self.gamma_
        # preimage="ridge" has no counterpart in scikit-learn.
        parameters["fit_inverse_transform"] = self._learns_ridge
        converted = SklearnKernelPCA(**parameters)
        fitted = ("X_fit_", "X_transformed_fit_", "eigenvalues_", "eigenvectors_")
        for name in (*fitted, *_SKLEARN_ATTRIBUTES):
            if hasattr(self, name):
                setattr(converted, name, getattr(self, name))
        products, squared_mean = self._subspace.products[-1], float(self._subspace.gram[-1, -1])
        if isinstance(self._subspace.kernel, Linear | Cosine):
            # scikit-learn's kernels have no origin.
            features = self._subspace.kernel.features(self.X_fit_)
            mean = np.asarray(features.mean(axis=0, dtype=np.float64)).ravel()
            products, squared_mean = features @ mean, float(mean @ mean)
        centerer = KernelCenterer().set_output(transform="default")
        centerer.K_fit_rows_, centerer.K_fit_all_ = products, squared_mean
        centerer.n_features_in_ = len(products)
        converted._centerer = centerer
        return converted

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._needs_dense_rows
        tags.input_tags.pairwise = self._is_precomputed
        return tags


def _whitening(solution: EigenSolution) -> Floats:
    """Return 1/standard deviation of each projection; zero for a component without variance."""
    if solution.landmarks is None:
        n_samples = solution.projections.shape[1]
        norms = np.sqrt(np.square(solution.projections).sum(axis=1, dtype=np.float64))
    else:
        n_samples, norms = solution.landmarks.n_samples, np.sqrt(solution.eigenvalues)
    std = np.where(solution.eigenvalues > 0, norms, 0) / np.sqrt(n_samples - 1)
    std = std.astype(solution.projections.dtype)
    return np.divide(1, std, out=np.zeros_like(std), where=std > 0)
