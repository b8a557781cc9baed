"""Block Krylov solver with restarts, started from landmarks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ikpca.errors import InvalidInput
from ikpca.gram import (
    NOT_FINITE,
    SERIAL,
    CenteredGram,
    GramMeans,
    GramSource,
    Workers,
    center_columns,
    center_gram,
    count_entries,
)
from ikpca.kernels import Floats
from ikpca.metrics import relative_residuals
from ikpca.solvers.base import (
    NO_CHECKPOINT,
    CheckpointProtocol,
    Observer,
    Outcome,
    PassRecord,
    interruptible,
    run_passes,
)
from ikpca.solvers.landmarks import choose_landmarks, landmark_start
from ikpca.solvers.rayleigh_ritz import certify, inner_in_double, rayleigh_ritz

#: Relative residual from which on a component lacks less than 1e-8 of its variance.
_SETTLED = 1e-4


@dataclass(frozen=True)
class RitzPairs:
    """What a basis Q knows of K', from N = QᵀK'Q and S = (K'Q)ᵀK'Q.

    Parameters
    ----------
    values, vectors : ndarray
        Eigenpairs of N, descending: Ritz pairs in the space of coefficients.
    N, S : ndarray of shape (columns, columns)
    eps : float
        Of the basis.
    """

    values: Floats
    vectors: Floats
    N: Floats
    S: Floats
    eps: float

    @classmethod
    def of(cls, N: Floats, S: Floats, eps: float) -> RitzPairs:
        """Decompose N."""
        values, vectors = np.linalg.eigh(N)
        return cls(values[::-1], vectors[:, ::-1], N, S, eps)

    def components(self, n_components: int) -> tuple[Floats, Floats]:
        """Ritz values, and T with A = TQᵀ.

        Ritz pairs in feature space hold the most variance after a given pass. They are taken with
        coefficients of near-null directions, though, which rounding blows up; so once the leading
        pairs are settled, and for an indefinite kernel, those of the space of coefficients serve.
        """
        drop = max(1e-12, 10 * self.eps)
        indefinite = self.values[-1] < -100 * self.eps * max(self.values[0], 0.0)
        if not indefinite and not self._settled(n_components):
            return rayleigh_ritz(self.N, self.S, drop=drop)
        values = self.values
        if not indefinite:
            values = np.where(values > drop * values[0], values, 0.0)
        roots = np.sqrt(np.clip(values, 0, None))[:, None]
        T = np.divide(self.vectors.T, roots, out=np.zeros_like(self.vectors), where=roots > 0)
        return values, T

    def _settled(self, n_components: int) -> bool:
        """Whether no leading pair has a residual that variance would still notice."""
        leading = self.vectors[:, :n_components]
        squares = np.einsum("ir,ij,jr->r", leading, self.S, leading, optimize=True)
        squares -= np.square(self.values[:n_components])
        return float(squares.max(initial=0.0)) <= (_SETTLED * float(self.values[0])) ** 2


@dataclass(frozen=True)
class KrylovOptions:
    """A request.

    Parameters
    ----------
    max_iter : int
        Passes over K.
    n_landmarks : int
        Rows of the start.
    landmarks : {"landmarks", "pivoted"}
        How they are chosen.
    max_blocks : int
        Blocks of vectors before a restart; two at least.
    start : ndarray of shape (l, columns), optional
        Vectors to begin with, before landmarks: a warm start.
    """

    max_iter: int = 100
    n_landmarks: int = 512
    landmarks: str = "landmarks"
    max_blocks: int = 8
    start: Floats | None = None


@dataclass(frozen=True)
class KrylovState:
    """How much of the basis is known, and the block that comes next."""

    columns: int
    block: Floats
    passes: int


@dataclass(frozen=True, eq=False)
class KrylovProgress:
    """All that a run needs to go on, beside K itself.

    Parameters
    ----------
    state : KrylovState
    basis, products : ndarray of shape (l, columns)
        Q and Z = K'Q, as far as they are known.
    found : tuple
        Coefficients, projections and eigenvalues of the moment, and the next eigenvalue.
    means : GramMeans
    """

    state: KrylovState
    basis: Floats
    products: Floats
    found: tuple[Floats, Floats, Floats, float]
    means: GramMeans


@dataclass(frozen=True)
class KrylovSolution:
    """Components and how they came about."""

    coefficients: Floats
    projections: Floats
    eigenvalues: Floats
    next_eigenvalue: float
    gram: CenteredGram
    outcome: Outcome
    records: list[PassRecord]


#: Makes observers, given a function that returns the solution of the moment.
ObserverFactory: TypeAlias = Callable[[Callable[[], KrylovSolution]], Sequence[Observer[Any, Any]]]


def block_size(n_components: int) -> int:
    """Oversampled: each pass then gains as much as several of a tight block."""
    return n_components + max(8, min(n_components, 16))


def solve_krylov(
    source: GramSource,
    n_components: int,
    options: KrylovOptions,
    *,
    seed: int,
    workers: Workers = SERIAL,
    watch: ObserverFactory = lambda snapshot: (),
    keeper: CheckpointProtocol = NO_CHECKPOINT,
) -> KrylovSolution:
    """Find the leading components of K'.

    Parameters
    ----------
    source : GramSource
        The uncentred kernel matrix.
    n_components : int
    options : KrylovOptions
    seed : int
        Of the landmarks.
    workers : Workers
        Share the tiles of K.
    watch : callable
        Makes the observers, given a function that returns the solution of the moment.
    keeper : Keeper
        May know where an earlier run was, and is told where this one is.
    """
    source = count_entries(source)
    step = _KrylovPass(source, n_components, options, workers)

    def snapshot(outcome: Outcome = Outcome.STOPPED, records: Any = ()) -> KrylovSolution:
        return replace(step.solution(), outcome=outcome, records=list(records))

    kept = keeper.recall()
    if kept is None:
        first = _first_block(source, block_size(n_components), options, seed, workers)
        state = KrylovState(0, _orthonormal(first, first[:, :0], workers), 0)
    else:
        state = step.go_on(kept.progress)
    keeper.describe_with(step.progress)
    done = run_passes(
        step, state, max_steps=options.max_iter, observers=watch(snapshot), keeper=keeper
    )
    return snapshot(done.outcome, done.reports)


def _first_block(
    source: GramSource, size: int, options: KrylovOptions, seed: int, workers: Workers
) -> Floats:
    """Projections on landmark components are K'-multiplied already: a step ahead of random.

    A warm start comes first, and landmarks fill what it leaves of the block.
    """
    known = np.empty((source.n_samples, 0), dtype=source.dtype)
    if options.start is not None:
        known = center_columns(options.start.astype(source.dtype))[:, :size]
    number = max(options.n_landmarks, 2 * size)
    chosen = choose_landmarks(options.landmarks, source, number, seed)
    found = landmark_start(source, size, chosen, workers).projections.T
    return np.hstack([known, found[:, : size - known.shape[1]]])


class _KrylovPass:
    """The step of the loop: multiply the newest block, extract, and make the next block.

    The orthonormal basis Q and Z = K'Q stand in two arrays that are made once; a pass that does not
    finish has only written beyond what the state counts.
    """

    def __init__(
        self, source: GramSource, n_components: int, options: KrylovOptions, workers: Workers
    ) -> None:
        self._source = source
        self._r = n_components
        columns = max(2, options.max_blocks) * block_size(n_components)
        self._Q = np.empty((source.n_samples, columns), dtype=source.dtype, order="F")
        self._Z = np.empty_like(self._Q)
        self._workers = workers
        self._gram: CenteredGram | None = None
        self._found: tuple[Floats, Floats, Floats, float] | None = None

    def __call__(self, state: KrylovState) -> tuple[KrylovState, PassRecord, Outcome | None]:
        """One pass over K."""
        begun = time.perf_counter()
        width = state.block.shape[1]
        known = state.columns + width
        self._Q[:, state.columns : known] = state.block
        # What follows rearranges the basis, and takes little time beside the product.
        with interruptible():
            self._Z[:, state.columns : known] = self._multiply(state.block)
        Q, Z = self._Q[:, :known], self._Z[:, :known]
        if not np.isfinite(Z[:, state.columns :]).all():
            raise InvalidInput(NOT_FINITE)
        N = inner_in_double(Q, Z, self._workers)
        S = inner_in_double(Z, Z, self._workers)
        ritz = RitzPairs.of((N + N.T) / 2, S, float(np.finfo(Q.dtype).eps))
        values, T = ritz.components(self._r)
        before, self._found = self._found, self._components(Q, Z, values, T)
        latest = Z[:, state.columns :]
        defect, recovery = _defect(Q, self._workers), ""
        if defect > np.sqrt(np.finfo(Q.dtype).eps):
            recovery = f"the basis had lost its orthonormality (by {defect:.1e}) and is built anew"
            # The best of what was found is where the new one begins.
            latest, known = Q @ ritz.vectors[:, :width].astype(Q.dtype), 0
        elif known + width > self._Q.shape[1]:
            known = self._restart(Q, Z, ritz.vectors[:, :width].astype(Q.dtype))
            latest = self._Z[:, :known]
        block = _orthonormal(latest, self._Q[:, :known], self._workers)[:, :width]
        seconds = time.perf_counter() - begun
        record = self._record(state.passes + 1, seconds, _change(before, self._found), recovery)
        # Nothing to add: all of the rank is known, or the rest drowns in rounding.
        ended = Outcome.PRECISE if block.shape[1] == 0 else None
        return KrylovState(known, block, state.passes + 1), record, ended

    def _restart(self, Q: Floats, Z: Floats, vectors: Floats) -> int:
        """Keep the best Ritz vectors and their products; nothing is multiplied again."""
        number = vectors.shape[1]
        self._Q[:, :number], self._Z[:, :number] = Q @ vectors, Z @ vectors
        return number

    def progress(self, state: KrylovState) -> KrylovProgress:
        """Where the run is after a pass."""
        assert self._gram is not None
        assert self._found is not None
        Q, Z = self._Q[:, : state.columns], self._Z[:, : state.columns]
        return KrylovProgress(state, Q, Z, self._found, self._gram.means)

    def go_on(self, earlier: KrylovProgress) -> KrylovState:
        """Take over the basis of another run."""
        columns = earlier.state.columns
        self._Q[:, :columns], self._Z[:, :columns] = earlier.basis, earlier.products
        self._found = earlier.found
        self._gram = CenteredGram.restored(self._source, earlier.means, self._workers)
        return earlier.state

    def solution(self) -> KrylovSolution:
        """Of the last finished pass."""
        if self._found is None or self._gram is None:
            # Interrupted before anything was known.
            raise KeyboardInterrupt
        coefficients, projections, values, following = self._found
        return KrylovSolution(
            coefficients, projections, values, following, self._gram, Outcome.STOPPED, []
        )

    def _multiply(self, block: Floats) -> Floats:
        """K' times the block; the first time, the means of K come along."""
        if self._gram is None:
            self._gram, product = center_gram(self._source, block, self._workers)
            return product
        return self._gram.multiply(block)

    def _components(
        self, Q: Floats, Z: Floats, values: Floats, T: Floats
    ) -> tuple[Floats, Floats, Floats, float]:
        leading = T[: self._r].astype(Q.dtype)
        A, AK = leading @ Q.T, leading @ Z.T
        missing = self._r - len(A)
        if missing > 0:
            A, AK = (np.pad(part, ((0, missing), (0, 0))) for part in (A, AK))
        kept = np.zeros(self._r)
        kept[: min(self._r, len(values))] = values[: self._r]
        following = float(values[self._r]) if len(values) > self._r else 0.0
        return A, AK, kept.astype(Q.dtype), following

    def _record(self, number: int, seconds: float, change: float, recovery: str) -> PassRecord:
        solution = self.solution()
        A, AK, values = solution.coefficients, solution.projections, solution.eigenvalues
        residuals = relative_residuals(A, AK, values)
        norm = solution.gram.squared_norm_estimate
        certificate = certify(
            values, residuals, inner_in_double(A.T, AK.T), norm, solution.next_eigenvalue
        )
        return PassRecord(
            number=number,
            seconds=seconds,
            eigenvalues=values,
            residuals=residuals,
            gains=np.full(self._r, np.nan),
            entries=solution.gram.entries,
            change=change,
            orthonormality_defect=certificate.orthonormality_defect,
            excess_error=certificate.excess_error,
            recovery="; ".join(part for part in (recovery, solution.gram.recovery) if part),
        )


def _defect(Q: Floats, workers: Workers) -> float:
    """max |QᵀQ − I|."""
    return float(np.abs(inner_in_double(Q, Q, workers) - np.eye(Q.shape[1])).max(initial=0.0))


def _change(before: Any, after: Any) -> float:
    """Squared distance in feature space from the components of the pass before."""
    if before is None:
        return float("inf")
    # Components keep their order but not their sign.
    products = np.einsum("il,il->i", after[0], before[1])
    return float(np.sum(2 - 2 * np.minimum(np.abs(products), 1)))


def _orthonormal(block: Floats, Q: Floats, workers: Workers) -> Floats:
    """An orthonormal basis of what the block adds to Q; twice is enough."""
    scale = np.linalg.norm(block, axis=0).max(initial=0.0)
    for _ in range(2):
        block = block - Q @ inner_in_double(Q, block, workers).astype(Q.dtype)
    U, sizes, _ = np.linalg.svd(block, full_matrices=False)
    noise = 10 * np.finfo(block.dtype).eps * np.sqrt(len(block)) * scale
    U = U[:, sizes > noise]
    return U - Q @ inner_in_double(Q, U, workers).astype(Q.dtype)
