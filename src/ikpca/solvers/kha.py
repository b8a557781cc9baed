"""Kernel Hebbian solvers: KHA, KHA/t, KHA/et and KHA-SMD (Kim 2003; Günter 2006)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ikpca.errors import invalid_parameter
from ikpca.gains import Gain, MetaDescent, constant, inverse_time, reciprocal_eigenvalues
from ikpca.gram import (
    SERIAL,
    CenteredGram,
    GramMeans,
    GramSource,
    Workers,
    center_gram,
)
from ikpca.kernels import Floats
from ikpca.solvers.base import (
    NO_CHECKPOINT,
    CheckpointProtocol,
    Clock,
    Observer,
    Outcome,
    PassRecord,
    run_passes,
)
from ikpca.solvers.coefficient_store import CoefficientStore
from ikpca.solvers.kha_pass import (
    HebbianPass,
    HebbianState,
    KHASettings,
    component_length,
    current_spectrum,
    estimate_eigenvalues,
    left_multiply,
    orthonormalize,
    safety_for,
)
from ikpca.solvers.landmarks import LANDMARK_KINDS, choose_landmarks, landmark_start

METHODS = ("kha", "kha/t", "kha/et", "kha-smd")
#: Non-zero coefficients per component of a sparse start.
SPARSE_NONZEROS = 32
#: Landmarks of a start from landmarks; at most a quarter of the rows, to stay cheap.
N_LANDMARKS = 256
#: h_i λ_i at t = 0 for KHA/et, from an orthonormal random start and from landmarks.
_ET_STEP, _ET_STEP_LANDMARKS = 7.0, 5.0
#: η0 κ for KHA and KHA/t, and for KHA/t from landmarks.
_CONSTANT_STEP, _INVERSE_TIME_STEP, _INVERSE_TIME_STEP_LANDMARKS = 0.05, 0.5, 0.1
#: µ κ, and bounds on |Δρ| and |ρ|, for KHA-SMD.
_META_RATE, _MAX_LOG_STEP, _MAX_LOG_GAIN = 0.05, 0.1, 3.0


@dataclass(frozen=True)
class HebbianOptions:
    """Options of a Hebbian solver, named as in ``KernelPCA``.

    Parameters
    ----------
    method : str
        "kha", "kha/t", "kha/et" or "kha-smd".
    gain : "auto", float or Gain
        η0 of the papers, or a gain object that replaces the method's own.
    meta_gain : "auto" or float
        µ.
    meta_decay, log_gain_init : float
        ξ and ρ0.
    clock : {"pattern", "pass"}
    init : "random", "sparse", "landmarks", "pivoted" or ndarray
        The start; an array is used as given, but orthonormalized for automatic gains.
    rayleigh_ritz : bool
    block_size : "auto" or int
    max_iter : int
        Passes.
    """

    method: str
    gain: float | Gain | Literal["auto"] = "auto"
    meta_gain: float | Literal["auto"] = "auto"
    meta_decay: float = 0.99
    log_gain_init: float = 0.0
    clock: Literal["pattern", "pass"] = "pattern"
    init: Floats | str = "random"
    rayleigh_ritz: bool = True
    block_size: int | Literal["auto"] = "auto"
    max_iter: int = 50

    @property
    def automatic(self) -> bool:
        """True if the library chooses the gain, and with it the safety rules."""
        return isinstance(self.gain, str)

    @property
    def from_landmarks(self) -> bool:
        """True if the run starts from landmarks."""
        return isinstance(self.init, str) and self.init in LANDMARK_KINDS

    def has_companion(self) -> bool:
        """Return True if the gain needs companion rows B; known before the gain is built."""
        if isinstance(self.gain, Gain):
            return hasattr(self.gain, "rate")
        return self.method == "kha-smd"

    def settings(
        self,
        store: CoefficientStore,
        n_components: int,
        seed: int,
        estimate: Literal["norms", "quotients"],
    ) -> KHASettings:
        """Return the settings that depend on the data."""
        return KHASettings(
            n_components=n_components,
            gain=self._gain(store.mean_diagonal),
            clock=Clock(store.n_samples, self.clock),
            safety=safety_for(automatic=self.automatic),
            seed=seed,
            mean_diagonal=store.mean_diagonal,
            block_size=self._block_size(store.n_samples),
            rayleigh_ritz=self.rayleigh_ritz,
            estimate="quotients" if self.automatic else estimate,
        )

    def _gain(self, kappa: float) -> Gain:
        if isinstance(self.gain, Gain):
            return self.gain
        rate = 0.0 if isinstance(self.meta_gain, str) else self.meta_gain
        if isinstance(self.meta_gain, str) and self.has_companion():
            rate = automatic_meta_rate(kappa)
        if isinstance(self.gain, str):
            return automatic_gain(
                self.method,
                kappa,
                rate,
                self.meta_decay,
                self.log_gain_init,
                from_landmarks=self.from_landmarks,
            )
        return paper_gain(self.method, self.gain, rate, self.meta_decay, self.log_gain_init)

    def _block_size(self, n_samples: int) -> int:
        """Return the block size: longer when the product over l columns dominates the sweep."""
        size = self.block_size
        if isinstance(size, str):
            size = 128 if n_samples < 20_000 else 256
        return min(size, n_samples)


@dataclass(frozen=True)
class HebbianSolution:
    """Components, outcome and history of a run."""

    coefficients: Floats
    projections: Floats
    eigenvalues: Floats
    gram: CenteredGram
    outcome: Outcome
    records: list[PassRecord]


@dataclass(frozen=True, eq=False)
class HebbianProgress:
    """Checkpoint data of a run.

    Parameters
    ----------
    state : HebbianState
    rows, products : ndarray of shape (r or 2r, l)
        A, over its companion B if there is one, and their products with K'.
    means : GramMeans or None
        None for explicit features, which have no K to center.
    """

    state: HebbianState
    rows: Floats
    products: Floats
    means: GramMeans | None


#: Makes a coefficient store from K', R and RK'.
OpenStore: TypeAlias = Callable[[CenteredGram, Floats, Floats], CoefficientStore]
#: Makes observers, given a function that returns the current solution.
ObserverFactory: TypeAlias = Callable[[Callable[[], HebbianSolution]], Sequence[Observer[Any, Any]]]


def solve_kha(
    source: GramSource,
    n_components: int,
    options: HebbianOptions,
    *,
    seed: int,
    open_store: OpenStore,
    workers: Workers = SERIAL,
    make_observers: ObserverFactory = lambda snapshot: (),
    checkpoint: CheckpointProtocol = NO_CHECKPOINT,
) -> HebbianSolution:
    """Run a Hebbian method on K.

    Parameters
    ----------
    source : GramSource
        The uncentered kernel matrix.
    n_components : int
    options : HebbianOptions
    seed : int
        Seed of the start and the permutations.
    open_store : callable
        Makes the coefficient store from K', R and RK'.
    workers : Workers
        Threads that compute the tiles of K.
    make_observers : callable
        Makes the observers, given a function that returns the current solution.
    checkpoint : CheckpointProtocol
        Restores an earlier run and records this one.
    """
    saved = checkpoint.restore()
    if saved is None:
        gram, rows, products = _initial_rows(source, n_components, options, seed, workers)
    else:
        gram = CenteredGram(source, saved.progress.means, workers)
        rows, products = saved.progress.rows, saved.progress.products
    if not gram.has_variance:
        zeros = np.zeros_like(rows[:n_components])
        return HebbianSolution(zeros, zeros, zeros[:, 0], gram, Outcome.CONVERGED, [])
    store = open_store(gram, rows, products)
    checkpoint.set_snapshot(lambda state: HebbianProgress(state, *store.read(), gram.means))

    def snapshot(outcome: Outcome = Outcome.STOPPED, records: Any = ()) -> HebbianSolution:
        rows, products = (part[:n_components] for part in store.read())
        eigenvalues = current_spectrum(store, n_components).astype(gram.dtype)
        return HebbianSolution(rows, products, eigenvalues, gram, outcome, list(records))

    outcome, records = iterate(
        store,
        n_components,
        options,
        seed=seed,
        observers=make_observers(snapshot),
        checkpoint=checkpoint,
    )
    return snapshot(outcome, records)


def iterate(
    store: CoefficientStore,
    n_components: int,
    options: HebbianOptions,
    *,
    seed: int,
    observers: Sequence[Observer[Any, Any]] = (),
    estimate: Literal["norms", "quotients"] = "norms",
    checkpoint: CheckpointProtocol = NO_CHECKPOINT,
) -> tuple[Outcome, list[PassRecord]]:
    """Run the passes on a store that contains the start; the result is in the store."""
    if not isinstance(options.init, str) and not np.diag(store.gram(1))[:n_components].max() > 0:
        raise invalid_parameter(
            "init",
            "array",
            "is zero in feature space and would stay zero",
            "pass rows that are not constant, or init='random'",
        )
    settings = options.settings(store, n_components, seed, estimate)
    saved = checkpoint.restore()
    state = _initial_state(store, settings, options) if saved is None else saved.progress.state
    step = HebbianPass(store, settings)
    solution = run_passes(
        step, state, max_steps=options.max_iter, observers=observers, checkpoint=checkpoint
    )
    return solution.outcome, solution.reports


def initial_coefficients(kind: str, n_components: int, n_samples: int, seed: int) -> Floats:
    """Draw A ~ N(0, 1/(rl)) (Günter 2006, algorithm 1), or with few non-zeros (section 4).

    The variance of the sparse start gives its components the same length in feature space. The
    solver divides both by √κ, κ = mean k'(x, x), so that ‖w_i‖² ≈ 1/r for any kernel.
    """
    rng = np.random.default_rng([seed, 0])
    shape = (n_components, n_samples)
    if kind == "random":
        return rng.normal(scale=np.sqrt(1 / (n_components * n_samples)), size=shape)
    A = np.zeros(shape)
    nonzeros = min(SPARSE_NONZEROS, n_samples)
    for row in A:
        chosen = rng.choice(n_samples, size=nonzeros, replace=False)
        row[chosen] = rng.normal(scale=np.sqrt(1 / (n_components * nonzeros)), size=nonzeros)
    return A


def warm_start_coefficients(projections: Floats, n_components: int, seed: int) -> Floats:
    """Return A from projections Y (l, r) of another model: A_i = Y_i/λ_i with λ_i = ‖Y_i‖².

    Components that the other model does not have start at random.
    """
    eigenvalues = np.square(projections).sum(axis=0, dtype=np.float64)
    positive = eigenvalues > 0
    A = (projections[:, positive] / eigenvalues[positive]).T[:n_components]
    random = initial_coefficients("random", n_components, len(projections), seed)
    return np.vstack([A, random[len(A) :]])


def _initial_rows(
    source: GramSource, n_components: int, options: HebbianOptions, seed: int, workers: Workers
) -> tuple[CenteredGram, Floats, Floats]:
    """Return K', A over its companion, and their products with K', from one pass over K."""
    gram, A, AK = _initial_components(source, n_components, options, seed, workers)
    companions = np.zeros_like(A) if options.has_companion() else A[:0]
    return gram, np.vstack([A, companions]), np.vstack([AK, companions])


def _initial_components(
    source: GramSource, n_components: int, options: HebbianOptions, seed: int, workers: Workers
) -> tuple[CenteredGram, Floats, Floats]:
    if options.from_landmarks:
        number = max(min(N_LANDMARKS, source.n_samples // 4), 4 * n_components)
        chosen = choose_landmarks(str(options.init), source, number, seed)
        start = landmark_start(source, n_components, chosen, workers)
        return center_gram(source, None, workers)[0], start.dense_coefficients(), start.projections
    if isinstance(options.init, str):
        A = initial_coefficients(options.init, n_components, source.n_samples, seed)
    else:
        A = options.init
    A = A.astype(source.dtype)
    gram, KA = center_gram(source, A.T, workers)
    return gram, A, KA.T


def _initial_state(
    store: CoefficientStore, settings: KHASettings, options: HebbianOptions
) -> HebbianState:
    """Return the first state; automatic gains start from orthonormal components."""
    captured = 0.0
    if options.automatic:
        captured = orthonormalize(store, settings)
    elif isinstance(options.init, str) and not options.from_landmarks:
        n_rows = settings.n_components * (1 if settings.meta is None else 2)
        left_multiply(store, np.eye(n_rows) / np.sqrt(settings.mean_diagonal))
    meta = settings.meta
    return HebbianState(
        passes=0,
        seen=0,
        eigenvalues=estimate_eigenvalues(store, settings),
        log_gains=np.full(settings.n_components, 0.0 if meta is None else meta.log_gain_init),
        gain_scale=1.0,
        captured=captured,
        length=component_length(store, settings.n_components),
    )


def paper_gain(method: str, eta0: float, rate: float, memory: float, log_gain_init: float) -> Gain:
    """Return the papers' gain with the user's η0, and µ, ξ, ρ0 for KHA-SMD."""
    if method == "kha":
        return constant(eta0)
    if method == "kha/t":
        return eta0 * inverse_time()
    kha_et = eta0 * inverse_time() * reciprocal_eigenvalues()
    if method == "kha/et":
        return kha_et
    return MetaDescent(kha_et, rate, memory, log_gain_init)


def automatic_gain(
    method: str,
    mean_diagonal: float,
    rate: float,
    memory: float,
    log_gain_init: float,
    *,
    from_landmarks: bool = False,
) -> Gain:
    """Return a gain that needs no tuning, from κ = mean k'(x, x) and the current λ.

    Starting from landmarks is closer to the solution and takes shorter steps.
    """
    if method == "kha":
        return constant(_CONSTANT_STEP / mean_diagonal)
    if method == "kha/t":
        step = _INVERSE_TIME_STEP_LANDMARKS if from_landmarks else _INVERSE_TIME_STEP
        return step / mean_diagonal * inverse_time()
    step = _ET_STEP_LANDMARKS if from_landmarks else _ET_STEP
    kha_et = step * inverse_time() * reciprocal_eigenvalues(with_norm=False)
    if method == "kha/et":
        return kha_et
    return MetaDescent(kha_et, rate, memory, log_gain_init, _MAX_LOG_STEP, _MAX_LOG_GAIN)


def automatic_meta_rate(mean_diagonal: float) -> float:
    """Return µ, scaled by κ like the inner product it multiplies."""
    return _META_RATE / mean_diagonal
