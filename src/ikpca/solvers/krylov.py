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
        drop = max(1e-12, 10 * self.eps)
        indefinite = self.values[-1] < -100 * self.eps * max(self.values[0], 0.0)
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
        return float(squares.max(initial=0.0)) <= (_CONVERGED_RESIDUAL * float(self.values[0])) ** 2


@dataclass(frozen=True)
class KrylovOptions:
    """Options of the Krylov solver.

    Parameters
    ----------
    max_iter : int
        Passes over K.
    n_landmarks : int
        Landmarks of the start.
    landmarks : {"landmarks", "pivoted"}
        Selection of the landmarks.
    max_blocks : int
        Blocks of vectors before a restart; at least two.
    start : ndarray of shape (l, columns), optional
        Vectors of a warm start, used before the landmarks.
    """

    max_iter: int = 100
    n_landmarks: int = 512
    landmarks: str = "landmarks"
    max_blocks: int = 8
    start: Floats | None = None


@dataclass(frozen=True)
class KrylovState:
    """Number of basis columns, the next block, and the number of passes."""

    columns: int
    block: Floats
    passes: int


@dataclass(frozen=True, eq=False)
class KrylovProgress:
    """Checkpoint data of a run.

    Parameters
    ----------
    state : KrylovState
    basis, products : ndarray of shape (l, columns)
        Q and Z = K'Q.
    found : tuple
        Current coefficients, projections and eigenvalues, and the next eigenvalue.
    means : GramMeans
    """

    state: KrylovState
    basis: Floats
    products: Floats
    found: tuple[Floats, Floats, Floats, float]
    means: GramMeans


@dataclass(frozen=True)
class KrylovSolution:
    """Components, outcome and history of a run."""

    coefficients: Floats
    projections: Floats
    eigenvalues: Floats
    next_eigenvalue: float
    gram: CenteredGram
    outcome: Outcome
    records: list[PassRecord]


#: Makes observers, given a function that returns the current solution.
ObserverFactory: TypeAlias = Callable[[Callable[[], KrylovSolution]], Sequence[Observer[Any, Any]]]


def block_size(n_components: int) -> int:
    """Return an oversampled block size, which converges in fewer passes."""
    return n_components + max(8, min(n_components, 16))


def solve_krylov(
    source: GramSource,
    n_components: int,
    options: KrylovOptions,
    *,
    seed: int,
    workers: Workers = SERIAL,
    make_observers: ObserverFactory = lambda snapshot: (),
    checkpoint: CheckpointProtocol = NO_CHECKPOINT,
) -> KrylovSolution:
    """Find the leading components of K'.

    Parameters
    ----------
    source : GramSource
        The uncentered kernel matrix.
    n_components : int
    options : KrylovOptions
    seed : int
        Seed of the landmarks.
    workers : Workers
        Threads that compute the tiles of K.
    make_observers : callable
        Makes the observers, given a function that returns the current solution.
    checkpoint : CheckpointProtocol
        Restores an earlier run and records this one.
    """
    step = _KrylovPass(source, n_components, options, workers)

    def snapshot(outcome: Outcome = Outcome.STOPPED, records: Any = ()) -> KrylovSolution:
        return replace(step.solution(), outcome=outcome, records=list(records))

    saved = checkpoint.restore()
    if saved is None:
        first = _first_block(source, block_size(n_components), options, seed, workers)
        state = KrylovState(0, _orthonormal(first, first[:, :0], workers), 0)
    else:
        state = step.resume(saved.progress)
    checkpoint.set_snapshot(step.progress)
    done = run_passes(
        step,
        state,
        max_steps=options.max_iter,
        observers=make_observers(snapshot),
        checkpoint=checkpoint,
    )
    return snapshot(done.outcome, done.reports)


def _first_block(
    source: GramSource, size: int, options: KrylovOptions, seed: int, workers: Workers
) -> Floats:
    """Return the first block: a warm start, filled up with landmark components.

    Projections on landmark components are a multiplication by K' ahead of a random block.
    """
    warm = np.empty((source.n_samples, 0), dtype=source.dtype)
    if options.start is not None:
        warm = center_columns(options.start.astype(source.dtype))[:, :size]
    number = max(options.n_landmarks, 2 * size)
    chosen = choose_landmarks(options.landmarks, source, number, seed)
    found = landmark_start(source, size, chosen, workers).projections.T
    return np.hstack([warm, found[:, : size - warm.shape[1]]])


