"""Block Krylov solver with restarts, started from landmarks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from ikpca.errors import Choice, InvalidInput, invalid_parameter
from ikpca.gram import CenteredGram, GramSource, center_gram, tile_slices
from ikpca.gram.centering import NOT_FINITE, GramMeans, center_columns
from ikpca.gram.resources import Workers
from ikpca.gram.sources import DistributedSource
from ikpca.kernels import Floats, Indices
from ikpca.solvers.base import (
    EigenSolution,
    Outcome,
    PassRecord,
    RunSettings,
    Solver,
    run_passes,
)
from ikpca.solvers.dense import Dense
from ikpca.solvers.landmarks import (
    DIRECTIONS_PER_COMPONENT,
    LANDMARK_KINDS,
    LandmarkStart,
    choose_landmarks,
)
from ikpca.solvers.problem import Plan, Problem
from ikpca.solvers.rayleigh_ritz import (
    certify,
    inner_in_double,
    multiply_rows,
    rayleigh_ritz,
    relative_residuals,
    sample_residuals,
)

#: First number of components for a fraction of the variance.
_FIRST_VARIANCE_COMPONENTS = 32
# Sizes and expected passes; benchmarks/frontier.py measures fits with them.
#: Number of landmarks of few rows: at least, at most; of many rows, at most.
_MIN_LANDMARKS, _LANDMARKS, _MAX_LANDMARKS = 256, 512, 1024
#: Numbers of blocks before a restart; the largest that the budget allows is used.
_BLOCKS = (8, 6, 4, 3, 2)
#: Passes for which the basis contains directions of the landmarks. They reduce residuals along the
#: projections at once, but later they amplify rounding errors.
DIRECTION_PASSES = 2
#: Largest usual residual after the first pass, and its reduction by every other pass.
_FIRST_RESIDUAL, _REDUCTION = 1e-2, 10
#: Cost of new memory for a kernel value, in operations; more than that of some values.
KEEPING_COST = 500
#: Least number of columns of a narrow block, least number of them that saves time, and largest:
#: rounding their width must not leave fewer columns than components.
_NARROW_BLOCK, _MIN_BLOCKS, _MAX_BLOCKS = 16, 3, 16
#: Least number of rows for which sampling residuals along the projections costs little.
_SAMPLED_ROWS = 2048
# Limits of rounding errors and of residuals.
#: Rounding errors of a new block, relative to its largest column, in units of machine epsilon.
#: A smaller number costs passes on low-rank kernels; a larger one ends runs too early.
_NOISE = 4
#: Ritz values below this fraction of the largest, or this multiple of machine epsilon, are zero.
_DROP, _DROP_EPSILONS = 1e-12, 10
#: Rounding error of a negative Ritz value, relative to the largest, in units of machine epsilon.
_NEGATIVE_EPSILONS = 100
#: Largest residual along the coefficients, in units of tol, with which residuals along the
#: projections are sampled, and least tol for it, in units of machine epsilon.
_SAMPLED_RESIDUAL, _SAMPLED_EPSILONS = 300, 10
#: Largest difference of eigenvalues that may be equal, relative to the largest, in units of tol.
_EQUAL_TOLS = 100
#: Random vectors of the first block. For tolerances below the limit, as columns of their own would
#: cost a pass, they are added to its other columns, with this power of machine epsilon as length.
_PROBES, _LOOSE_TOL, _PERTURBATION_POWER = 4, 1e-4, 3 / 8
#: Relative residual below which a component misses less than 1e-8 of its variance.
_CONVERGED_RESIDUAL = 1e-4
#: Sampled rows of K per product.
_STRIP_ROWS = 64


#: Coefficients, projections and eigenvalues, and the next eigenvalue.
Components: TypeAlias = tuple[Floats, Floats, Floats, float]


def feature_space_pairs(
    values: Floats, vectors: Floats, inner: Floats, n_components: int, eps: float
) -> tuple[Floats, Floats]:
    """Return Ritz values, and T with A = TQᵀ, from N = QᵀK'Q, its eigenpairs, and S = (K'Q)ᵀK'Q.

    Ritz pairs in feature space capture the most variance, but their coefficients in near-null
    directions amplify rounding errors. So once the leading pairs have converged, and for an
    indefinite kernel, the pairs in coefficient space are used. ``eps`` is the machine epsilon of
    the basis.
    """
    N, S = inner
    if not len(values):
        # A kernel matrix without variance leaves nothing to multiply.
        return values, vectors
    drop = max(_DROP, _DROP_EPSILONS * eps)
    indefinite = values[-1] < -_NEGATIVE_EPSILONS * eps * values[0]
    if not indefinite:
        # Residuals that no longer affect the captured variance, as differences of squares.
        leading = vectors[:, :n_components]
        squares = np.einsum("ir,ij,jr->r", leading, S, leading, optimize=True)
        squares -= np.square(values[:n_components])
        limit = max(_CONVERGED_RESIDUAL**2, _DROP_EPSILONS * eps)
        if not (squares <= limit * np.square(values[0])).all():
            return rayleigh_ritz(N, S, drop=drop)
        values = np.where(values > drop * values[0], values, 0.0)
    roots = np.sqrt(np.maximum(values, 0))[:, None]
    T = np.divide(vectors.T, roots, out=np.zeros_like(vectors), where=roots > 0)
    return values, T


@dataclass(frozen=True, eq=False)
class KrylovState:
    """State between two passes; all but the first fields are set in checkpoints only."""

    #: Number of basis columns, next block, finished passes, and blocks of a pass.
    columns: int
    block: Floats
    passes: int
    blocks: int
    #: None before the first pass.
    components: Components | None = None
    #: Residuals along the projections and their bounds, if they are within the tolerance and those
    #: along the coefficients are not.
    sampled: tuple[Floats, Floats] | None = None
    #: Variance outside of the basis before the last random block.
    remainder: float = np.inf
    plan: Plan | None = None
    means: GramMeans | None = None
    #: Q and Z = K'Q, and their inner products QᵀZ and ZᵀZ.
    basis: Floats | None = None
    products: Floats | None = None
    inner_products: Floats | None = None


def block_size(n_components: int) -> int:
    """Return an oversampled block size, which converges in fewer passes."""
    return n_components + max(8, min(n_components, 16))


def default_start(n_samples: int, tol: float) -> tuple[int, int]:
    """Return l/20 landmarks for few rows, l/60 for many, and the passes after the first one."""
    few = min(max(_MIN_LANDMARKS, n_samples // 20), _LANDMARKS)
    n_landmarks = max(few, min(n_samples // 60, _MAX_LANDMARKS))
    reduction = _FIRST_RESIDUAL / max(tol, float(np.finfo(np.float64).eps))
    return n_landmarks, max(0, int(np.ceil(np.log(reduction) / np.log(_REDUCTION))))


def keeps_values(problem: Problem, later_passes: int) -> bool:
    """Return True if new memory for kernel values takes less time than computing them again."""
    return later_passes * problem.entry_cost > KEEPING_COST


def is_sampled(problem: Problem) -> bool:
    """Return True if residuals along the projections are sampled."""
    return problem.n_samples >= _SAMPLED_ROWS and problem.engine is None


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
        Choice(LANDMARK_KINDS).check("init", self.init)
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

    def plan(
        self, problem: Problem, n_components: int, start: tuple[int, int] | None = None
    ) -> Plan:
        """Plan landmarks, basis and blocks within half of the budget, and the form of K.

        Kernel values are kept only for further passes. ``start`` is that of :meth:`solve`.
        """
        n_landmarks, later_passes = start or default_start(problem.n_samples, 0.0)
        size, half = block_size(n_components), problem.budget.available // 2
        width = size * problem.row_bytes
        blocks = next((count for count in _BLOCKS if (4 * count + 6) * width <= half), _BLOCKS[-1])
        directions = 0
        if is_sampled(problem) and later_passes <= DIRECTION_PASSES and blocks > _BLOCKS[-1]:
            # As many as columns of all blocks.
            directions = blocks * size
        # A start has four kernel matrices of landmarks, and the coordinates of all rows.
        coordinates = (DIRECTIONS_PER_COMPONENT + 3) * width
        fitting = int(np.sqrt(max(half - coordinates, 0) / 32))
        n_landmarks = max(2 * size, min(n_landmarks, problem.n_samples, fitting))
        columns = blocks * size + directions
        basis = 2 * columns * problem.row_bytes + 6 * width
        n_bytes = max(basis, 32 * n_landmarks**2 + coordinates)
        keep, n_blocks = keeps_values(problem, later_passes), 1
        narrow = later_passes > DIRECTION_PASSES and size >= _MIN_BLOCKS * _NARROW_BLOCK
        if narrow and self._may_narrow(problem, n_bytes, keep=keep):
            n_blocks = min(size // _NARROW_BLOCK, _MAX_BLOCKS)
        form: Literal["tiles"] | None = "tiles" if keep else None
        return Plan(n_bytes, form, None, n_landmarks, directions, columns, n_blocks)

    @staticmethod
    def _may_narrow(problem: Problem, n_bytes: int, *, keep: bool) -> bool:
        """Return True if narrow blocks may replace a block of all columns.

        With narrow blocks a basis of fewer columns has the same accuracy, but K is read for each of
        them, so that all values must be in memory. They cannot contain a warm start, and in single
        precision they do not always separate close eigenvalues.
        """
        if problem.engine is not None or problem.start is not None:
            return False
        matrix_bytes = problem.n_samples * problem.row_bytes // 2
        in_memory = keep and matrix_bytes <= problem.budget.available - n_bytes
        return problem.X.dtype == np.float64 and (problem.kernel is None or in_memory)

    def solve(
        self,
        problem: Problem,
        n_components: float | None,
        settings: RunSettings,
        start: tuple[int, int] | None = None,
        earlier: Sequence[PassRecord] = (),
        choice: str = "",
    ) -> EigenSolution:
        """Compute the leading components; the parameters are those of :meth:`Solver.solve`.

        For a fraction of the variance, the number of components is doubled, starting from the last
        ones, until they explain enough. A solver that chooses this one gives the ``start``, the
        number of landmarks and the passes that are expected after the first; the ``earlier`` passes
        of the fit; and its ``choice``, a text for the first record.
        """
        start = start or default_start(problem.n_samples, settings.tol)
        if isinstance(n_components, Integral):
            number = min(int(n_components), problem.n_samples)
            return self._solve_number(problem, number, settings, start, earlier, choice)
        assert n_components is not None
        number = _FIRST_VARIANCE_COMPONENTS
        while self.is_applicable(number, problem.n_samples):
            solution = self._solve_number(problem, number, settings, start, earlier, choice)
            explained = float(solution.eigenvalues.sum(dtype=np.float64))
            if solution.outcome is Outcome.INTERRUPTED or explained > n_components * solution.trace:
                return solution.select_fraction(n_components)
            problem, number = replace(problem, start=solution.projections.T), 2 * number
            earlier, choice = solution.records, ""
        solution = Dense().solve(problem, n_components, settings)
        entries = earlier[-1].entries if earlier else 0
        records = [
            replace(record, number=len(earlier) + 1, entries=entries + record.entries)
            for record in solution.records
        ]
        return replace(solution, records=[*earlier, *records])

    def _solve_number(
        self,
        problem: Problem,
        n_components: int,
        settings: RunSettings,
        start: tuple[int, int],
        earlier: Sequence[PassRecord],
        choice: str,
    ) -> EigenSolution:
        """Compute a number of components, with less precise kernel values if ``tol`` allows it."""
        used = problem.in_single_precision(settings.tol)
        saved, seed, error = settings.saved, problem.seed, used.error
        plan = None if saved is None else saved.progress.plan
        plan = plan or self.plan(used, n_components, start)
        if plan.keep is not None and (rounding := used.compact_error(settings.tol)) is not None:
            plan, error = replace(plan, keep="compact"), error + rounding
        settings = replace(settings, tol=settings.tol - error)
        with used.open(plan) as (source, workers):
            plan = replace(plan, side=source.side)
            passes = KrylovPasses(source, n_components, plan, settings.tol, seed, workers)
            passes.error, passes.is_converted = error, used.exact is not None
            passes.earlier, passes.choice = earlier, choice
            if saved is None:
                chosen = choose_landmarks(self.init, source, plan.n_landmarks, seed, workers)
                landmarks = LandmarkStart(source, block_size(n_components), chosen, workers)
                state = passes.start(landmarks, problem.start)
                del landmarks
            else:
                state = passes.resume(saved.progress)
            state, outcome, records = run_passes(passes, state, settings)
            solution = passes.solution(state)
            return replace(solution, outcome=outcome, records=[*earlier, *records])


class KrylovPasses:
    """Passes: multiply one or several blocks, extract components, make the next block.

    The orthonormal basis Q and Z = K'Q are two arrays, allocated once, and their inner products are
    updated with every block; an interrupted pass has only written to columns beyond those that the
    state counts, unless it restarted the basis.
    """

    def __init__(
        self,
        source: GramSource,
        n_components: int,
        plan: Plan,
        tol: float,
        seed: int,
        workers: Workers,
    ) -> None:
        self._source = source
        self._r, self._size = n_components, block_size(n_components)
        self._plan, columns = plan, plan.n_columns
        self._tol, self._seed = tol, seed
        self._Q = np.empty((source.n_samples, columns), dtype=source.dtype, order="F")
        self._Z = np.empty_like(self._Q)
        # QᵀZ and ZᵀZ.
        self._inner = np.empty((2, columns, columns))
        self._workers = workers
        #: Error of kernel values, relative to λ₁, and whether they are those of rows in single
        #: instead of double precision.
        self.error, self.is_converted = 0.0, False
        #: Passes of the fit before this run, and remark of the first record.
        self.earlier: Sequence[PassRecord] = ()
        self.choice = ""
        self._gram: CenteredGram | None = None
        self._eps = float(np.finfo(source.dtype).eps)
        #: Passes before the one that last restarted the basis.
        self._restarted: int | None = None

    def start(self, landmarks: LandmarkStart, warm: Floats | None) -> KrylovState:
        """Return the first state: landmark directions, whose products are known, and a block.

        The block consists of a warm start and projections on landmark components, which are a
        multiplication by K' ahead of a random block, and of random vectors, since landmarks may
        miss components of a few rows.
        """
        directions, indices = landmarks.directions[: self._plan.n_directions], landmarks.indices
        number, lengths = len(directions), np.linalg.norm(directions, axis=1)
        Q, Z = self._Q[:, :number], self._Z[:, :number]
        Q[...] = 0
        Q[indices] = (directions / lengths[:, None]).T
        np.divide(landmarks.coordinates[:number].T, lengths.astype(Z.dtype), out=Z)
        self._ritz_pairs(0, number)
        block = landmarks.projections.T
        if warm is not None:
            size = block.shape[1]
            warm = center_columns(warm.astype(block.dtype))[:, :size]
            block = np.hstack([warm, block[:, : size - warm.shape[1]]])
        blocks, width = self._plan.n_blocks, self._size // self._plan.n_blocks
        block = _orthonormal(block, Q, self._workers)
        if block.shape[1] < width:
            blocks, width = 1, self._size
        block, remainder = block[:, :width], float(landmarks.distances.sum(dtype=np.float64))
        # A missed component has at most the variance outside of the span of the directions.
        if remainder > landmarks.eigenvalues[self._r - 1]:
            if self._tol >= _LOOSE_TOL:
                probes = self._random_block(landmarks.distances, _PROBES, 0)
                block = np.hstack([block[:, : width - _PROBES], probes])
            else:
                probes = self._random_block(landmarks.distances, width, 0)
                size = np.finfo(block.dtype).eps ** _PERTURBATION_POWER
                lengths = np.linalg.norm(probes, axis=0).astype(probes.dtype)
                block = np.pad(block, ((0, 0), (0, width - block.shape[1])))
                block += probes * (size / lengths)
            block = _orthonormal(block, Q, self._workers)
        return KrylovState(number, block, 0, blocks)

    def _random_block(self, distances: Floats, number: int, passes: int) -> Floats:
        """Return random vectors, weighted by the distances of the rows from a subspace."""
        rng = np.random.default_rng([self._seed, 8, passes])
        weights = np.sqrt(distances + np.finfo(distances.dtype).eps * distances.mean())[:, None]
        block = rng.standard_normal(size=(len(weights), number)) * weights
        return block.astype(self._Q.dtype)

    def step(self, state: KrylovState) -> tuple[KrylovState, PassRecord, Outcome | None]:
        """Run one pass over K."""
        started = time.perf_counter()
        first, columns = self._add_blocks(state)
        ritz_values, vectors = self._ritz_pairs(state.columns, columns)
        if self._may_miss_components(ritz_values, state.blocks):
            state = self._start_random(state)
            first, columns = self._add_blocks(state)
            ritz_values, vectors = self._ritz_pairs(0, columns)
        Q, Z = self._Q[:, :columns], self._Z[:, :columns]
        inner = self._inner[:, :columns, :columns]
        values, T = feature_space_pairs(ritz_values, vectors, inner, self._r, self._eps)
        components = self._components(Q, Z, values, T)
        change = np.inf if state.components is None else _change(components[0], state.components[1])
        state = replace(
            state,
            columns=columns,
            block=Z[:, :0],
            passes=state.passes + 1,
            components=components,
            sampled=self._sampled_residuals(components, Z, T),
        )
        outcome: Outcome | None = Outcome.CONVERGED
        if state.sampled is None:
            state = self._next_block(state, first, vectors, T)
            if state.block.shape[1] == 0:
                state = self._probe_remainder(state)
            # An empty block: the basis spans the range of K' up to rounding.
            outcome = Outcome.STALLED if state.block.shape[1] == 0 else None
        seconds = time.perf_counter() - started
        return state, self._record(state, components, seconds, change), outcome

    def _add_blocks(self, state: KrylovState) -> tuple[int, int]:
        """Multiply the blocks of a pass; return the first column of the last one, and the end."""
        block, first, stop = state.block, state.columns, state.columns
        for number in range(state.blocks):
            if number:
                block = _orthonormal(self._Z[:, first:stop], self._Q[:, :stop], self._workers)
            if number and not block.shape[1]:
                break
            first, stop = stop, stop + block.shape[1]
            self._Q[:, first:stop] = block
            self._Z[:, first:stop] = self._multiply(block)
            if not np.isfinite(self._Z[:, first:stop]).all():
                raise InvalidInput(NOT_FINITE)
        return first, stop

    def _may_miss_components(self, ritz_values: Floats, blocks: int) -> bool:
        """Return True if as many eigenvalues are equal as a narrow block has columns.

        A basis of such blocks cannot contain more eigenvectors of a multiple eigenvalue.
        """
        values, width = ritz_values[: self._r], self._size // blocks
        limit = _EQUAL_TOLS * max(self._tol, self._eps) * values.max(initial=0.0)
        last = values[width - 1 :]
        equal = values[: len(last)] - last <= limit
        return blocks > 1 and bool((equal & (last > limit)).any())

    def _start_random(self, state: KrylovState) -> KrylovState:
        """Return a state with one wide block, K' times random vectors, which replaces the basis."""
        self._restarted = state.passes
        shape = (self._source.n_samples, self._size)
        vectors = np.random.default_rng([self._seed, 7]).normal(size=shape)
        block = self._multiply(vectors.astype(self._Q.dtype))
        block = _orthonormal(block, self._Q[:, :0], self._workers)
        return replace(state, columns=0, block=block, blocks=1)

    def _next_block(
        self, state: KrylovState, first: int, vectors: Floats, T: Floats
    ) -> KrylovState:
        """Add the next block, and restart the basis if necessary.

        ``first`` is the first column of the last block; ``vectors`` and ``T`` are Ritz vectors and
        components in terms of the basis.
        """
        size, kept = self._size, state.columns
        Q, Z, leading = self._Q[:, :kept], self._Z[:, :kept], vectors[:, :size]
        latest = Z[:, first:]
        if self._plan.n_directions and state.passes == DIRECTION_PASSES:
            # Projections on the leading components start a basis without directions.
            latest, kept = multiply_rows(Z, T[:size].T, self._workers), 0
        elif kept + size > self._Q.shape[1]:
            # Replace the basis by the leading Ritz vectors, without a product with K.
            kept, self._restarted = leading.shape[1], state.passes - 1
            for array, part in ((self._Q, Q), (self._Z, Z)):
                array[:, :kept] = multiply_rows(part, leading, self._workers)
            self._ritz_pairs(0, kept)
            latest = self._Z[:, :kept]
        block = _orthonormal(latest, self._Q[:, :kept], self._workers)
        return replace(state, columns=kept, block=block[:, : size // state.blocks])

    def _probe_remainder(self, state: KrylovState) -> KrylovState:
        """Add a random block if variance that the basis misses may belong to a component.

        A basis whose products it contains spans an invariant subspace, not necessarily all of the
        range of K'. The trace of K' shows how much is missing; once a block has found nothing of
        it, it is rounding error.
        """
        gram, columns = self._gram, state.columns
        assert gram is not None
        # A restart may have replaced the basis.
        inner = self._inner[:, :columns, :columns]
        pairs = self._ritz_pairs(columns, columns)
        values, T = feature_space_pairs(*pairs, inner, self._r, self._eps)
        remainder = gram.mean_diagonal * gram.n_samples - float(values.sum())
        last = float(values[self._r - 1]) if len(values) >= self._r else 0.0
        noise = gram.rounding * gram.n_samples
        if remainder <= max(noise, last) or not state.remainder - remainder > noise:
            return state
        distances = self._distances(self._Z[:, :columns], T)
        width = min(self._size, self._Q.shape[1] - columns)
        block = self._random_block(distances, width, state.passes)
        block = _orthonormal(block, self._Q[:, :columns], self._workers)
        return replace(state, block=block, remainder=remainder)

    def progress(self, state: KrylovState) -> KrylovState | None:
        """Return the checkpoint data after a pass; None if a restart has overwritten its basis."""
        if self._restarted == state.passes:
            return None
        assert self._gram is not None
        own = slice(0, state.columns)
        return replace(
            state,
            plan=self._plan,
            means=self._gram.means,
            basis=self._Q[:, own],
            products=self._Z[:, own],
            inner_products=self._inner[:, own, own],
        )

    def resume(self, saved: KrylovState) -> KrylovState:
        """Restore the basis of an earlier run, and return its state."""
        assert saved.means is not None
        own = slice(0, saved.columns)
        self._Q[:, own], self._Z[:, own] = saved.basis, saved.products
        self._inner[:, own, own] = saved.inner_products
        self._gram = CenteredGram(self._source, saved.means, self._workers)
        return replace(saved, basis=None, products=None)

    def solution(self, state: KrylovState) -> EigenSolution:
        """Return the components after a pass; raise an interrupt of the first pass again."""
        if state.components is None or self._gram is None:
            raise KeyboardInterrupt
        A, AK, eigenvalues, next_eigenvalue = state.components
        solution = EigenSolution.from_components(
            A, AK, eigenvalues, self._gram, next_eigenvalue, state.sampled
        ).with_error(self.error)
        return solution.astype_float64() if self.is_converted else solution

    def _multiply(self, block: Floats) -> Floats:
        """Return K' times the block; the first product also computes the means of K."""
        if self._gram is None:
            self._gram, product = center_gram(self._source, block, self._workers)
            return product
        return self._gram.multiply(block)

    def _ritz_pairs(self, start: int, stop: int) -> tuple[Floats, Floats]:
        """Return the eigenpairs of QᵀZ, descending: Ritz pairs of K' in coefficient space.

        QᵀZ and ZᵀZ are extended by the columns from ``start`` on.
        """
        Q, Z, new = self._Q[:, :stop], self._Z[:, :stop], slice(start, stop)
        inner = self._inner[:, :stop, :stop]
        for at, (left, right) in enumerate(((Q, Z), (Z, Z))):
            inner[at, :, new] = inner_in_double(left, right[:, new], self._workers)
            inner[at, new, :start] = inner[at, :start, new].T
            inner[at, new, new] += inner[at, new, new].T.copy()
            inner[at, new, new] /= 2
        values, vectors = np.linalg.eigh(inner[0])
        return values[::-1], vectors[:, ::-1]

    def _components(self, Q: Floats, Z: Floats, values: Floats, T: Floats) -> Components:
        # Components beyond the rank are zero.
        leading, eigenvalues = np.zeros((self._r, Q.shape[1])), np.zeros(self._r)
        leading[: len(T)], eigenvalues[: len(values)] = T[: self._r], values[: self._r]
        A, AK = (multiply_rows(part, leading.T, self._workers).T for part in (Q, Z))
        next_eigenvalue = float(values[self._r]) if len(values) > self._r else 0.0
        return A, AK, eigenvalues.astype(Q.dtype), next_eigenvalue

    def _sampled_residuals(
        self, components: Components, Z: Floats, T: Floats
    ) -> tuple[Floats, Floats] | None:
        """Estimate residuals along the projections if those along the coefficients exceed tol.

        They are a multiplication by K' ahead, and a sample of its rows takes a small part of a
        pass. The result is None if its bounds exceed tol.
        """
        A, AK, eigenvalues, _ = components
        gram, largest = self._gram, float(eigenvalues.max(initial=0.0))
        residual = float(relative_residuals(A, AK, eigenvalues).max(initial=0.0))
        if len(Z) < _SAMPLED_ROWS or isinstance(self._source, DistributedSource):
            return None
        if self._tol < _SAMPLED_EPSILONS * self._eps:
            return None
        if not self._tol < residual <= _SAMPLED_RESIDUAL * self._tol:
            return None
        assert gram is not None
        lengths = np.linalg.norm(AK.astype(np.float64), axis=1)
        V = np.divide(AK.T, lengths, out=np.zeros(AK.T.shape), where=lengths > 0).astype(AK.dtype)

        def rows_of(indices: Indices) -> Floats:
            parts = (indices[part] for part in tile_slices(len(indices), _STRIP_ROWS))
            products = np.vstack([gram.strip(part).dot(V) for part in parts])
            return (products - V[indices] * eigenvalues).astype(np.float64)

        weights = gram.diagonal(), self._distances(Z, T), np.square(V).sum(axis=1)
        residuals, bounds, _ = sample_residuals(rows_of, *weights, self._seed, self._tol, largest)
        return (residuals, bounds) if bounds.max() <= self._tol else None

    def _distances(self, Z: Floats, T: Floats) -> Floats:
        """Return the squared distances of all rows from the span of the basis, by strips."""
        assert self._gram is not None
        T = T.astype(Z.dtype)

        def part(strip: slice) -> Floats:
            projections = Z[strip] @ T.T
            return np.einsum("ij,ij->i", projections, projections)

        parts = self._workers.map(part, tile_slices(len(Z)))
        return np.abs(self._gram.diagonal() - np.concatenate(list(parts)))

    def _record(
        self, state: KrylovState, components: Components, seconds: float, change: float
    ) -> PassRecord:
        A, AK, eigenvalues, next_eigenvalue = components
        assert self._gram is not None
        residuals, bounds = state.sampled or (relative_residuals(A, AK, eigenvalues), None)
        entries = self._gram.entries + (self.earlier[-1].entries if self.earlier else 0)
        certificate = certify(
            eigenvalues,
            residuals,
            inner_in_double(A.T, AK.T),
            self._gram.squared_norm_estimate,
            next_eigenvalue,
            bounds,
            of_projections=bounds is not None,
        )
        return PassRecord(
            number=len(self.earlier) + state.passes,
            seconds=seconds,
            eigenvalues=eigenvalues,
            residuals=residuals,
            gains=np.full(self._r, np.nan),
            entries=entries,
            change=change,
            orthonormality_defect=certificate.orthonormality_defect,
            excess_error=certificate.excess_error,
            choice=self.choice if state.passes == 1 else "",
        )


def _change(A: Floats, previous: Floats) -> float:
    """Return the squared distance in feature space to the components with projections AK'."""
    # Components keep their order but not their sign.
    products = np.einsum("il,il->i", A, previous)
    return float(np.sum(2 - 2 * np.minimum(np.abs(products), 1)))


def _orthonormal(block: Floats, Q: Floats, workers: Workers) -> Floats:
    """Return an orthonormal basis of the block's part orthogonal to Q (two Gram–Schmidt passes).

    A part that is small compared to the block may not be orthogonal yet when its basis is.
    """
    eps = float(np.finfo(block.dtype).eps)
    scale = np.linalg.norm(block, axis=0).max(initial=0.0)
    for _ in range(2):
        block = block - _projection(Q, block, workers)
    U, sizes, _ = np.linalg.svd(block, full_matrices=False)
    U = U[:, sizes > _NOISE * eps * scale]
    rest = _projection(Q, U, workers)
    U = U - rest
    if np.abs(rest).max(initial=0.0) > np.sqrt(eps):
        U = np.linalg.qr(U)[0]
        U = U - _projection(Q, U, workers)
    return U


def _projection(Q: Floats, block: Floats, workers: Workers) -> Floats:
    """Return the projection of a block on Q."""
    return multiply_rows(Q, inner_in_double(Q, block, workers), workers)
