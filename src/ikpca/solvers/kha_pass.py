"""One pass of a Hebbian solver over all patterns."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from ikpca.gains import Gain, MetaDescent
from ikpca.gram import CenteredGram, tile_slices
from ikpca.gram.centering import GramMeans
from ikpca.kernels import Floats, Indices
from ikpca.solvers.base import EigenSolution, Outcome, PassRecord
from ikpca.solvers.coefficient_store import CoefficientStore, certify_projections
from ikpca.solvers.problem import Plan
from ikpca.solvers.rayleigh_ritz import Certificate, certify, rayleigh_ritz

#: After so many back-offs the gain underflows.
_MAX_RETRIES = 100
#: max |AK'Aᵀ − I| above which a Rayleigh–Ritz step is repeated.
_MAX_DEFECT = 1e-3
#: Rows up to which every pass is certified by products with K', and the rows that are sampled for
#: the residuals of larger problems, whose products would cost half a pass each.
_CERTIFIED_ROWS, _SAMPLED_ROWS = 1024, 256


@dataclass(frozen=True)
class Safety:
    """Rules against steps that are too long.

    Parameters
    ----------
    cap : bool
        Bound every gain by 1/max(k'(p,p), Σ y²) before the step.
    check_norms : bool
        Undo a pass as soon as the components leave the unit ball.
    check_variance : bool
        Undo a pass after which the components capture less variance than before.
    backoff : float
        Factor of the gains after an undone pass; 0 ends the run.
    repeat : bool
        Repeat the undone pass; otherwise it counts as done and the clock advances.
    """

    cap: bool
    check_norms: bool
    check_variance: bool
    backoff: float
    repeat: bool


#: Gains chosen by the library.
AUTOMATIC = Safety(cap=True, check_norms=False, check_variance=True, backoff=0.25, repeat=False)
#: A user's gain: the papers' steps, unchanged until they diverge.
MANUAL = Safety(cap=False, check_norms=True, check_variance=False, backoff=0.5, repeat=True)
#: The papers' steps alone: a run that overflows has diverged.
UNSAFE = Safety(cap=False, check_norms=False, check_variance=False, backoff=0.0, repeat=False)


def safety_for(*, automatic: bool, backoff: bool = True) -> Safety:
    """Return the rules for automatic gains, for a user's, or for a user's without back-off."""
    if not backoff:
        return UNSAFE
    return AUTOMATIC if automatic else MANUAL


def gain_times(
    clock: Literal["pattern", "pass"], n_samples: int, seen: int, n_steps: int
) -> Floats:
    """Return t before each of the next ``n_steps`` patterns, after ``seen`` of them.

    Time ticks per pattern, or per pass (Günter 2006, "every l iterations").
    """
    if clock == "pass":
        return np.full(n_steps, float(seen // n_samples * n_samples))
    return np.arange(seen, seen + n_steps, dtype=np.float64)


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
    plan: Plan | None = None


class _Diverged(Exception):
    """A step left the unit ball or overflowed; the pass must be undone."""


@dataclass
class HebbianPasses:
    """Passes over all patterns: sweeps of blocks, then a Rayleigh–Ritz step.

    Parameters
    ----------
    store : CoefficientStore
        A, over its companion if the gain has one, and their products with K'.
    gram : CenteredGram
    n_components : int
    gain : Gain
    clock : {"pattern", "pass"}
        Unit of the time of the gains.
    safety : Safety
    seed : int
        Seed of the permutations.
    mean_diagonal : float
        κ = mean k'(x, x).
    block_size : int
        Patterns per sweep; affects the speed, not the result.
    rayleigh_ritz : bool
        End every pass with a Rayleigh–Ritz step.
    eigenvalue_estimate : {"norms", "quotients"}
        Estimate of λ for the gains: ‖(AK')_i‖/‖A_i‖ (Günter 2006, eq. 13), or the Rayleigh
        quotient in feature space.
    tol : float
        Residuals are computed exactly before they are reported to be this small.
    plan : Plan
        Sizes that a checkpoint stores.
    """

    store: CoefficientStore
    gram: CenteredGram
    n_components: int
    gain: Gain
    clock: Literal["pattern", "pass"]
    safety: Safety
    seed: int
    mean_diagonal: float
    block_size: int
    rayleigh_ritz: bool
    eigenvalue_estimate: Literal["norms", "quotients"]
    tol: float = 0.0
    plan: Plan | None = None
    _running: int = field(default=-1, init=False)
    _certified: tuple[int, Certificate | None] = field(default=(-1, None), init=False)

    @property
    def meta(self) -> MetaDescent | None:
        """Meta-descent part of the gain, or None."""
        return self.gain if isinstance(self.gain, MetaDescent) else None

    def first_state(self, captured: float) -> HebbianState:
        """Return the state before the first pass; ``captured`` is the variance captured so far."""
        log_gain = 0.0 if self.meta is None else self.meta.log_gain_init
        return HebbianState(
            passes=0,
            seen=0,
            eigenvalues=self._estimate_eigenvalues(),
            log_gains=np.full(self.n_components, log_gain),
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
        failed = len(notes) > _MAX_RETRIES or bool(notes and not self.safety.backoff)
        # A pass that was undone has left the components of the pass before.
        undone = bool(notes) and (failed or not self.safety.repeat)
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
        return HebbianProgress(state, *self.store.read(), self.gram.means, self.plan)

    def solution(self, state: HebbianState, *, exact: bool = False) -> EigenSolution:
        """Return the components after a pass; ``exact`` certifies them by products with K'.

        Otherwise their certificate is that of the record of the pass, and no kernel values are
        computed.
        """
        rows, products = (part[: self.n_components] for part in self.store.read())
        eigenvalues = self.spectrum().astype(self.gram.dtype)
        solution = EigenSolution.from_components(rows, products, eigenvalues, self.gram)
        passes, certificate = self._certified
        if exact:
            certificate = self._certificate(state, exact=True)
        elif passes != state.passes:
            return solution
        return replace(solution, certificate=certificate)

    def _certificate(self, state: HebbianState, *, exact: bool = False) -> Certificate:
        """Certify the components from a sample of rows, or by products with K'."""
        eigenvalues, n_samples = self.spectrum(), self.store.n_samples
        if exact or n_samples <= _CERTIFIED_ROWS:
            return self._exact_certificate(eigenvalues)
        rng = np.random.default_rng([self.seed, 5, state.passes])
        sample = rng.permutation(n_samples)[:_SAMPLED_ROWS]
        residuals = self.store.residuals(eigenvalues, sample)
        # NaN is not larger than tol either, and is replaced.
        if not residuals.max(initial=0.0) > self.tol:
            return self._exact_certificate(eigenvalues)
        return certify(
            eigenvalues,
            residuals,
            self.inner_products(1),
            self.gram.squared_norm_estimate,
            of_projections=True,
            eps=float(np.finfo(self.store.dtype).eps),
        )

    def _exact_certificate(self, eigenvalues: Floats) -> Certificate:
        rows, products = (part[: self.n_components] for part in self.store.read())
        return certify_projections(self.gram, rows, products, eigenvalues, self.seed)

    def inner_products(self, power: int) -> Floats:
        """Return AAᵀ, AK'Aᵀ or (AK')(AK')ᵀ."""
        return self.store.gram(power)[: self.n_components, : self.n_components]

    def spectrum(self) -> Floats:
        """Return the Rayleigh quotients ‖(AK')_i‖²/(A_i K' A_iᵀ) of the components."""
        return _ratio(np.diag(self.inner_products(2)), np.diag(self.inner_products(1)))

    def orthonormalize(self) -> float:
        """Apply Rayleigh–Ritz to the components; return the variance they capture."""
        ritz_values, T = self._ritz(self.inner_products(1), self.inner_products(2))
        self._rotate(T)
        return float(ritz_values.sum())

    def scale(self, factor: float) -> None:
        """Multiply the components, and their companions, by a factor."""
        self._rotate(factor * np.eye(self.n_components))

    def _rotate(self, T: Floats) -> None:
        """Set A ← TA, and the companions B ← TB."""
        self._left_multiply(T if self.meta is None else np.kron(np.eye(2), T))

    def _left_multiply(self, T: Floats) -> None:
        """Set R ← TR."""
        self.store.transform(T, np.empty(0, dtype=np.intp), np.empty((len(T), 0)))

    def _ritz(self, N: Floats, S: Floats) -> tuple[Floats, Floats]:
        # Directions below this relative length are rounding noise.
        return rayleigh_ritz(N, S, drop=max(1e-12, 10 * float(np.finfo(self.store.dtype).eps)))

    def _length(self) -> float:
        """Return the largest eigenvalue of AK'Aᵀ: 1 for orthonormal components."""
        return float(np.linalg.eigvalsh(self.inner_products(1))[-1])

    def _estimate_eigenvalues(self) -> Floats:
        """Return the estimates of λ for the gains."""
        if self.eigenvalue_estimate == "quotients":
            return self.spectrum()
        norms = np.diag(self.inner_products(0))
        return np.sqrt(_ratio(np.diag(self.inner_products(2)), norms))

    def _reorthonormalize(self) -> str:
        """Repeat the Rayleigh–Ritz step if one was not enough; return a message in that case."""
        if not self.rayleigh_ritz:
            return ""
        defect = self._defect()
        if defect <= _MAX_DEFECT:
            return ""
        self.orthonormalize()
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
                if not self.safety.repeat:
                    return self._skip(state), notes
        return self._skip(state), notes

    def _attempt(self, state: HebbianState) -> HebbianState:
        log_gains, inner = state.log_gains, self._inner_products()
        eta = self._gains(state, state.seen, self.store.n_samples)
        # Values beyond single precision become infinite, which is detected.
        with np.errstate(over="ignore", invalid="ignore"):
            for steps, patterns, upcoming in self._blocks(state):
                Y, G = self.store.project(patterns, upcoming)
                limits = self._limits(np.diag(G), state.length)
                T, C, log_gains = self._sweep(Y, G, eta[steps], limits, log_gains, inner)
                self.store.transform(T, patterns, C)
            return self._finish(replace(state, log_gains=log_gains))

    def _blocks(self, state: HebbianState) -> Iterator[tuple[slice, Indices, list[Indices]]]:
        """Yield each block of patterns, and the two after it."""
        # The same order when a pass is repeated.
        rng = np.random.default_rng([self.seed, 1, state.passes])
        order = rng.permutation(self.store.n_samples)
        parts = list(tile_slices(len(order), self.block_size))
        blocks = [order[steps] for steps in parts]
        for number, steps in enumerate(parts):
            yield steps, blocks[number], blocks[number + 1 : number + 3]

    def _inner_products(self) -> tuple[Floats, Floats]:
        """Return AK'Aᵀ and AK'Bᵀ, which meta-descent updates during the pass."""
        if self.meta is None:
            return np.empty((0, 0)), np.empty((0, 0))
        r = self.n_components
        inner = self.store.gram(1)
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

        meta, cap = self.meta, self.safety.cap
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
        times = gain_times(self.clock, self.store.n_samples, seen, n_steps)
        eta = self.gain.gains(times, self.store.n_samples, state.eigenvalues)
        return np.broadcast_to(state.gain_scale * eta, (n_steps, self.n_components)).copy()

    def _limits(self, diagonal: Floats, length: float) -> Floats:
        """Return twice the Cauchy–Schwarz bound of ‖y‖² for components of that length.

        κ replaces a smaller k'(p, p), which is zero or negative for some patterns and kernels.
        """
        if not self.safety.check_norms:
            return np.full(len(diagonal), np.finfo(np.float64).max)
        return 2 * max(1.0, length) * np.maximum(diagonal, self.mean_diagonal)

    def _finish(self, state: HebbianState) -> HebbianState:
        """Check the pass, rotate the components, and return the next state."""
        N, S = self.inner_products(1), self.inner_products(2)
        self._check_components(state, N, S)
        ritz_values, T = self._ritz(N, S)
        captured = float(ritz_values.sum())
        self._check_variance(state, captured)
        if self.rayleigh_ritz:
            self._rotate(T)
            eigenvalues = ritz_values
        else:
            eigenvalues = self._estimate_eigenvalues()
        return replace(
            state,
            passes=state.passes + 1,
            seen=state.seen + self.store.n_samples,
            eigenvalues=eigenvalues,
            captured=captured,
            length=min(state.length, self._length()),
        )

    def _check_components(self, state: HebbianState, N: Floats, S: Floats) -> None:
        if not (np.isfinite(N).all() and np.isfinite(S).all()):
            raise _Diverged("the components overflowed")
        too_long = np.diag(N).max() > 2 * max(1.0, state.length)
        if self.safety.check_norms and too_long:
            raise _Diverged("the components left the unit ball")

    def _check_variance(self, state: HebbianState, captured: float) -> None:
        slack = 10 * np.finfo(self.store.dtype).eps * abs(state.captured)
        if self.safety.check_variance and captured < state.captured - slack:
            raise _Diverged("the components lost variance")

    def _undo(self, state: HebbianState) -> HebbianState:
        """Restore the start of the pass, set companions to zero, and reduce the gains."""
        self.store.rewind()
        if self.meta is not None:
            r = self.n_components
            self._left_multiply(np.diag(np.repeat([1.0, 0.0], r)))
        log_gains = state.log_gains
        if self.safety.repeat:
            log_gains = np.minimum(log_gains, 0.0)
        scale = state.gain_scale * self.safety.backoff
        return replace(state, gain_scale=scale, log_gains=log_gains)

    def _skip(self, state: HebbianState) -> HebbianState:
        """Count the undone pass, so that the clock advances."""
        seen = state.seen + self.store.n_samples
        return replace(state, passes=state.passes + 1, seen=seen)

    def _record(self, state: HebbianState, seconds: float, note: str, recovery: str) -> PassRecord:
        certificate = self._certificate(state)
        self._certified = (state.passes, certificate)
        last = self._gains(state, state.seen - 1, 1)[0]
        return PassRecord(
            number=state.passes,
            seconds=seconds,
            eigenvalues=self.spectrum(),
            residuals=certificate.residuals,
            gains=last * np.exp(state.log_gains),
            entries=self.store.entries,
            change=self.store.change(self.n_components),
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