class _KrylovPass:
    """One step of the run loop: multiply the last block, extract components, make the next block.

    The orthonormal basis Q and Z = K'Q are two arrays, allocated once; an interrupted pass has only
    written to columns beyond those that the state counts.
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
        """Run one pass over K."""
        started = time.perf_counter()
        width = state.block.shape[1]
        known = state.columns + width
        self._Q[:, state.columns : known] = state.block
        # Only the product may be interrupted; the rest modifies the basis and takes little time.
        with interruptible():
            self._Z[:, state.columns : known] = self._multiply(state.block)
        Q, Z = self._Q[:, :known], self._Z[:, :known]
        if not np.isfinite(Z[:, state.columns :]).all():
            raise InvalidInput(NOT_FINITE)
        N = inner_in_double(Q, Z, self._workers)
        S = inner_in_double(Z, Z, self._workers)
        ritz = RitzPairs.from_products((N + N.T) / 2, S, float(np.finfo(Q.dtype).eps))
        values, T = ritz.components(self._r)
        previous, self._found = self._found, self._components(Q, Z, values, T)
        latest = Z[:, state.columns :]
        defect, recovery = _defect(Q, self._workers), ""
        if defect > np.sqrt(np.finfo(Q.dtype).eps):
            recovery = f"the basis had lost its orthonormality (by {defect:.1e}) and is rebuilt"
            # The leading Ritz vectors start the new basis.
            latest, known = Q @ ritz.vectors[:, :width].astype(Q.dtype), 0
        elif known + width > self._Q.shape[1]:
            known = self._restart(Q, Z, ritz.vectors[:, :width].astype(Q.dtype))
            latest = self._Z[:, :known]
        block = _orthonormal(latest, self._Q[:, :known], self._workers)[:, :width]
        seconds = time.perf_counter() - started
        record = self._record(state.passes + 1, seconds, _change(previous, self._found), recovery)
        # An empty block: the basis spans the range of K' up to rounding.
        outcome = Outcome.PRECISE if block.shape[1] == 0 else None
        return KrylovState(known, block, state.passes + 1), record, outcome

    def _restart(self, Q: Floats, Z: Floats, vectors: Floats) -> int:
        """Replace the basis by the leading Ritz vectors; needs no product with K."""
        number = vectors.shape[1]
        self._Q[:, :number], self._Z[:, :number] = Q @ vectors, Z @ vectors
        return number

    def progress(self, state: KrylovState) -> KrylovProgress:
        """Return the checkpoint data after a pass."""
        assert self._gram is not None
        assert self._found is not None
        Q, Z = self._Q[:, : state.columns], self._Z[:, : state.columns]
        return KrylovProgress(state, Q, Z, self._found, self._gram.means)

    def resume(self, earlier: KrylovProgress) -> KrylovState:
        """Restore the basis of an earlier run, and return its state."""
        columns = earlier.state.columns
        self._Q[:, :columns], self._Z[:, :columns] = earlier.basis, earlier.products
        self._found = earlier.found
        self._gram = CenteredGram(self._source, earlier.means, self._workers)
        return earlier.state

    def solution(self) -> KrylovSolution:
        """Return the solution after the last finished pass."""
        if self._found is None or self._gram is None:
            # Interrupted during the first pass.
            raise KeyboardInterrupt
        coefficients, projections, values, next_eigenvalue = self._found
        return KrylovSolution(
            coefficients, projections, values, next_eigenvalue, self._gram, Outcome.STOPPED, []
        )

    def _multiply(self, block: Floats) -> Floats:
        """Return K' times the block; the first product also computes the means of K."""
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
        eigenvalues = np.zeros(self._r)
        eigenvalues[: min(self._r, len(values))] = values[: self._r]
        next_eigenvalue = float(values[self._r]) if len(values) > self._r else 0.0
        return A, AK, eigenvalues.astype(Q.dtype), next_eigenvalue

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
            recovery=recovery,
        )


def _defect(Q: Floats, workers: Workers) -> float:
    """Return max |QᵀQ − I|."""
    return float(np.abs(inner_in_double(Q, Q, workers) - np.eye(Q.shape[1])).max(initial=0.0))


def _change(previous: Any, current: Any) -> float:
    """Return the squared distance in feature space between the components of two passes."""
    if previous is None:
        return float("inf")
    # Components keep their order but not their sign.
    products = np.einsum("il,il->i", current[0], previous[1])
    return float(np.sum(2 - 2 * np.minimum(np.abs(products), 1)))


def _orthonormal(block: Floats, Q: Floats, workers: Workers) -> Floats:
    """Return an orthonormal basis of the block's part orthogonal to Q (twice is enough)."""
    scale = np.linalg.norm(block, axis=0).max(initial=0.0)
    for _ in range(2):
        block = block - Q @ inner_in_double(Q, block, workers).astype(Q.dtype)
    U, sizes, _ = np.linalg.svd(block, full_matrices=False)
    noise = 10 * np.finfo(block.dtype).eps * np.sqrt(len(block)) * scale
    U = U[:, sizes > noise]
    return U - Q @ inner_in_double(Q, U, workers).astype(Q.dtype)
