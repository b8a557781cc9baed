"""Passes of the Hebbian solvers over all patterns, and their coefficients A with products AK'."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from ikpca.errors import invalid_parameter
from ikpca.gains import MetaDescent
from ikpca.gram import CenteredGram, tile_slices
from ikpca.gram.centering import CenteredStrip, GramMeans
from ikpca.kernels import Floats, Indices
from ikpca.solvers.base import EigenSolution, Outcome, PassRecord
from ikpca.solvers.problem import Plan
from ikpca.solvers.rayleigh_ritz import (
    Certificate,
    certify,
    excess_error,
    rayleigh_ritz,
    relative_residuals,
)

if TYPE_CHECKING:
    from ikpca.solvers.kha import KHA

#: Patterns per sweep, and more of them from so many rows on, where the product over l columns takes
#: longer than the sweep; without effect on the result.
BLOCK_SIZE, LARGE_BLOCK_SIZE, _MANY_ROWS = 128, 256, 20_000
#: Factors of the gains after a pass that diverged: of automatic gains, and of a user's. After so
#: many of them the gain underflows.
_BACKOFF_AUTOMATIC, _BACKOFF_MANUAL, _MAX_RETRIES = 0.25, 0.5, 100
#: max |AK'Aᵀ − I| above which a Rayleigh–Ritz step is repeated.
_MAX_DEFECT = 1e-3
#: Rows up to which every pass is certified by products with K', and the rows that are sampled for
#: the residuals of larger problems, whose products would cost half a pass each.
_CERTIFIED_ROWS, _SAMPLED_ROWS = 1024, 256
#: Random vectors that search the complement of the components for larger eigenvalues.
N_PROBES = 16


@dataclass(frozen=True)
class HebbianState:
    """State between two passes, besides the store; small and serializable.

    Parameters
    ----------
    passes, seen : int
        Passes finished and patterns seen.
    eigenvalues : ndarray of shape (r,)
        λ for the gains of the next pass.
    log_gains : ndarray of shape (r,)
        ρ of meta-descent, zero without it.
    gain_scale : float
        Product of all back-offs so far.
    captured : float
        Σ of the Ritz values: the variance that the components capture.
    length : float
        Smallest value so far of the largest eigenvalue of AK'Aᵀ, a bound that prevents components
        that have reached unit length from growing again.
    """

    passes: int
    seen: int
    eigenvalues: Floats
    log_gains: Floats
    gain_scale: float
    captured: float
    length: float


@dataclass(frozen=True, eq=False)
class HebbianProgress:
    """Checkpoint data of a run.

    Parameters
    ----------
    state : HebbianState
    rows, products : ndarray of shape (r or 2r, l)
        A, over its companion B if there is one, and their products with K'.
    means : GramMeans
    plan : Plan
        Sizes of the run.
    """

    state: HebbianState
    rows: Floats
    products: Floats
    means: GramMeans
    plan: Plan


class _Diverged(Exception):
    """A step left the unit ball or overflowed; the pass must be undone."""


class HebbianPasses:
    """Passes over all patterns: sweeps of blocks, then a Rayleigh–Ritz step.

    Automatic gains are capped before every step, and a pass that loses variance is undone. With a
    gain of the user, the steps are those of the papers: a pass in which the components leave the
    unit ball is undone and repeated with a smaller gain, or without back-off ends the run.

    Parameters
    ----------
    solver : KHA
        Method, gain and options.
    store : CoefficientStore
        A, over its companion if the gain has one, and their products with K'.
    n_components : int
    seed : int
        Seed of the permutations.
    tol : float
        Residuals are computed exactly before they are reported to be this small.
    plan : Plan
        Sizes that a checkpoint stores.
    """

    def __init__(
        self,
        solver: KHA,
        store: CoefficientStore,
        n_components: int,
        seed: int,
        tol: float,
        plan: Plan,
    ) -> None:
        self.store = store
        self._solver, self._n_components, self._seed = solver, n_components, seed
        self._tol, self._plan = tol, plan
        self._gain = solver.gain_for(store.gram.mean_diagonal)
        self._meta = self._gain if isinstance(self._gain, MetaDescent) else None
        self._is_repeated = solver.backoff and not solver.automatic
        self._block_size = BLOCK_SIZE if store.gram.n_samples < _MANY_ROWS else LARGE_BLOCK_SIZE
        #: Number of finished passes when the present one started.
        self._running = -1
        self._certified: tuple[int, Certificate | None] = (-1, None)

    def start(self) -> HebbianState:
        """Scale the initial components, and return the state before the first pass."""
        solver, captured = self._solver, 0.0
        is_array = not isinstance(solver.init, str)
        if is_array and not np.diag(self.inner_products(1)).max() > 0:
            raise invalid_parameter(
                "init",
                "array",
                "is zero in feature space and would stay zero",
                "pass rows that are not constant, or init='random'",
            )
        if solver.automatic:
            captured = self._orthonormalize()
        elif not is_array and not solver.from_landmarks:
            self._rotate(np.eye(self._n_components) / np.sqrt(self.store.gram.mean_diagonal))
        return HebbianState(
            passes=0,
            seen=0,
            eigenvalues=self._estimate_eigenvalues(),
            log_gains=np.full(
                self._n_components, 0.0 if self._meta is None else self._meta.log_gain_init
            ),
            gain_scale=1.0,
            captured=captured,
            length=self._length(),
        )

    def step(self, state: HebbianState) -> tuple[HebbianState, PassRecord, Outcome | None]:
        """Run one pass; undo it and reduce the gain if it diverges."""
        started = time.perf_counter()
        self.store.mark()
        self._running = state.passes
        after, notes = self._with_backoff(state)
        failed = len(notes) > _MAX_RETRIES or bool(notes and not self._solver.backoff)
        # A pass that was undone has left the components of the pass before.
        undone = bool(notes) and (failed or not self._is_repeated)
        recovery = "" if undone else self._reorthonormalize()
        seconds = time.perf_counter() - started
        record = self._record(after, seconds, _summary(notes, failed), recovery)
        return after, record, Outcome.DIVERGED if failed else None

    def undo(self, state: HebbianState) -> None:
        """Restore the store if the pass after ``state`` was interrupted."""
        if self._running == state.passes:
            self.store.rewind()

    def progress(self, state: HebbianState) -> HebbianProgress:
        """Return the checkpoint data after a pass."""
        return HebbianProgress(
            state, self.store.rows, self.store.products, self.store.gram.means, self._plan
        )

    def solution(self, state: HebbianState, *, exact: bool = False) -> EigenSolution:
        """Return the components after a pass; ``exact`` certifies them by products with K'.

        Otherwise their certificate is that of the record of the pass, and no kernel values are
        computed.
        """
        eigenvalues = self._spectrum().astype(self.store.gram.dtype)
        solution = EigenSolution.from_components(*self._components, eigenvalues, self.store.gram)
        passes, certificate = self._certified
        if exact:
            certificate = self._certificate(state, exact=True)
        elif passes != state.passes:
            return solution
        return replace(solution, certificate=certificate)

    def _certificate(self, state: HebbianState, *, exact: bool = False) -> Certificate:
        """Certify the components from a sample of rows, or by products with K'."""
        eigenvalues, gram = self._spectrum(), self.store.gram
        if not exact and gram.n_samples > _CERTIFIED_ROWS:
            rng = np.random.default_rng([self._seed, 5, state.passes])
            sample = rng.permutation(gram.n_samples)[:_SAMPLED_ROWS]
            residuals = sampled_residuals(gram, self._components[1], eigenvalues, sample)
            # NaN is not larger than tol either, and is replaced.
            if residuals.max(initial=0.0) > self._tol:
                return certify(
                    eigenvalues,
                    residuals,
                    self.inner_products(1),
                    gram.squared_norm_estimate,
                    of_projections=True,
                    eps=float(np.finfo(gram.dtype).eps),
                )
        return certify_projections(gram, *self._components, eigenvalues, self._seed)

    @property
    def _components(self) -> tuple[Floats, Floats]:
        """A and AK', without companions."""
        return self.store.rows[: self._n_components], self.store.products[: self._n_components]

    def inner_products(self, power: int) -> Floats:
        """Return AAᵀ, AK'Aᵀ or (AK')(AK')ᵀ."""
        return self.store.inner_products(power)[: self._n_components, : self._n_components]

    def _spectrum(self) -> Floats:
        """Return the Rayleigh quotients ‖(AK')_i‖²/(A_i K' A_iᵀ) of the components."""
        return _ratio(np.diag(self.inner_products(2)), np.diag(self.inner_products(1)))

    def _orthonormalize(self) -> float:
        """Apply Rayleigh–Ritz to the components; return the variance they capture."""
        ritz_values, T = self._ritz(self.inner_products(1), self.inner_products(2))
        self._rotate(T)
        return float(ritz_values.sum())

    def _rotate(self, T: Floats) -> None:
        """Set A ← TA, and the companions B ← TB."""
        self._left_multiply(T if self._meta is None else np.kron(np.eye(2), T))

    def _left_multiply(self, T: Floats) -> None:
        """Set R ← TR."""
        self.store.transform(T, np.empty(0, dtype=np.intp), np.empty((len(T), 0)))

    def _ritz(self, N: Floats, S: Floats) -> tuple[Floats, Floats]:
        # Directions below this relative length are rounding noise.
        return rayleigh_ritz(N, S, drop=max(1e-12, 10 * float(np.finfo(self.store.gram.dtype).eps)))

    def _length(self) -> float:
        """Return the largest eigenvalue of AK'Aᵀ: 1 for orthonormal components."""
        return float(np.linalg.eigvalsh(self.inner_products(1))[-1])

    def _estimate_eigenvalues(self) -> Floats:
        """Return the estimates of λ for the gains.

        These are Rayleigh quotients, or ‖(AK')_i‖/‖A_i‖ (Günter 2006, eq. 13) for a user's gain.
        """
        if self._solver.automatic:
            return self._spectrum()
        norms = np.diag(self.inner_products(0))
        return np.sqrt(_ratio(np.diag(self.inner_products(2)), norms))

    def _reorthonormalize(self) -> str:
        """Repeat the Rayleigh–Ritz step if one was not enough; return a message in that case."""
        if not self._solver.rayleigh_ritz:
            return ""
        defect = self._defect()
        if defect <= _MAX_DEFECT:
            return ""
        self._orthonormalize()
        return (
            f"components had lost their orthonormality (by {defect:.1e}) and were made orthonormal "
            f"again (to {self._defect():.1e})"
        )

    def _defect(self) -> float:
        """Return max |AK'Aᵀ − I| over the nonzero components."""
        N = self.inner_products(1)
        return float(np.abs(N - np.diag(np.diag(N) > 0).astype(N.dtype)).max(initial=0.0))

    def _with_backoff(self, state: HebbianState) -> tuple[HebbianState, list[str]]:
        notes: list[str] = []
        while len(notes) <= _MAX_RETRIES:
            try:
                return self._attempt(state), notes
            except _Diverged as error:
                state = self._undo(state)
                notes.append(f"{error}; gain scaled to {state.gain_scale:.3g}")
            if not self._is_repeated:
                break
        # The undone pass counts, so that the clock advances.
        seen = state.seen + self.store.gram.n_samples
        return replace(state, passes=state.passes + 1, seen=seen), notes

    def _attempt(self, state: HebbianState) -> HebbianState:
        log_gains, inner = state.log_gains, self._meta_products()
        eta = self._gains(state, state.seen, self.store.gram.n_samples)
        # Values beyond single precision become infinite, which is detected.
        with np.errstate(over="ignore", invalid="ignore"):
            for steps, patterns, following in self._blocks(state):
                Y, G = self.store.project(patterns, following)
                limits = self._limits(np.diag(G), state.length)
                T, C, log_gains = self._sweep(Y, G, eta[steps], limits, log_gains, inner)
                self.store.transform(T, patterns, C)
            return self._finish(replace(state, log_gains=log_gains))

    def _blocks(self, state: HebbianState) -> Iterator[tuple[slice, Indices, Indices | None]]:
        """Yield the steps and the patterns of each block, and the patterns of the next one."""
        # The same order when a pass is repeated.
        rng = np.random.default_rng([self._seed, 1, state.passes])
        order = rng.permutation(self.store.gram.n_samples)
        parts = list(tile_slices(len(order), self._block_size))
        blocks = [order[steps] for steps in parts]
        return zip(parts, blocks, [*blocks[1:], None], strict=True)

    def _meta_products(self) -> tuple[Floats, Floats]:
        """Return AK'Aᵀ and AK'Bᵀ, which meta-descent updates during the pass."""
        if self._meta is None:
            return np.empty((0, 0)), np.empty((0, 0))
        r = self._n_components
        inner = self.store.inner_products(1)
        return inner[:r, :r].copy(), inner[:r, r:].copy()

    def _sweep(
        self,
        Y: Floats,
        G: Floats,
        eta: Floats,
        limits: Floats,
        log_gains: Floats,
        inner: tuple[Floats, Floats],
    ) -> tuple[Floats, Floats, Floats]:
        """Return T and C of one block, and the log-gains after it."""
        # Imported here because importing it starts the compiler.
        from ikpca.solvers import kha_sweep

        meta, cap = self._meta, self._solver.automatic
        if meta is None:
            T, C, failed = kha_sweep.plain_sweep(Y, G, eta, cap, limits)
        else:
            T, C, failed, log_gains = kha_sweep.meta_sweep(
                Y, G, eta, cap, limits, *inner, log_gains, meta.rate, meta.decay,
                meta.max_log_step, meta.max_log_gain,
            )  # fmt: skip
        if failed != kha_sweep.OK or not (np.isfinite(T).all() and np.isfinite(C).all()):
            raise _Diverged("a step left the unit ball")
        return T, C, log_gains

    def _gains(self, state: HebbianState, seen: int, n_steps: int) -> Floats:
        times = gain_times(self._solver.clock, self.store.gram.n_samples, seen, n_steps)
        eta = self._gain.gains(times, self.store.gram.n_samples, state.eigenvalues)
        return np.broadcast_to(state.gain_scale * eta, (n_steps, self._n_components)).copy()

    def _limits(self, diagonal: Floats, length: float) -> Floats:
        """Return twice the Cauchy–Schwarz bound of ‖y‖² for components of that length.

        κ replaces a smaller k'(p, p), which is zero or negative for some patterns and kernels.
        """
        if not self._is_repeated:
            return np.full(len(diagonal), np.finfo(np.float64).max)
        return 2 * max(1.0, length) * np.maximum(diagonal, self.store.gram.mean_diagonal)

    def _finish(self, state: HebbianState) -> HebbianState:
        """Check the pass, rotate the components, and return the next state."""
        N, S = self.inner_products(1), self.inner_products(2)
        if not (np.isfinite(N).all() and np.isfinite(S).all()):
            raise _Diverged("the components overflowed")
        if self._is_repeated and np.diag(N).max() > 2 * max(1.0, state.length):
            raise _Diverged("the components left the unit ball")
        ritz_values, T = self._ritz(N, S)
        captured = float(ritz_values.sum())
        rounding = 10 * np.finfo(self.store.gram.dtype).eps * abs(state.captured)
        if self._solver.automatic and captured < state.captured - rounding:
            raise _Diverged("the components lost variance")
        if self._solver.rayleigh_ritz:
            self._rotate(T)
            eigenvalues = ritz_values
        else:
            eigenvalues = self._estimate_eigenvalues()
        return replace(
            state,
            passes=state.passes + 1,
            seen=state.seen + self.store.gram.n_samples,
            eigenvalues=eigenvalues,
            captured=captured,
            length=min(state.length, self._length()),
        )

    def _undo(self, state: HebbianState) -> HebbianState:
        """Restore the start of the pass, set companions to zero, and reduce the gains."""
        self.store.rewind()
        if self._meta is not None:
            r = self._n_components
            self._left_multiply(np.diag(np.repeat([1.0, 0.0], r)))
        log_gains = state.log_gains
        if self._is_repeated:
            log_gains = np.minimum(log_gains, 0.0)
        factor = _BACKOFF_AUTOMATIC if self._solver.automatic else _BACKOFF_MANUAL
        scale = state.gain_scale * (factor if self._solver.backoff else 0)
        return replace(state, gain_scale=scale, log_gains=log_gains)

    def _record(self, state: HebbianState, seconds: float, note: str, recovery: str) -> PassRecord:
        certificate = self._certificate(state)
        self._certified = (state.passes, certificate)
        last = self._gains(state, state.seen - 1, 1)[0]
        return PassRecord(
            number=state.passes,
            seconds=seconds,
            eigenvalues=self._spectrum(),
            residuals=certificate.residuals,
            gains=last * np.exp(state.log_gains),
            entries=self.store.gram.entries,
            change=self.store.change(self._n_components),
            note=note,
            orthonormality_defect=certificate.orthonormality_defect,
            excess_error=certificate.excess_error,
            recovery=recovery,
        )


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def _summary(notes: list[str], failed: bool) -> str:
    """Return the last note and the number of notes."""
    if not notes:
        return ""
    count = f" ({len(notes)} times)" if len(notes) > 1 else ""
    return ("stopped: " if failed else "") + notes[-1] + count


