"""Choice and configuration of the eigensolver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ikpca.errors import InvalidInput
from ikpca.estimators.checkpoint import NestedCheckpoint, resume_variance_search
from ikpca.estimators.input_checks import check_kernel_values
from ikpca.estimators.validation import KRYLOV_NAMES, check_init, is_fraction, n_threads
from ikpca.gram import (
    NOT_FINITE,
    SERIAL,
    Budget,
    CenteredGram,
    Centering,
    ComputedGram,
    GramSource,
    PrecomputedGram,
    Workers,
    full_matrix,
    plan_source,
    read_budget,
)
from ikpca.kernels import FeatureSplit, Floats, Kernel, MatmulKernel, Rows
from ikpca.metrics import relative_residuals
from ikpca.solvers import (
    DIRECTIONS_PER_COMPONENT,
    LANDMARK_KINDS,
    METHODS,
    NO_CHECKPOINT,
    Certificate,
    CheckpointProtocol,
    CoefficientStore,
    HebbianOptions,
    HebbianSolution,
    KrylovOptions,
    KrylovSolution,
    LocalStore,
    Observer,
    Outcome,
    PassRecord,
    ProgressLines,
    block_size,
    certify,
    dense,
    deterministic_signs,
    kha,
    krylov,
    nonnegative_eigenvalues,
    warm_start_coefficients,
)

_HEBBIAN_PASSES, _KRYLOV_PASSES = 50, 100
#: The dense solver is faster up to this order plus rows per component (benchmarks/crossover.py).
_DENSE_ORDER, _DENSE_ROWS_PER_COMPONENT = 1200, 30
#: Number of landmarks, and of blocks before a restart; the largest that the budget allows.
_MIN_LANDMARKS, _LANDMARKS, _MAX_LANDMARKS = 256, 512, 1024
_BLOCKS = (8, 6, 4, 3, 2)
#: For a fraction of the variance: order up to which dense is used; first guess of krylov.
_DENSE_VARIANCE_ORDER, _FIRST_VARIANCE_COMPONENTS = 4000, 32
#: Number of rows on which the error of single precision is measured.
_ROUNDING_SAMPLE = 256
#: Largest error of single precision as a fraction of the tolerance.
_ROUNDING_FRACTION = 0.05


@dataclass(frozen=True)
class Components:
    """Components in feature space.

    Parameters
    ----------
    coefficients, projections : ndarray of shape (r, l)
        A and AK'.
    eigenvalues : ndarray of shape (r,)
    eigenvectors : ndarray of shape (l, r)
        A_i√λ_i as columns, as in scikit-learn; unit eigenvectors at convergence.
    centering : Centering
    trace : float
        Trace of K'.
    certificate : Certificate
    outcome : Outcome
    records : list of PassRecord
    """

    coefficients: Floats
    projections: Floats
    eigenvalues: Floats
    eigenvectors: Floats
    centering: Centering
    trace: float
    certificate: Certificate | None
    outcome: Outcome
    records: list[PassRecord]

    def select(self, chosen: NDArray[np.bool_] | slice) -> Components:
        """Select some of the components."""
        return replace(
            self,
            coefficients=self.coefficients[chosen],
            projections=self.projections[chosen],
            eigenvalues=self.eigenvalues[chosen],
            eigenvectors=self.eigenvectors[:, chosen],
        )

    @property
    def explained_variance(self) -> float:
        """Sum of the eigenvalues."""
        return float(self.eigenvalues.sum(dtype=np.float64))

    def count_for(self, fraction: float) -> int:
        """Return the smallest number of components with more than ``fraction`` of the variance."""
        cumulative = np.cumsum(self.eigenvalues)
        return int(np.searchsorted(cumulative, fraction * self.trace, side="right")) + 1

    @property
    def rank(self) -> int:
        """Number of non-zero eigenvalues."""
        return int(np.count_nonzero(self.eigenvalues))


#: Makes observers, given a function that returns the current components.
ObserverFactory: TypeAlias = Callable[[Callable[[], Components]], Sequence[Observer[Any, Any]]]
#: Maps the source of K to the source of the matrix to decompose.
GramTransform: TypeAlias = Callable[[GramSource, Workers], GramSource]


class Engine(Protocol):
    """Engine that computes kernel values and holds coefficients outside of this process."""

    @property
    def block_size(self) -> int:
        """Fastest number of patterns per block of a Hebbian pass."""

    def open_gram(
        self, kernel: Kernel, budget: Budget, *, own: int, whole: int
    ) -> AbstractContextManager[GramSource]:
        """Open the source of K.

        Workers need memory for ``own`` vectors over their own rows and ``whole`` over all rows.
        """

    def open_store(self, gram: CenteredGram, rows: Floats, products: Floats) -> CoefficientStore:
        """Open the coefficient store of that source."""


def identity(source: GramSource, workers: Workers) -> GramSource:
    """Return K itself."""
    return source


@dataclass(frozen=True)
class Problem:
    """Matrix to decompose and the environment of the solver.

    Parameters
    ----------
    kernel : Kernel or None
        None for a precomputed matrix.
    X : rows
        Training rows, or the matrix.
    seed : int
    start : ndarray of shape (l, columns), optional
        Projections of the training rows by an earlier model.
    gram_transform : callable
        Maps K to the matrix to decompose; K itself by default.
    checkpoint : CheckpointProtocol
    engine : Engine or None
        None computes in this process.
    observers : sequence of Observer
        Called after every pass, before those that the model requests.
    """

    kernel: Kernel | None
    X: Rows
    seed: int
    start: Floats | None = None
    gram_transform: GramTransform = identity
    checkpoint: CheckpointProtocol = NO_CHECKPOINT
    engine: Engine | None = None
    observers: Sequence[Observer[Any, Any]] = ()

    @property
    def n_samples(self) -> int:
        """Number of training rows."""
        return int(self.X.shape[0])

    @property
    def row_bytes(self) -> int:
        """Bytes of one vector over the training rows."""
        return self.n_samples * int(self.X.dtype.itemsize)


def resolve_solver(model: Any, n_samples: int) -> str:
    """Return the solver for a name; "auto" is dense for small problems, otherwise krylov."""
    name = str(model.eigen_solver)
    if name not in ("auto", *KRYLOV_NAMES):
        return name
    if model.n_components is None:
        return "dense"
    if is_fraction(model.n_components):
        return "dense" if name == "auto" and n_samples <= _DENSE_VARIANCE_ORDER else "krylov"
    # If a block has a quarter of the columns, the dense solver is cheaper.
    number = int(model.n_components)
    too_wide = 4 * block_size(number) >= n_samples
    small = n_samples <= _DENSE_ORDER + _DENSE_ROWS_PER_COMPONENT * number
    return "dense" if too_wide or (name == "auto" and small) else "krylov"


def n_passes(model: Any, n_samples: int) -> int:
    """Return the maximum number of passes."""
    solver = resolve_solver(model, n_samples)
    if solver == "dense":
        return 1
    default = _HEBBIAN_PASSES if solver in METHODS else _KRYLOV_PASSES
    return default if model.max_iter is None else int(model.max_iter)


def decompose(model: Any, problem: Problem, make_observers: ObserverFactory) -> Components:
    """Run the solver of a model within its memory budget."""
    solver = resolve_solver(model, problem.n_samples)
    solve = {"dense": _dense, "krylov": _krylov}.get(solver, _hebbian)
    components = solve(model, problem, read_budget(model.max_memory), make_observers)
    if model.remove_zero_eig or model.n_components is None:
        return components.select(components.eigenvalues > 0)
    return components


def _n_components(model: Any, problem: Problem) -> int:
    return min(int(model.n_components), problem.n_samples)


def _dense(
    model: Any, problem: Problem, budget: Budget, make_observers: ObserverFactory
) -> Components:
    # K, its centred copy, and the copy that LAPACK overwrites.
    fixed = 3 * problem.n_samples * problem.row_bytes
    with _open_source(model, problem, budget, fixed) as (source, workers):
        if model.n_components is None or is_fraction(model.n_components):
            found = dense_components(source, None, workers, fraction=model.n_components)
        else:
            found = dense_components(source, _n_components(model, problem), workers)
    if model.verbose:
        ProgressLines("dense", 1).on_step_end(None, found.records[-1])
    return found


def dense_components(
    source: GramSource, n_components: int | None, workers: Workers, fraction: float | None = None
) -> Components:
    """Decompose the full matrix; keep ``n_components`` or ``fraction`` of the variance."""
    start = time.perf_counter()
    K = full_matrix(source, workers)
    if not np.isfinite(K).all():
        raise InvalidInput(NOT_FINITE)
    solution = dense.solve_dense(K, n_components)
    eigenvalues = nonnegative_eigenvalues(solution.eigenvalues)
    rounding = 100 * np.finfo(K.dtype).eps * float(np.abs(np.diag(K)).sum(dtype=np.float64))
    if solution.trace <= rounding and eigenvalues.max(initial=0.0) <= rounding:
        eigenvalues = np.zeros_like(eigenvalues)
    roots = np.sqrt(eigenvalues)[:, None]
    vectors = solution.eigenvectors.T
    signs = deterministic_signs(vectors)[:, None]
    vectors = vectors * signs
    coefficients = np.divide(vectors, roots, out=np.zeros_like(vectors), where=roots > 0)
    projections = vectors * roots
    certificate = certify(
        eigenvalues, solution.residuals, coefficients @ projections.T, solution.squared_norm
    )
    record = PassRecord(
        number=1,
        seconds=time.perf_counter() - start,
        eigenvalues=eigenvalues,
        residuals=solution.residuals,
        gains=np.full(len(eigenvalues), np.nan),
        entries=source.entries,
        change=0.0,
        orthonormality_defect=certificate.orthonormality_defect,
        excess_error=certificate.excess_error,
    )
    components = Components(
        coefficients=coefficients,
        projections=projections,
        eigenvalues=eigenvalues,
        eigenvectors=vectors.T,
        centering=Centering(solution.column_means, solution.grand_mean),
        trace=solution.trace,
        certificate=certificate,
        outcome=Outcome.EXACT,
        records=[record],
    )
    return (
        components if fraction is None else components.select(slice(components.count_for(fraction)))
    )


def _krylov(
    model: Any, problem: Problem, budget: Budget, make_observers: ObserverFactory
) -> Components:
    if is_fraction(model.n_components):
        return _krylov_for_variance(model, problem, budget, make_observers)
    return _krylov_for_count(model, problem, budget, make_observers, _n_components(model, problem))


def _krylov_for_variance(
    model: Any, problem: Problem, budget: Budget, make_observers: ObserverFactory
) -> Components:
    """Double the number of components, starting from the last ones, until they explain enough."""
    number, records = resume_variance_search(problem.checkpoint, _FIRST_VARIANCE_COMPONENTS)
    while 4 * block_size(number) < problem.n_samples:
        run = replace(problem, checkpoint=NestedCheckpoint(problem.checkpoint, number, records))
        found = _krylov_for_count(model, run, budget, make_observers, number)
        found, records = _append_records(found, records)
        if (
            found.outcome is Outcome.INTERRUPTED
            or found.explained_variance > model.n_components * found.trace
        ):
            return found.select(slice(found.count_for(model.n_components)))
        problem = replace(problem, start=found.projections.T)
        number *= 2
    found, _ = _append_records(_dense(model, problem, budget, make_observers), records)
    return found


def _append_records(
    found: Components, records: list[PassRecord]
) -> tuple[Components, list[PassRecord]]:
    """Append the records of a run to those of the earlier runs."""
    entries = records[-1].entries if records else 0
    later = [
        replace(record, number=record.number + len(records), entries=record.entries + entries)
        for record in found.records
    ]
    return replace(found, records=records + later), records + later


def _krylov_for_count(
    model: Any, problem: Problem, budget: Budget, make_observers: ObserverFactory, number: int
) -> Components:
    """Run krylov, in single precision if ``tol`` allows it."""
    error = single_precision_error(problem.kernel, problem.X, float(model.tol), problem.seed)
    if error is None:
        return _krylov_in_dtype(model, problem, budget, make_observers, number)
    single = replace(problem, X=problem.X.astype(np.float32))

    def double_observers(snapshot: Callable[[], Components]) -> Sequence[Observer[Any, Any]]:
        return make_observers(lambda: to_double_precision(snapshot(), error))

    reduced = replace(budget, used=budget.used + single.X.nbytes)
    return to_double_precision(
        _krylov_in_dtype(model, single, reduced, double_observers, number), error
    )


def _krylov_in_dtype(
    model: Any, problem: Problem, budget: Budget, make_observers: ObserverFactory, number: int
) -> Components:
    width = block_size(number) * problem.row_bytes
    half = budget.available // 2
    blocks = next((count for count in _BLOCKS if (2 * count + 6) * width <= half), _BLOCKS[-1])
    wanted = _default_landmarks(problem.n_samples)
    landmarks = max(2 * block_size(number), min(wanted, half // problem.row_bytes))
    kind = model.init if isinstance(model.init, str) and model.init in LANDMARK_KINDS else "auto"
    strips = 2 if kind == "pivoted" else 1
    fixed = max((2 * blocks + 6) * width, strips * landmarks * problem.row_bytes + 3 * width)
    options = KrylovOptions(
        max_iter=n_passes(model, problem.n_samples),
        n_landmarks=landmarks,
        landmarks=kind,
        max_blocks=blocks,
        start=problem.start,
    )
    # The factor, the product and that of another shard; the basis of the landmarks.
    engine_vectors = (DIRECTIONS_PER_COMPONENT * number, 3 * (block_size(number) + 1))
    with _open_source(model, problem, budget, fixed, "tiles", engine_vectors) as (source, workers):
        return iterated_components(
            krylov.solve_krylov,
            source,
            number,
            options,
            seed=problem.seed,
            workers=workers,
            make_observers=make_observers,
            checkpoint=problem.checkpoint,
        )


def _default_landmarks(n_samples: int) -> int:
    """Return a twentieth of few rows or a sixtieth of many, which minimized the total time."""
    few = min(max(_MIN_LANDMARKS, n_samples // 20), _LANDMARKS)
    return max(few, min(n_samples // 60, _MAX_LANDMARKS))


def single_precision_error(kernel: Kernel | None, X: Rows, tol: float, seed: int) -> float | None:
    """Estimate ‖K − K in single precision‖/λ₁ on a sample; None if too large for ``tol``.

    Single precision halves the time of products and exponentials. The error is too large for rows
    far from the origin and for kernels whose values centring cancels almost completely.
    """
    is_double = isinstance(X, np.ndarray) and not isinstance(X, np.memmap) and X.dtype == np.float64
    if not is_double or not isinstance(kernel, MatmulKernel) or tol <= 0:
        return None
    check_kernel_values(kernel, X)
    if not _fits_in_float32(kernel, X.astype(np.float32)):
        return None
    n_sample = min(_ROUNDING_SAMPLE, len(X))
    chosen = np.random.default_rng([seed, 3]).choice(len(X), n_sample, replace=False)
    rows = X[np.sort(chosen)]
    K = _sample_gram(kernel, rows)
    error = np.linalg.norm(K - _sample_gram(kernel, rows.astype(np.float32)), 2)
    centered = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    largest = np.linalg.norm(centered, 2)
    return float(error / largest) if error <= _ROUNDING_FRACTION * tol * largest else None


def _fits_in_float32(kernel: Kernel, X: Rows) -> bool:
    """Return True if kernel values of all rows, also those not in the sample, fit in float32."""
    try:
        check_kernel_values(kernel, X)
    except InvalidInput:
        return False
    return True


def _sample_gram(kernel: Kernel, rows: Floats) -> Floats:
    """Compute K of the sample with the same operands as for all rows."""
    source = ComputedGram(kernel, rows, split=FeatureSplit.from_rows(rows))
    return full_matrix(source).astype(np.float64)


def to_double_precision(components: Components, error: float) -> Components:
    """Convert to double precision; add the error of single precision to the certificate."""
    certificate = components.certificate
    if certificate is not None:
        certificate = replace(
            certificate,
            residuals=certificate.residuals + error,
            eigenvalue_bounds=certificate.eigenvalue_bounds + error * components.eigenvalues.max(),
        )
    centering = components.centering
    return replace(
        components,
        coefficients=components.coefficients.astype(np.float64),
        projections=components.projections.astype(np.float64),
        eigenvalues=components.eigenvalues.astype(np.float64),
        eigenvectors=components.eigenvectors.astype(np.float64),
        centering=Centering(centering.column_means.astype(np.float64), centering.grand_mean),
        certificate=certificate,
    )


def _hebbian(
    model: Any, problem: Problem, budget: Budget, make_observers: ObserverFactory
) -> Components:
    number = _n_components(model, problem)
    options = _hebbian_options(model, problem, number)
    # A, AK', companions, marks and work space; a strip of kernel rows per block; landmarks.
    width = 256 if isinstance(options.block_size, str) else options.block_size
    columns = 16 * number + 2 * width
    engine_vectors = (columns, 3 * (number + 1))
    fixed = columns * problem.row_bytes
    with _open_source(model, problem, budget, fixed, "matrix", engine_vectors) as (source, workers):
        open_store = LocalStore if problem.engine is None else problem.engine.open_store
        solve = partial(kha.solve_kha, open_store=open_store)
        return iterated_components(
            solve,
            source,
            number,
            options,
            seed=problem.seed,
            workers=workers,
            make_observers=make_observers,
            checkpoint=problem.checkpoint,
        )


def _hebbian_options(model: Any, problem: Problem, number: int) -> HebbianOptions:
    return HebbianOptions(
        method=model.eigen_solver,
        gain=model.gain,
        meta_gain=model.meta_gain,
        meta_decay=model.meta_decay,
        log_gain_init=model.log_gain_init,
        clock=model.clock,
        init=_init(model, problem, number),
        rayleigh_ritz=model.rayleigh_ritz,
        block_size=_block_size(model, problem),
        max_iter=n_passes(model, problem.n_samples),
    )


def _block_size(model: Any, problem: Problem) -> Any:
    """Return the block size; it does not change the result, so an engine may choose it."""
    if problem.engine is not None and model.block_size == "auto":
        return problem.engine.block_size
    return model.block_size


def _init(model: Any, problem: Problem, number: int) -> Any:
    """Return the initialization: "auto" is landmarks for automatic gains, otherwise random."""
    names = ("auto", *LANDMARK_KINDS, "random", "sparse")
    init = check_init(model.init, names, (number, problem.n_samples))
    if problem.start is not None:
        return warm_start_coefficients(problem.start, number, problem.seed)
    if isinstance(init, str) and init == "auto":
        return "landmarks" if isinstance(model.gain, str) else "random"
    return init


def iterated_components(
    solve: Callable[..., HebbianSolution | KrylovSolution],
    source: GramSource,
    n_components: int,
    options: HebbianOptions | KrylovOptions,
    *,
    seed: int,
    workers: Workers,
    make_observers: ObserverFactory = lambda snapshot: (),
    checkpoint: CheckpointProtocol = NO_CHECKPOINT,
) -> Components:
    """Run an iterative solver and return its components."""
    solution = solve(
        source,
        n_components,
        options,
        seed=seed,
        workers=workers,
        make_observers=lambda snapshot: make_observers(lambda: _from_iterations(snapshot())),
        checkpoint=checkpoint,
    )
    return _from_iterations(solution)


def _from_iterations(solution: HebbianSolution | KrylovSolution) -> Components:
    gram = solution.gram
    signs = deterministic_signs(solution.projections)[:, None]
    coefficients, projections = solution.coefficients * signs, solution.projections * signs
    eigenvalues = nonnegative_eigenvalues(solution.eigenvalues)
    return Components(
        coefficients=coefficients,
        projections=projections,
        eigenvalues=eigenvalues,
        eigenvectors=(coefficients * np.sqrt(eigenvalues)[:, None]).T,
        centering=gram.centering,
        trace=gram.mean_diagonal * gram.n_samples,
        certificate=certify(
            eigenvalues,
            relative_residuals(coefficients, projections, eigenvalues),
            coefficients.astype(np.float64) @ projections.astype(np.float64).T,
            gram.squared_norm_estimate,
            solution.next_eigenvalue if isinstance(solution, KrylovSolution) else None,
        ),
        outcome=solution.outcome,
        records=solution.records,
    )


@contextmanager
def _open_source(
    model: Any,
    problem: Problem,
    budget: Budget,
    fixed: int,
    keep: Any = None,
    engine_vectors: tuple[int, int] = (0, 0),
) -> Iterator[tuple[GramSource, Workers]]:
    """Open the source of K and its threads within the budget.

    ``keep`` is as in PlannedSource; ``engine_vectors`` are ``own`` and ``whole`` of an engine.
    """
    if problem.engine is not None and problem.kernel is not None:
        own, whole = engine_vectors
        with problem.engine.open_gram(problem.kernel, budget, own=own, whole=whole) as source:
            yield problem.gram_transform(source, SERIAL), SERIAL
        return
    check_kernel_values(problem.kernel, problem.X)
    threads = n_threads(model.n_jobs)
    if problem.kernel is None:
        with Workers(threads) as workers:
            yield problem.gram_transform(PrecomputedGram(problem.X), workers), workers
        return
    if model.copy_X:
        fixed += _copied_bytes(problem.X)
    planned = plan_source(problem.kernel, problem.X, budget, fixed, threads)
    with Workers(planned.threads) as workers:
        source = planned.source if keep is None else planned.with_cache(keep, workers)
        yield problem.gram_transform(source, workers), workers


def _copied_bytes(X: Rows) -> int:
    """Return the bytes that copy_X=True takes; rows on disk are not copied."""
    if sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes) if isinstance(X, np.ndarray) and X.flags.owndata else 0
