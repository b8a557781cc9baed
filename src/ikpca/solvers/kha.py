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
    count_entries,
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

#: h_i λ_i at t = 0 for KHA/et, from an orthonormal random start and from landmarks.
_ET_STEP, _ET_STEP_LANDMARKS = 7.0, 5.0
#: η0 κ for KHA and KHA/t, and for KHA/t from landmarks.
_CONSTANT_STEP, _INVERSE_TIME_STEP, _INVERSE_TIME_STEP_LANDMARKS = 0.05, 0.5, 0.1
#: µ κ, and bounds on |Δρ| and |ρ|, for KHA-SMD.
_META_RATE, _MAX_LOG_STEP, _MAX_LOG_GAIN = 0.05, 0.1, 3.0


def paper_gain(method: str, eta0: float, rate: float, memory: float, log_gain_init: float) -> Gain:
    """The papers' gain with the user's η0, and µ, ξ, ρ0 for KHA-SMD."""
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
    """A gain that needs no tuning, from κ = mean k'(x, x) and from λ as the run goes.

    A start from landmarks is close already, and wants shorter steps.
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
    """µ, scaled by κ: the inner product it multiplies grows with the kernel."""
    return _META_RATE / mean_diagonal


#: Non-zero coefficients per component of a sparse start.
SPARSE_NONZEROS = 32


def initial_coefficients(kind: str, n_components: int, n_samples: int, seed: int) -> Floats:
    """A ~ N(0, 1/(rl)) (Günter 2006, algorithm 1), or the same with few non-zeros (section 4).

    The variance of the sparse start makes its components as long in feature space as the dense
    one's. The solver divides both by √κ, κ = mean k'(x, x), so that ‖w_i‖² ≈ 1/r for any kernel.
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


def continued_coefficients(projections: Floats, n_components: int, seed: int) -> Floats:
    """A from the projections Y (l, r) of another model: at a solution, A_i = Y_i/λ_i, λ_i = ‖Y_i‖².

    Components that the other model does not have start at random, no longer than its last.
    """
    lengths = np.square(projections).sum(axis=0, dtype=np.float64)
    carrying = lengths > 0
    A = (projections[:, carrying] / lengths[carrying]).T[:n_components]
    fresh = initial_coefficients("random", n_components, len(projections), seed)
    return np.vstack([A, fresh[len(A) :]])