def gain_times(
    clock: Literal["pattern", "pass"], n_samples: int, seen: int, n_steps: int
) -> Floats:
    """Return t before each of the next ``n_steps`` patterns, after ``seen`` of them.

    Time ticks per pattern, or per pass (Günter 2006, "every l iterations").
    """
    if clock == "pass":
        return np.full(n_steps, float(seen // n_samples * n_samples))
    return np.arange(seen, seen + n_steps, dtype=np.float64)


class CoefficientStore:
    """Rows R (A alone, or A over its companion B) and RK'; computes K' a block of rows at a time.

    ``project``, ``transform`` and ``inner_products`` do the computation and return small arrays in
    double precision; the other methods inspect or undo. No array is modified once it is stored.
    """

    def __init__(self, gram: CenteredGram, rows: Floats, products: Floats) -> None:
        self.gram = gram
        self._rows = np.array(rows, dtype=gram.dtype, order="C")
        self.products: Floats = np.array(products, dtype=gram.dtype, order="C")
        self._mark = (self._rows, self.products)
        #: T, P and C of transforms that are not applied to R yet.
        self._pending: list[tuple[Floats, Indices, Floats]] = []
        self._inner_products: dict[int, Floats] = {}
        self._strip: tuple[Indices, CenteredStrip] | None = None
        self._next: tuple[Indices, Callable[[], CenteredStrip]] | None = None

    def project(self, patterns: Indices, following: Indices | None = None) -> tuple[Floats, Floats]:
        """Return (RK')[:, P] and K'[P, P]; kernel rows of the following block may be read ahead."""
        strip = self._strip_of(patterns)
        self._strip = (patterns, strip)
        # C order, which the compiled sweep expects.
        Y = self.products[:, patterns].astype(np.float64, order="C")
        G = strip.columns(patterns).astype(np.float64, order="C")
        if following is not None:
            # Another thread reads them, if there is one and K is stored.
            ahead = self.gram.prefetch_strip(following, extra_rows=len(self._rows))
            self._next = (following, ahead)
        return Y, G

    def transform(self, T: Floats, patterns: Indices, C: Floats) -> None:
        """Set R ← TR, then R[:, P] += C (repeated patterns add up), and update RK'.

        RK' ← T RK' + C K'[P, :] is one product; R is updated when it is read.
        """
        T, C = T.astype(self.gram.dtype), C.astype(self.gram.dtype)
        # New arrays, so that the mark needs no copies.
        if patterns.size:
            self.products = self._strip_of(patterns).update(T, self.products, C)
        else:
            self.products = T @ self.products
        self._pending.append((T, patterns, C))
        self._inner_products = {}

    @property
    def rows(self) -> Floats:
        """R with all transforms applied.

        Blocks T, C in order 1..b make R ← T_b⋯T_1 R, and C_j ends up multiplied by T_b⋯T_{j+1}:
        in reverse order, R itself is multiplied only once for all blocks.
        """
        if not self._pending:
            return self._rows
        later = np.eye(len(self._rows), dtype=self.gram.dtype)
        columns = []
        for T, _, C in reversed(self._pending):
            columns.append(later @ C)
            later = later @ T
        patterns = np.concatenate([patterns for _, patterns, _ in reversed(self._pending)])
        rows = later @ self._rows
        if len(np.unique(patterns)) == len(patterns):
            rows[:, patterns] += np.hstack(columns)
        else:
            np.add.at(rows.T, patterns, np.hstack(columns).T)
        # Together, so that an interrupt cannot apply transforms twice.
        self._rows, self._pending = rows, []
        return rows

    def inner_products(self, power: int) -> Floats:
        """Return R Rᵀ, R K'Rᵀ or RK'(RK')ᵀ in double precision; cached until the next transform."""
        if power not in self._inner_products:
            left = self.rows if power == 0 else self.products
            right = self.products if power == 2 else self.rows
            product = left.astype(np.float64, copy=False) @ right.astype(np.float64, copy=False).T
            self._inner_products[power] = (product + product.T) / 2
        return self._inner_products[power]

    def mark(self) -> None:
        """Save references to R and RK'; transforms never modify existing arrays."""
        self._mark = (self.rows, self.products)

    def rewind(self) -> None:
        """Restore R and RK' of the last ``mark``."""
        self._inner_products, self._pending = {}, []
        self._rows, self.products = self._mark

    def change(self, n_rows: int) -> float:
        """Return tr((A − A₀)K'(A − A₀)ᵀ) of the leading rows, with A₀ at the mark."""
        rows, products = (part[:n_rows] for part in self._mark)
        delta_rows = np.asarray(self.rows[:n_rows] - rows, dtype=np.float64)
        delta_products = np.asarray(self.products[:n_rows] - products, dtype=np.float64)
        return max(float(np.einsum("il,il->", delta_rows, delta_products)), 0.0)

    def _strip_of(self, patterns: Indices) -> CenteredStrip:
        if self._strip is not None and self._strip[0] is patterns:
            return self._strip[1]
        if self._next is not None and self._next[0] is patterns:
            return self._next[1]()
        return self.gram.strip(patterns, extra_rows=len(self._rows))


def sampled_residuals(
    gram: CenteredGram, projections: Floats, eigenvalues: Floats, sample: Indices
) -> Floats:
    """Estimate ‖K'u_i − λ_i u_i‖/λ_1 for u_i along (AK')_i from a sample of rows of K'."""
    U = _unit_rows(projections.astype(np.float64))
    KU = gram.strip(sample).dot(U.T.astype(gram.dtype)).T.astype(np.float64)
    scale = np.sqrt(gram.n_samples / len(sample))
    return scale * _residual_norms(U[:, sample], KU, eigenvalues)


def certify_projections(
    gram: CenteredGram, coefficients: Floats, projections: Floats, eigenvalues: Floats, seed: int
) -> Certificate:
    """Compute the certificate by two products with K'.

    The first product gives the residuals. A Rayleigh–Ritz step on A, the projections and two power
    iterations of random vectors gives estimates of the exact eigenvalues, and with them E_min: the
    residuals alone would not reveal a leading component that is missing.

    Parameters
    ----------
    gram : CenteredGram
    coefficients, projections : ndarray of shape (r, l)
        A and AK'.
    eigenvalues : ndarray of shape (r,)
    seed : int
        Seed of the random vectors.
    """
    eps = float(np.finfo(gram.dtype).eps)
    A, Y = (np.asarray(part, dtype=np.float64) for part in (coefficients, projections))
    U = _unit_rows(Y)
    probes: Floats = np.random.default_rng([seed, 4]).normal(size=(gram.n_samples, N_PROBES))
    KU, probes = np.split(_multiply(gram, np.hstack([U.T, probes])), [len(U)])
    probes = _unit_rows(probes - (probes @ U.T) @ U)
    basis = np.vstack([A, U, probes])
    images = np.vstack([Y, KU, _multiply(gram, probes.T)])
    if not np.isfinite(images).all():
        # Kernel values that are not finite: the coefficients still give a bound.
        bound = relative_residuals(A, Y, eigenvalues)
        return certify(eigenvalues, bound, A @ Y.T, gram.squared_norm_estimate, eps=eps)
    N = basis @ images.T
    ritz_values = rayleigh_ritz((N + N.T) / 2, images @ images.T, drop=max(1e-12, 10 * eps))[0]
    leading, following = ritz_values[: len(Y)], float(ritz_values[len(Y)])
    certificate = certify(
        eigenvalues,
        _residual_norms(U, KU, eigenvalues),
        A @ Y.T,
        gram.squared_norm_estimate,
        following,
        of_projections=True,
        eps=eps,
    )
    # E² − E²_min = Σμ² − 2 tr(YK'Yᵀ) + ‖YYᵀ‖², less than which is rounding error.
    total = float(np.sum(leading * leading))
    captured = float(np.square(Y).sum(axis=1) @ np.einsum("il,il->i", U, KU))
    increase = total - 2 * captured + float(np.sum(np.square(Y @ Y.T)))
    if increase <= 100 * eps * total:
        return certificate
    estimate = excess_error(increase, total, gram.squared_norm_estimate, eps)
    return replace(certificate, excess_error=max(certificate.excess_error, estimate))


def _residual_norms(U: Floats, KU: Floats, eigenvalues: Floats) -> Floats:
    """Return ‖K'u_i − λ_i u_i‖/λ_1 for the rows u_i of U."""
    largest = float(np.abs(eigenvalues).max(initial=0.0))
    norms = np.linalg.norm(KU - eigenvalues[:, None] * U, axis=1)
    return norms / largest if largest > 0 else np.zeros_like(norms)


def _unit_rows(Y: Floats) -> Floats:
    """Return the rows scaled to unit length; rows of zeros stay zero."""
    lengths = np.linalg.norm(Y, axis=1, keepdims=True)
    return np.divide(Y, lengths, out=np.zeros_like(Y), where=lengths > 0)


def _multiply(gram: CenteredGram, V: Floats) -> Floats:
    """Return (K'V)ᵀ in double precision."""
    return gram.multiply(V.astype(gram.dtype)).T.astype(np.float64)
