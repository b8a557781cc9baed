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
    CountingGram,
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
    continued_coefficients,
    dense,
    deterministic_signs,
    kha,
    krylov,
    nonnegative_eigenvalues,
)
from ikpca.subspace import Projector


@dataclass(frozen=True)
class Components:
    """Components in feature space.

    Parameters
    ----------
    coefficients, projections : ndarray of shape (r, l)
        A and AK'.
    eigenvalues : ndarray of shape (r,)
    eigenvectors : ndarray of shape (l, r)
        scikit-learn's: A_i√λ_i as columns, which is the unit eigenvector at convergence.
    centring : Centring
    trace : float
        Of K'.
    certificate : Certificate
    outcome : Outcome
    records : list of PassRecord
    """

    coefficients: Floats
    projections: Floats
    eigenvalues: Floats
    eigenvectors: Floats
    centring: Centering
    trace: float
    certificate: Certificate | None
    outcome: Outcome
    records: list[PassRecord]

    def keep(self, chosen: NDArray[np.bool_] | slice) -> Components:
        """Only some of the components."""
        return replace(
            self,
            coefficients=self.coefficients[chosen],
            projections=self.projections[chosen],
            eigenvalues=self.eigenvalues[chosen],
            eigenvectors=self.eigenvectors[:, chosen],
        )

    @property
    def held(self) -> float:
        """Variance of all the components."""
        return float(self.eigenvalues.sum(dtype=np.float64))

    def count(self, share: float) -> int:
        """The fewest components that hold more than ``share`` of the variance."""
        held = np.cumsum(self.eigenvalues)
        return int(np.searchsorted(held, share * self.trace, side="right")) + 1

    @property
    def rank(self) -> int:
        """Components that carry variance."""
        return int(np.count_nonzero(self.eigenvalues))


#: Makes observers, given a function that returns the components of the moment.
ObserverFactory: TypeAlias = Callable[[Callable[[], Components]], Sequence[Observer[Any, Any]]]


def dense_components(
    source: GramSource, n_components: int | None, workers: Workers, share: float | None = None
) -> Components:
    """All of K, decomposed: ``n_components`` leading ones, or as many as hold ``share``."""
    begun = time.perf_counter()
    counted = CountingGram(source)
    K = full_matrix(counted, workers)
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
        seconds=time.perf_counter() - begun,
        eigenvalues=eigenvalues,
        residuals=solution.residuals,
        gains=np.full(len(eigenvalues), np.nan),
        entries=counted.entries,
        change=0.0,
        orthonormality_defect=certificate.orthonormality_defect,
        excess_error=certificate.excess_error,
        recovery=workers.shortage.note,
    )
    components = Components(
        coefficients=coefficients,
        projections=projections,
        eigenvalues=eigenvalues,
        eigenvectors=vectors.T,
        centring=Centering(solution.column_means, solution.grand_mean),
        trace=solution.trace,
        certificate=certificate,
        outcome=Outcome.EXACT,
        records=[record],
    )
    return components if share is None else components.keep(slice(components.count(share)))