@dataclass(frozen=True)
class HebbianOptions:
    """Names as in ``KernelPCA``.

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
        The start; an array is taken as it is, except that automatic gains orthonormalise it.
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
        """Whether the library chooses the gain, and with it the safety rules."""
        return isinstance(self.gain, str)

    @property
    def from_landmarks(self) -> bool:
        """Whether the run starts from landmarks."""
        return isinstance(self.init, str) and self.init in LANDMARK_KINDS

    def has_companion(self) -> bool:
        """Whether rows B run beside A; known before the gain itself is."""
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
        """Fill in what depends on the data."""
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
        """Longer blocks pay when the product over l columns outweighs the sweep."""
        wanted = self.block_size
        if isinstance(wanted, str):
            wanted = 128 if n_samples < 20_000 else 256
        return min(wanted, n_samples)


#: Rows of a landmark start; of few samples no more than a quarter, or it would be a dense solver.
N_LANDMARKS = 256
OpenStore: TypeAlias = Callable[[CenteredGram, Floats, Floats], CoefficientStore]


@dataclass(frozen=True)
class HebbianSolution:
    """Components and how they came about."""

    coefficients: Floats
    projections: Floats
    eigenvalues: Floats
    gram: CenteredGram
    outcome: Outcome
    records: list[PassRecord]


@dataclass(frozen=True, eq=False)
class HebbianProgress:
    """All that a run needs to go on, beside K itself.

    Parameters
    ----------
    state : HebbianState
    rows, products : ndarray of shape (r or 2r, l)
        A, over its companion B where there is one, and the same times K'.
    means : GramMeans or None
        None for explicit features, which have no K to centre.
    """

    state: HebbianState
    rows: Floats
    products: Floats
    means: GramMeans | None


#: Makes observers, given a function that returns the solution of the moment.
ObserverFactory: TypeAlias = Callable[[Callable[[], HebbianSolution]], Sequence[Observer[Any, Any]]]


def solve_kha(
    source: GramSource,
    n_components: int,
    options: HebbianOptions,
    *,
    seed: int,
    open_store: OpenStore,
    workers: Workers = SERIAL,
    watch: ObserverFactory = lambda snapshot: (),
    keeper: CheckpointProtocol = NO_CHECKPOINT,
) -> HebbianSolution:
    """Run a Hebbian method on K.

    Parameters
    ----------
    source : GramSource
        The uncentred kernel matrix.
    n_components : int
    options : HebbianOptions
    seed : int
        Of the start and the permutations.
    open_store : callable
        Makes the engine's coefficient store from K', R and RK'.
    workers : Workers
        Share the tiles of K.
    watch : callable
        Makes the observers, given a function that returns the solution of the moment.
    keeper : Keeper
        May know where an earlier run was, and is told where this one is.
    """
    kept = keeper.recall()
    if kept is None:
        gram, rows, products = _start(count_entries(source), n_components, options, seed, workers)
    else:
        gram = CenteredGram.restored(source, kept.progress.means, workers)
        rows, products = kept.progress.rows, kept.progress.products
    if not gram.has_variance:
        nothing = np.zeros_like(rows[:n_components])
        return HebbianSolution(nothing, nothing, nothing[:, 0], gram, Outcome.CONVERGED, [])
    store = open_store(gram, rows, products)
    keeper.describe_with(lambda state: HebbianProgress(state, *store.read(), gram.means))

    def snapshot(outcome: Outcome = Outcome.STOPPED, records: Any = ()) -> HebbianSolution:
        rows, products = (part[:n_components] for part in store.read())
        eigenvalues = current_spectrum(store, n_components).astype(gram.dtype)
        return HebbianSolution(rows, products, eigenvalues, gram, outcome, list(records))

    outcome, records = iterate(
        store, n_components, options, seed=seed, observers=watch(snapshot), keeper=keeper
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
    keeper: CheckpointProtocol = NO_CHECKPOINT,
) -> tuple[Outcome, list[PassRecord]]:
    """Run the passes on a store that holds the start; the result stays in the store."""
    if not isinstance(options.init, str) and not np.diag(store.gram(1))[:n_components].max() > 0:
        raise invalid_parameter(
            "init",
            "array",
            "has no length in feature space and could never move",
            "pass rows that are not constant, or init='random'",
        )
    settings = options.settings(store, n_components, seed, estimate)
    kept = keeper.recall()
    state = _first_state(store, settings, options) if kept is None else kept.progress.state
    step = HebbianPass(store, settings)
    solution = run_passes(
        step, state, max_steps=options.max_iter, observers=observers, keeper=keeper
    )
    return solution.outcome, solution.reports


def _start(
    source: GramSource, n_components: int, options: HebbianOptions, seed: int, workers: Workers
) -> tuple[CenteredGram, Floats, Floats]:
    """The centred gram, A over its companion and the same times K', from one pass over K."""
    gram, A, AK = _first_rows(source, n_components, options, seed, workers)
    companions = np.zeros_like(A) if options.has_companion() else A[:0]
    return gram, np.vstack([A, companions]), np.vstack([AK, companions])


def _first_rows(
    source: GramSource, n_components: int, options: HebbianOptions, seed: int, workers: Workers
) -> tuple[CenteredGram, Floats, Floats]:
    if options.from_landmarks:
        number = max(min(N_LANDMARKS, source.n_samples // 4), 4 * n_components)
        chosen = choose_landmarks(str(options.init), source, number, seed)
        start = landmark_start(source, n_components, chosen, workers)
        return center_gram(source, None, workers)[0], start.spread(), start.projections
    if isinstance(options.init, str):
        A = initial_coefficients(options.init, n_components, source.n_samples, seed)
    else:
        A = options.init
    A = A.astype(source.dtype)
    gram, KA = center_gram(source, A.T, workers)
    return gram, A, KA.T


def _first_state(
    store: CoefficientStore, settings: KHASettings, options: HebbianOptions
) -> HebbianState:
    """Automatic gains start from orthonormal components, others from the papers' short ones."""
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
