"""Block Krylov solver with restarts, started from landmarks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from ikpca.errors import InvalidInput, check_choice, invalid_parameter
from ikpca.gram import (
    NOT_FINITE,
    CenteredGram,
    GramMeans,
    GramSource,
    Workers,
    center_columns,
    center_gram,
)
from ikpca.kernels import Floats
from ikpca.metrics import relative_residuals
from ikpca.solvers.base import (
    EigenSolution,
    Outcome,
    PassRecord,
    RunCheckpoint,
    RunSettings,
    SavedRun,
    Solver,
    run_passes,
)
from ikpca.solvers.dense import Dense
from ikpca.solvers.landmarks import (
    DIRECTIONS_PER_COMPONENT,
    LANDMARK_KINDS,
    choose_landmarks,
    landmark_start,
)
from ikpca.solvers.problem import MemoryNeeds, Problem
from ikpca.solvers.rayleigh_ritz import certify, inner_in_double, multiply_rows, rayleigh_ritz

#: Number of landmarks, and of blocks before a restart; the largest that the budget allows.
_MIN_LANDMARKS, _LANDMARKS, _MAX_LANDMARKS = 256, 512, 1024
_BLOCKS = (8, 6, 4, 3, 2)
#: Typical residual after the first pass, and its reduction by every other pass.
_FIRST_RESIDUAL, _REDUCTION = 1e-2, 30
#: Cost of new memory for a kernel value, in operations; more than that of some values.
_KEEPING_COST = 500
#: First number of components for a fraction of the variance.
_FIRST_VARIANCE_COMPONENTS = 32
#: Rounding errors of a new block, relative to its largest column, in units of machine epsilon.
#: A smaller number costs passes on low-rank kernels; a larger one ends runs too early.
_NOISE = 4
#: Ritz values below this fraction of the largest, or this multiple of machine epsilon, are zero.
_DROP, _DROP_EPSILONS = 1e-12, 10
#: Rounding error of a negative Ritz value, relative to the largest, in units of machine epsilon.
_NEGATIVE_EPSILONS = 100
#: Relative residual below which a component misses less than 1e-8 of its variance.
_CONVERGED_RESIDUAL = 1e-4


@dataclass(frozen=True)
class RitzPairs:
    """Ritz pairs of K' in the span of a basis Q, from N = QᵀK'Q and S = (K'Q)ᵀK'Q.

    Parameters
    ----------
    values, vectors : ndarray
        Eigenpairs of N, descending: Ritz pairs in coefficient space.
    N, S : ndarray of shape (columns, columns)
    eps : float
        Machine epsilon of the basis.
    """

    values: Floats
    vectors: Floats
    N: Floats
    S: Floats
    eps: float

    @classmethod
    def from_products(cls, N: Floats, S: Floats, eps: float) -> RitzPairs:
        """Compute the eigenpairs of N."""
        values, vectors = np.linalg.eigh(N)
        return cls(values[::-1], vectors[:, ::-1], N, S, eps)

    def components(self, n_components: int) -> tuple[Floats, Floats]:
        """Return Ritz values, and T with A = TQᵀ.

        Ritz pairs in feature space capture the most variance, but their coefficients in near-null
        directions amplify rounding errors. So once the leading pairs have converged, and for an
        indefinite kernel, the pairs in coefficient space are used.
        """
        if not len(self.values):
            # A kernel matrix without variance leaves nothing to multiply.
            return self.values, self.vectors
        drop = max(_DROP, _DROP_EPSILONS * self.eps)
        indefinite = self.values[-1] < -_NEGATIVE_EPSILONS * self.eps * self.values[0]
        if not indefinite and not self._converged(n_components):
            return rayleigh_ritz(self.N, self.S, drop=drop)
        values = self.values
        if not indefinite:
            values = np.where(values > drop * values[0], values, 0.0)
        roots = np.sqrt(np.clip(values, 0, None))[:, None]
        T = np.divide(self.vectors.T, roots, out=np.zeros_like(self.vectors), where=roots > 0)
        return values, T

    def _converged(self, n_components: int) -> bool:
        """Return True if the residuals no longer affect the captured variance."""
        leading = self.vectors[:, :n_components]
        squares = np.einsum("ir,ij,jr->r", leading, self.S, leading, optimize=True)
        squares -= np.square(self.values[:n_components])
        return bool((squares <= np.square(_CONVERGED_RESIDUAL * self.values[0])).all())


@dataclass(frozen=True, eq=False)
class KrylovState:
    """State between two passes.

    Parameters
    ----------
    columns : int
        Number of basis columns.
    block : ndarray of shape (l, width)
        Next block.
    passes : int
    found : tuple or None
        Coefficients, projections and eigenvalues of the components, and the next eigenvalue; None
        before the first pass.
    """

    columns: int
    block: Floats
    passes: int
    found: tuple[Floats, Floats, Floats, float] | None = None


@dataclass(frozen=True, eq=False)
class KrylovProgress:
    """Checkpoint data of a run.

    Parameters
    ----------
    state : KrylovState
    basis, products : ndarray of shape (l, columns)
        Q and Z = K'Q.
    inner_products : ndarray of shape (3, columns, columns)
        QᵀZ, ZᵀZ and QᵀQ.
    means : GramMeans
    """

    state: KrylovState
    basis: Floats
    products: Floats
    inner_products: Floats
    means: GramMeans


def block_size(n_components: int) -> int:
    """Return an oversampled block size, which converges in fewer passes."""
    return n_components + max(8, min(n_components, 16))


class Krylov(Solver):
    """Block Krylov iterations with restarts, started from landmarks.

    Parameters
    ----------
    init : {"landmarks", "pivoted"}, default="landmarks"
        Selection of the landmarks: rows drawn uniformly, or by randomly pivoted Cholesky, for data
        with a few outlying rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> from ikpca.solvers import Krylov
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> model = KernelPCA(2, kernel="rbf", eigen_solver=Krylov(init="pivoted"), random_state=0)
    >>> bool(model.fit(X).certificate_.residuals.max() < 1e-12)
    True
    """

    default_max_iter: ClassVar[int] = 100
    name = "krylov"

    def __init__(self, init: str = "landmarks") -> None:
        self.init = init

    def check(self, n_components: float | None) -> None:
        """Validate the initialization; all components need the dense solver."""
        check_choice("init", self.init, LANDMARK_KINDS)
        if n_components is None:
            raise invalid_parameter(
                "n_components",
                None,
                "eigen_solver='krylov' needs an integer or a fraction",
                "pass an integer, a fraction in (0, 1), or eigen_solver='dense'",
            )

    @staticmethod
    def is_applicable(n_components: int, n_samples: int) -> bool:
        """Return False if a block has a quarter of the columns, where dense is cheaper."""
        return 4 * block_size(n_components) < n_samples

    def memory_needs(self, problem: Problem, n_components: int) -> MemoryNeeds:
        """Return the memory of the basis, its products, and the landmarks."""
        width = block_size(n_components) * problem.row_bytes
        landmarks = _n_landmarks(problem, n_components) * problem.row_bytes
        return MemoryNeeds(
            max((2 * _max_blocks(problem, n_components) + 6) * width, landmarks + 3 * width),
            keep="tiles",
            # The basis of the landmarks; the factor, the product and that of another shard.
            own_vectors=DIRECTIONS_PER_COMPONENT * n_components,
            whole_vectors=3 * (block_size(n_components) + 1),
        )

    def solve(
        self, problem: Problem, n_components: float | None, settings: RunSettings
    ) -> EigenSolution:
        """Compute the leading components; the parameters are those of :meth:`Solver.solve`.

        For a fraction of the variance, the number of components is doubled, starting from the last
        ones, until they explain enough.
        """
        if isinstance(n_components, Integral):
            return self._solve_number(problem, min(int(n_components), problem.n_samples), settings)
        assert n_components is not None
        search = VarianceSearch.restored(settings.checkpoint)
        while self.is_applicable(search.number, problem.n_samples):
            run = replace(settings, checkpoint=search.nested(settings.checkpoint))
            found = search.append(self._solve_number(problem, search.number, run))
            explained = float(found.eigenvalues.sum(dtype=np.float64))
            if found.outcome is Outcome.INTERRUPTED or explained > n_components * found.trace:
                return found.select_fraction(n_components)
            problem = replace(problem, start=found.projections.T)
            search = VarianceSearch(2 * search.number, list(found.records))
        return search.append(Dense().solve(problem, n_components, settings))

    def _solve_number(
        self, problem: Problem, n_components: int, settings: RunSettings
    ) -> EigenSolution:
        """Compute a number of components, with less precise kernel values if ``tol`` allows it."""
        used, error = problem.in_single_precision(settings.tol) or (problem, 0.0)
        needs = self.memory_needs(used, n_components)
        if not _keeps_values(used, settings.tol):
            needs = replace(needs, keep=None)
        elif (rounding := used.compact_error(settings.tol)) is not None:
            needs, error = replace(needs, keep="compact"), error + rounding
        if not error:
            return self._run(used, needs, n_components, settings)

        def corrected(solution: EigenSolution) -> EigenSolution:
            solution = solution.with_error(error)
            return solution if used is problem else solution.in_double()

        settings = replace(settings, tol=settings.tol - error)
        callback = settings.callback
        if callback is not None:
            settings = replace(
                settings,
                callback=lambda record, solution: callback(record, lambda: corrected(solution())),
            )
        return corrected(self._run(used, needs, n_components, settings))

    def _run(
        self, problem: Problem, needs: MemoryNeeds, n_components: int, settings: RunSettings
    ) -> EigenSolution:
        with problem.open(needs) as (source, workers):
            max_blocks = _max_blocks(problem, n_components)
            passes = KrylovPasses(source, n_components, max_blocks, workers)
            saved = settings.restore()
            if saved is None:
                first = self._first_block(source, problem, n_components, workers)
                state = KrylovState(0, _orthonormal(first, first[:, :0], workers), 0)
            else:
                state = passes.resume(saved.progress)
            state, outcome, records = run_passes(passes, state, settings)
            return replace(passes.solution(state), outcome=outcome, records=records)

    def _first_block(
        self, source: GramSource, problem: Problem, n_components: int, workers: Workers
    ) -> Floats:
        """Return the first block: a warm start, filled up with landmark components.

        Projections on landmark components are a multiplication by K' ahead of a random block.
        """
        size = block_size(n_components)
        warm = np.empty((source.n_samples, 0), dtype=source.dtype)
        if problem.start is not None:
            warm = center_columns(problem.start.astype(source.dtype))[:, :size]
        if warm.shape[1] == size:
            return warm
        number = _n_landmarks(problem, n_components)
        chosen = choose_landmarks(self.init, source, number, problem.seed, workers)
        found = landmark_start(source, size, chosen, workers).projections.T
        return np.hstack([warm, found[:, : size - warm.shape[1]]])


def _keeps_values(problem: Problem, tol: float) -> bool:
    """Return True if new memory for kernel values takes less time than computing them again."""
    return _passes_after_first(tol) * problem.entry_cost > _KEEPING_COST


def _passes_after_first(tol: float) -> int:
    """Return the expected number of passes after the first."""
    reduction = _FIRST_RESIDUAL / max(tol, float(np.finfo(np.float64).eps))
    return max(0, int(np.ceil(np.log(reduction) / np.log(_REDUCTION))))


def expected_passes(problem: Problem, n_components: int, tol: float) -> float:
    """Return the expected cost of a run, in passes over K whose values are computed."""
    products = 4 * block_size(n_components)
    later = problem.entry_cost + products
    if _keeps_values(problem, tol):
        later = products + _KEEPING_COST / _passes_after_first(tol)
    return 1 + _passes_after_first(tol) * later / (problem.entry_cost + products)


def _max_blocks(problem: Problem, n_components: int) -> int:
    """Return the largest number of blocks before a restart that half of the budget allows."""
    width = block_size(n_components) * problem.row_bytes
    half = problem.budget.available // 2
    return next((count for count in _BLOCKS if (2 * count + 6) * width <= half), _BLOCKS[-1])


def _n_landmarks(problem: Problem, n_components: int) -> int:
    """Return a twentieth of few rows or a sixtieth of many, which minimized the total time."""
    n_samples = problem.n_samples
    few = min(max(_MIN_LANDMARKS, n_samples // 20), _LANDMARKS)
    wanted = max(few, min(n_samples // 60, _MAX_LANDMARKS))
    affordable = problem.budget.available // 2 // problem.row_bytes
    return max(2 * block_size(n_components), min(wanted, affordable))


@dataclass(frozen=True, eq=False)
class VarianceSearchProgress:
    """Checkpoint data of a search of the number of components for a fraction of the variance.

    Parameters
    ----------
    number : int
        Number of components of the current run.
    records : list of PassRecord
        Records of the earlier runs.
    progress : KrylovProgress
    """

    number: int
    records: list[PassRecord]
    progress: KrylovProgress


@dataclass(frozen=True)
class VarianceSearch:
    """Number of components of a run, and the records of the earlier runs."""

    number: int = _FIRST_VARIANCE_COMPONENTS
    earlier: list[PassRecord] = field(default_factory=list)

    @classmethod
    def restored(cls, checkpoint: RunCheckpoint | None) -> VarianceSearch:
        """Return the run to start with."""
        saved = None if checkpoint is None else checkpoint.restore()
        return cls() if saved is None else cls(saved.progress.number, saved.progress.records)

    def append(self, found: EigenSolution) -> EigenSolution:
        """Append the records of a run to those of the earlier runs."""
        return replace(found, records=[*self.earlier, *map(self._renumber, found.records)])

    def _renumber(self, record: PassRecord) -> PassRecord:
        entries = self.earlier[-1].entries if self.earlier else 0
        number = record.number + len(self.earlier)
        return replace(record, number=number, entries=record.entries + entries)

    def nested(self, checkpoint: RunCheckpoint | None) -> RunCheckpoint | None:
        """Return the checkpoint of this run, stored in that of the fit."""
        return None if checkpoint is None else _NestedCheckpoint(self, checkpoint)


@dataclass(frozen=True)
class _NestedCheckpoint:
    """Checkpoint of one run of a variance search."""

    search: VarianceSearch
    parent: RunCheckpoint

    def restore(self) -> SavedRun | None:
        """Return the saved progress of this run; None if another run was interrupted."""
        saved = self.parent.restore()
        if saved is None or saved.progress.number != self.search.number:
            return None
        records = saved.records[len(self.search.earlier) :]
        return SavedRun(saved.progress.progress, records, saved.outcome)

    def record(
        self, progress: Callable[[], Any], records: list[PassRecord], outcome: Outcome | None
    ) -> None:
        """Record a finished pass with the number of components and the earlier runs."""
        number, earlier = self.search.number, self.search.earlier

        def nested() -> VarianceSearchProgress | None:
            inner = progress()
            return None if inner is None else VarianceSearchProgress(number, earlier, inner)

        self.parent.record(nested, [*earlier, *records], outcome)


class KrylovPasses:
    """Passes: multiply the last block, extract components, make the next block.

    The orthonormal basis Q and Z = K'Q are two arrays, allocated once, and their inner products are
    updated with every block; an interrupted pass has only written to columns beyond those that the
    state counts, unless it restarted the basis.
    """

    def __init__(
        self, source: GramSource, n_components: int, max_blocks: int, workers: Workers
    ) -> None:
        self._source = source
        self._r = n_components
        columns = max_blocks * block_size(n_components)
        self._Q = np.empty((source.n_samples, columns), dtype=source.dtype, order="F")
        self._Z = np.empty_like(self._Q)
        # QᵀZ, ZᵀZ and QᵀQ.
        self._inner = np.empty((3, columns, columns))
        self._workers = workers
        self._gram: CenteredGram | None = None
        #: Passes before the one that last restarted the basis.
        self._restarted: int | None = None

    def step(self, state: KrylovState) -> tuple[KrylovState, PassRecord, Outcome | None]:
        """Run one pass over K."""
        started = time.perf_counter()
        width = state.block.shape[1]
        known = state.columns + width
        self._Q[:, state.columns : known] = state.block
        self._Z[:, state.columns : known] = self._multiply(state.block)
        Q, Z = self._Q[:, :known], self._Z[:, :known]
        if not np.isfinite(Z[:, state.columns :]).all():
            raise InvalidInput(NOT_FINITE)
        N, S, lengths = self._extend_inner_products(state.columns, known)
        ritz = RitzPairs.from_products(N, S, float(np.finfo(Q.dtype).eps))
        found = self._components(Q, Z, *ritz.components(self._r))
        change = np.inf if state.found is None else _change(found[0], state.found[1])
        latest = Z[:, state.columns :]
        defect, recovery = float(np.abs(lengths - np.eye(known)).max(initial=0.0)), ""
        if defect > np.sqrt(np.finfo(Q.dtype).eps):
            recovery = f"the basis had lost its orthonormality (by {defect:.1e}) and is rebuilt"
            # The leading Ritz vectors start the new basis.
            latest, known = multiply_rows(Q, ritz.vectors[:, :width], self._workers), 0
        elif known + width > self._Q.shape[1]:
            # Replace the basis by the leading Ritz vectors, without a product with K.
            vectors = ritz.vectors[:, :width]
            known, self._restarted = vectors.shape[1], state.passes
            for array in (self._Q, self._Z):
                array[:, :known] = multiply_rows(array[:, : len(vectors)], vectors, self._workers)
            self._extend_inner_products(0, known)
            latest = self._Z[:, :known]
        block = _orthonormal(latest, self._Q[:, :known], self._workers)[:, :width]
        seconds = time.perf_counter() - started
        record = self._record(state.passes + 1, seconds, found, change, recovery)
        following = KrylovState(known, block, state.passes + 1, found)
        # An empty block: the basis spans the range of K' up to rounding.
        return following, record, Outcome.PRECISE if block.shape[1] == 0 else None

    def undo(self, state: KrylovState) -> None:
        """Do nothing: the basis of the state is intact, or cannot be restored."""

    def progress(self, state: KrylovState) -> KrylovProgress | None:
        """Return the checkpoint data after a pass; None if a restart has overwritten its basis."""
        if self._restarted == state.passes:
            return None
        assert self._gram is not None
        known = slice(0, state.columns)
        Q, Z, inner = self._Q[:, known], self._Z[:, known], self._inner[:, known, known]
        return KrylovProgress(state, Q, Z, inner, self._gram.means)

    def resume(self, earlier: KrylovProgress) -> KrylovState:
        """Restore the basis of an earlier run, and return its state."""
        columns = earlier.state.columns
        self._Q[:, :columns], self._Z[:, :columns] = earlier.basis, earlier.products
        self._inner[:, :columns, :columns] = earlier.inner_products
        self._gram = CenteredGram(self._source, earlier.means, self._workers)
        return earlier.state

    def solution(self, state: KrylovState) -> EigenSolution:
        """Return the components after a pass; raise an interrupt of the first pass again."""
        if state.found is None or self._gram is None:
            raise KeyboardInterrupt
        A, AK, eigenvalues, next_eigenvalue = state.found
        return EigenSolution.from_components(A, AK, eigenvalues, self._gram, next_eigenvalue)

    def _multiply(self, block: Floats) -> Floats:
        """Return K' times the block; the first product also computes the means of K."""
        if self._gram is None:
            self._gram, product = center_gram(self._source, block, self._workers)
            return product
        return self._gram.multiply(block)

    def _extend_inner_products(self, start: int, stop: int) -> Floats:
        """Return QᵀZ, ZᵀZ and QᵀQ of the first columns; those up to ``start`` are known."""
        Q, Z, new = self._Q[:, :stop], self._Z[:, :stop], slice(start, stop)
        inner = self._inner[:, :stop, :stop]
        for at, (left, right) in enumerate(((Q, Z), (Z, Z), (Q, Q))):
            inner[at, :, new] = inner_in_double(left, right[:, new], self._workers)
            inner[at, new, :start] = inner[at, :start, new].T
            inner[at, new, new] += inner[at, new, new].T.copy()
            inner[at, new, new] /= 2
        return inner

    def _components(
        self, Q: Floats, Z: Floats, values: Floats, T: Floats
    ) -> tuple[Floats, Floats, Floats, float]:
        # Components beyond the rank are zero.
        leading, eigenvalues = np.zeros((self._r, Q.shape[1])), np.zeros(self._r)
        leading[: len(T)], eigenvalues[: len(values)] = T[: self._r], values[: self._r]
        A, AK = (multiply_rows(part, leading.T, self._workers).T for part in (Q, Z))
        next_eigenvalue = float(values[self._r]) if len(values) > self._r else 0.0
        return A, AK, eigenvalues.astype(Q.dtype), next_eigenvalue

    def _record(
        self,
        number: int,
        seconds: float,
        found: tuple[Floats, Floats, Floats, float],
        change: float,
        recovery: str,
    ) -> PassRecord:
        A, AK, eigenvalues, next_eigenvalue = found
        assert self._gram is not None
        residuals = relative_residuals(A, AK, eigenvalues)
        certificate = certify(
            eigenvalues,
            residuals,
            inner_in_double(A.T, AK.T),
            self._gram.squared_norm_estimate,
            next_eigenvalue,
        )
        return PassRecord(
            number=number,
            seconds=seconds,
            eigenvalues=eigenvalues,
            residuals=residuals,
            gains=np.full(self._r, np.nan),
            entries=self._gram.entries,
            change=change,
            orthonormality_defect=certificate.orthonormality_defect,
            excess_error=certificate.excess_error,
            recovery=recovery,
        )


def _change(A: Floats, previous: Floats) -> float:
    """Return the squared distance in feature space to the components with projections AK'."""
    # Components keep their order but not their sign.
    products = np.einsum("il,il->i", A, previous)
    return float(np.sum(2 - 2 * np.minimum(np.abs(products), 1)))


def _orthonormal(block: Floats, Q: Floats, workers: Workers) -> Floats:
    """Return an orthonormal basis of the block's part orthogonal to Q (twice is enough)."""
    scale = np.linalg.norm(block, axis=0).max(initial=0.0)
    for _ in range(2):
        block = _project_out(Q, block, workers)
    U, sizes, _ = np.linalg.svd(block, full_matrices=False)
    U = U[:, sizes > _NOISE * np.finfo(block.dtype).eps * scale]
    return _project_out(Q, U, workers)


def _project_out(Q: Floats, block: Floats, workers: Workers) -> Floats:
    """Return the block less its projection on Q."""
    return block - multiply_rows(Q, inner_in_double(Q, block, workers), workers)