def iterated_components(
    solve: Callable[..., HebbianSolution | KrylovSolution],
    source: GramSource,
    n_components: int,
    options: HebbianOptions | KrylovOptions,
    *,
    seed: int,
    workers: Workers,
    watch: ObserverFactory = lambda snapshot: (),
    keeper: CheckpointProtocol = NO_CHECKPOINT,
) -> Components:
    """An iterative solver in this process; ``watch`` makes the observers."""
    solution = solve(
        source,
        n_components,
        options,
        seed=seed,
        workers=workers,
        watch=lambda snapshot: watch(lambda: _from_iterations(snapshot())),
        keeper=keeper,
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
        centring=gram.centring,
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


#: Rows of the sample on which single precision is tried out.
_SAMPLE = 256
#: Of the tolerance, what rounding may take.
_ROOM = 0.05


def rounding_share(kernel: Kernel | None, X: Rows, tol: float, seed: int) -> float | None:
    """‖K − K in single precision‖/λ₁ as a sample shows it; None where that is too much for ``tol``.

    Halving the width halves the time of products and exponentials alike. Rows far from the origin,
    or a kernel of which centring takes most away, lose too much, and keep their precision.
    """
    doubles = isinstance(X, np.ndarray) and not isinstance(X, np.memmap) and X.dtype == np.float64
    if not doubles or not isinstance(kernel, MatmulKernel) or tol <= 0:
        return None
    check_kernel_values(kernel, X)
    if not _holds(kernel, X.astype(np.float32)):
        return None
    n_sample = min(_SAMPLE, len(X))
    chosen = np.random.default_rng([seed, 3]).choice(len(X), n_sample, replace=False)
    rows = X[np.sort(chosen)]
    K = _gram(kernel, rows)
    lost = np.linalg.norm(K - _gram(kernel, rows.astype(np.float32)), 2)
    centred = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    held = np.linalg.norm(centred, 2)
    return float(lost / held) if lost <= _ROOM * tol * held else None


def _holds(kernel: Kernel, X: Rows) -> bool:
    """Whether single precision has room for these rows; a sample may miss the one that is far."""
    try:
        check_kernel_values(kernel, X)
    except InvalidInput:
        return False
    return True


def _gram(kernel: Kernel, rows: Floats) -> Floats:
    """K of a few rows, from operands as they are made for all of them."""
    return full_matrix(ComputedGram(kernel, rows, frame=FeatureSplit.of(rows))).astype(np.float64)


def widened(found: Components, share: float) -> Components:
    """In double precision again; what single precision may have cost goes into the certificate."""
    certificate = found.certificate
    if certificate is not None:
        certificate = replace(
            certificate,
            residuals=certificate.residuals + share,
            eigenvalue_bounds=certificate.eigenvalue_bounds + share * found.eigenvalues.max(),
        )
    centring = found.centring
    return replace(
        found,
        coefficients=found.coefficients.astype(np.float64),
        projections=found.projections.astype(np.float64),
        eigenvalues=found.eigenvalues.astype(np.float64),
        eigenvectors=found.eigenvectors.astype(np.float64),
        centring=Centering(centring.column_means.astype(np.float64), centring.grand_mean),
        certificate=certificate,
    )


_HEBBIAN_PASSES, _KRYLOV_PASSES = 50, 100
#: Up to this order, and so many rows more per component, the dense solver is the faster one
#: (benchmarks/crossover.py).
_DENSE_ORDER, _DENSE_ROWS_PER_COMPONENT = 1200, 30
#: Rows of the landmark start, blocks before a restart: as many as the budget allows.
_LEAST_LANDMARKS, _LANDMARKS, _MOST_LANDMARKS = 256, 512, 1024
_BLOCKS = (8, 6, 4, 3, 2)
#: For a share of the variance: dense up to this order, then krylov with so many components first.
_DENSE_SHARE_ORDER, _FIRST_SHARE_NUMBER = 4000, 32

#: Makes of the source of K, and of the threads for it, the source that is decomposed.
View: TypeAlias = Callable[[GramSource, Workers], GramSource]


class Engine(Protocol):
    """Somewhere else than in this process."""

    @property
    def block_size(self) -> int:
        """Patterns per block of a Hebbian pass that suit it best."""

    def opened(
        self, kernel: Kernel, budget: Budget, *, own: int, whole: int
    ) -> AbstractContextManager[GramSource]:
        """The source of K, for as long as it is needed.

        ``own`` vectors over a worker's own rows, and ``whole`` over all rows, need room there.
        """

    def open_store(self, gram: CenteredGram, rows: Floats, products: Floats) -> CoefficientStore:
        """The coefficient store over that source."""


def identity(source: GramSource, workers: Workers) -> GramSource:
    """K itself."""
    return source


@dataclass(frozen=True)
class Problem:
    """What is to be decomposed.

    Parameters
    ----------
    kernel : Kernel or None
        None for a precomputed matrix.
    X : rows
        Training rows, or the matrix.
    seed : int
    start : ndarray of shape (l, columns), optional
        Projections of the training rows by an earlier model.
    view : callable
        What of K is decomposed; K itself by default.
    keeper : Keeper
        May know where an earlier run was, and is told where this one is.
    engine : Engine or None
        Where tiles are computed and coefficients live; None: in this process.
    observers : sequence of Observer
        See every pass, before those that the model asks for.
    """

    kernel: Kernel | None
    X: Rows
    seed: int
    start: Floats | None = None
    view: View = identity
    keeper: CheckpointProtocol = NO_CHECKPOINT
    engine: Engine | None = None
    observers: Sequence[Observer[Any, Any]] = ()

    @property
    def n_samples(self) -> int:
        """Training rows."""
        return int(self.X.shape[0])

    @property
    def row_bytes(self) -> int:
        """Bytes of one vector over the training rows."""
        return self.n_samples * int(self.X.dtype.itemsize)


def chosen_solver(model: Any, n_samples: int) -> str:
    """The solver behind a name; "auto" is dense for small problems and krylov beyond."""
    name = str(model.eigen_solver)
    if name not in ("auto", *KRYLOV_NAMES):
        return name
    if model.n_components is None:
        return "dense"
    if is_fraction(model.n_components):
        return "dense" if name == "auto" and n_samples <= _DENSE_SHARE_ORDER else "krylov"
    # A block of a quarter of the matrix: the whole of it is cheaper.
    number = int(model.n_components)
    too_wide = 4 * block_size(number) >= n_samples
    small = n_samples <= _DENSE_ORDER + _DENSE_ROWS_PER_COMPONENT * number
    return "dense" if too_wide or (name == "auto" and small) else "krylov"


def n_passes(model: Any, n_samples: int) -> int:
    """How many passes the fit may take."""
    solver = chosen_solver(model, n_samples)
    if solver == "dense":
        return 1
    default = _HEBBIAN_PASSES if solver in METHODS else _KRYLOV_PASSES
    return default if model.max_iter is None else int(model.max_iter)


def decompose(model: Any, problem: Problem, watch: ObserverFactory) -> Components:
    """Run the solver that the model asks for, within its memory."""
    solver = chosen_solver(model, problem.n_samples)
    solve = {"dense": _dense, "krylov": _krylov}.get(solver, _hebbian)
    components = solve(model, problem, read_budget(model.max_memory), watch)
    if model.remove_zero_eig or model.n_components is None:
        return components.keep(components.eigenvalues > 0)
    return components


def _number(model: Any, problem: Problem) -> int:
    return min(int(model.n_components), problem.n_samples)


def _dense(model: Any, problem: Problem, budget: Budget, watch: ObserverFactory) -> Components:
    # K, its centred copy, and the copy that LAPACK overwrites.
    fixed = 3 * problem.n_samples * problem.row_bytes
    with _open_source(model, problem, budget, fixed) as (source, workers):
        if model.n_components is None or is_fraction(model.n_components):
            found = dense_components(source, None, workers, share=model.n_components)
        else:
            found = dense_components(source, _number(model, problem), workers)
    if model.verbose:
        ProgressLines("dense", 1).see(None, found.records[-1])
    return found


def _krylov(model: Any, problem: Problem, budget: Budget, watch: ObserverFactory) -> Components:
    if is_fraction(model.n_components):
        return _krylov_share(model, problem, budget, watch)
    return _krylov_number(model, problem, budget, watch, _number(model, problem))


def _landmarks(n_samples: int) -> int:
    """A twentieth of few rows, a sixtieth of many: fewer cost a pass more, more cost too much."""
    few = min(max(_LEAST_LANDMARKS, n_samples // 20), _LANDMARKS)
    return max(few, min(n_samples // 60, _MOST_LANDMARKS))


def _krylov_share(
    model: Any, problem: Problem, budget: Budget, watch: ObserverFactory
) -> Components:
    """Twice as many components each time, from where the last ones are, until they hold enough."""
    number, records = resume_variance_search(problem.keeper, _FIRST_SHARE_NUMBER)
    while 4 * block_size(number) < problem.n_samples:
        this = replace(problem, keeper=NestedCheckpoint(problem.keeper, number, records))
        found = _krylov_number(model, this, budget, watch, number)
        found, records = _continued(found, records)
        if found.outcome is Outcome.INTERRUPTED or found.held > model.n_components * found.trace:
            return found.keep(slice(found.count(model.n_components)))
        problem = replace(problem, start=found.projections.T)
        number *= 2
    found, _ = _continued(_dense(model, problem, budget, watch), records)
    return found


def _continued(found: Components, records: list[PassRecord]) -> tuple[Components, list[PassRecord]]:
    """The records of all rounds as one history."""
    entries = records[-1].entries if records else 0
    later = [
        replace(record, number=record.number + len(records), entries=record.entries + entries)
        for record in found.records
    ]
    return replace(found, records=records + later), records + later


def _krylov_number(
    model: Any, problem: Problem, budget: Budget, watch: ObserverFactory, number: int
) -> Components:
    """In single precision, where ``tol`` is loose enough for it."""
    share = rounding_share(problem.kernel, problem.X, float(model.tol), problem.seed)
    if share is None:
        return _krylov_in_dtype(model, problem, budget, watch, number)
    narrow = replace(problem, X=problem.X.astype(np.float32))

    def wide(snapshot: Callable[[], Components]) -> Sequence[Observer[Any, Any]]:
        return watch(lambda: widened(snapshot(), share))

    copied = replace(budget, taken=budget.taken + narrow.X.nbytes)
    return widened(_krylov_in_dtype(model, narrow, copied, wide, number), share)


def _krylov_in_dtype(
    model: Any, problem: Problem, budget: Budget, watch: ObserverFactory, number: int
) -> Components:
    width = block_size(number) * problem.row_bytes
    half = budget.left // 2
    blocks = next((count for count in _BLOCKS if (2 * count + 6) * width <= half), _BLOCKS[-1])
    wanted = _landmarks(problem.n_samples)
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
    # The factor, the product and another shard's; the landmarks' basis.
    distant = (DIRECTIONS_PER_COMPONENT * number, 3 * (block_size(number) + 1))
    with _open_source(model, problem, budget, fixed, "tiles", distant) as (source, workers):
        return iterated_components(
            krylov.solve_krylov,
            source,
            number,
            options,
            seed=problem.seed,
            workers=workers,
            watch=watch,
            keeper=problem.keeper,
        )


def _hebbian(model: Any, problem: Problem, budget: Budget, watch: ObserverFactory) -> Components:
    number = _number(model, problem)
    options = _hebbian_options(model, problem, number)
    # A, AK', companions, marks and scratch; a strip of kernel rows per block; landmarks.
    width = 256 if isinstance(options.block_size, str) else options.block_size
    columns = 16 * number + 2 * width
    distant = (columns, 3 * (number + 1))
    fixed = columns * problem.row_bytes
    with _open_source(model, problem, budget, fixed, "matrix", distant) as (source, workers):
        open_store = LocalStore if problem.engine is None else problem.engine.open_store
        solve = partial(kha.solve_kha, open_store=open_store)
        return iterated_components(
            solve,
            source,
            number,
            options,
            seed=problem.seed,
            workers=workers,
            watch=watch,
            keeper=problem.keeper,
        )


@contextmanager
def _open_source(
    model: Any,
    problem: Problem,
    budget: Budget,
    fixed: int,
    keep: Any = None,
    distant: tuple[int, int] = (0, 0),
) -> Iterator[tuple[GramSource, Workers]]:
    """The source of K and the threads for it, within the budget.

    ``keep`` is as in PlannedSource; ``distant`` are the vectors that an engine needs room for.
    """
    if problem.engine is not None and problem.kernel is not None:
        own, whole = distant
        with problem.engine.opened(problem.kernel, budget, own=own, whole=whole) as source:
            yield problem.view(source, SERIAL), SERIAL
        return
    check_kernel_values(problem.kernel, problem.X)
    threads = n_threads(model.n_jobs)
    if problem.kernel is None:
        with Workers(threads) as workers:
            yield problem.view(PrecomputedGram(problem.X), workers), workers
        return
    if model.copy_X:
        fixed += _copied_bytes(problem.X)
    planned = plan_source(problem.kernel, problem.X, budget, fixed, threads)
    with Workers(planned.threads) as workers:
        source = planned.source if keep is None else planned.keeping(keep, workers)
        yield problem.view(source, workers), workers


def _copied_bytes(X: Rows) -> int:
    """What copy_X=True takes; rows on disk are not copied."""
    if sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes) if isinstance(X, np.ndarray) and X.flags.owndata else 0


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
    """A block gives the same result whatever its size, so an engine may choose."""
    if problem.engine is not None and model.block_size == "auto":
        return problem.engine.block_size
    return model.block_size


def _init(model: Any, problem: Problem, number: int) -> Any:
    """Landmarks go with automatic gains; a user's own gain is for the papers' start."""
    names = ("auto", *LANDMARK_KINDS, "random", "sparse")
    init = check_init(model.init, names, (number, problem.n_samples))
    if problem.start is not None:
        return continued_coefficients(problem.start, number, problem.seed)
    if isinstance(init, str) and init == "auto":
        return "landmarks" if isinstance(model.gain, str) else "random"
    return init


def fitted_attributes(
    components: Components, kernel: Kernel | None, X_fit: Rows, *, whiten: bool
) -> dict[str, Any]:
    """What ``KernelPCA`` has after a fit, by name."""
    eigenvalues = components.eigenvalues
    projector = Projector(
        kernel,
        X_fit,
        components.centring,
        components.coefficients,
        components.coefficients @ components.projections.T,
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
        "_projector": projector,
        "_scale": _whitening(components) if whiten else np.ones_like(eigenvalues),
    }


def _whitening(components: Components) -> Floats:
    """1/standard deviation of each projection; zero for a component without variance."""
    freedom = components.projections.shape[1] - 1
    spread = np.linalg.norm(components.projections, axis=1) / np.sqrt(freedom)
    spread = np.where(components.eigenvalues > 0, spread, 0).astype(components.projections.dtype)
    return np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
