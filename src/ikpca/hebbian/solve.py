"""From a kernel matrix, or from explicit features, to components."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ikpca.errors import refuse
from ikpca.gram import SERIAL, CentredGram, GramMeans, GramSource, Workers, centred, counted
from ikpca.hebbian.options import HebbianOptions
from ikpca.hebbian.passes import (
    HebbianPass,
    component_length,
    current_spectrum,
    estimate_eigenvalues,
    left_multiply,
    orthonormalise,
)
from ikpca.hebbian.settings import HebbianState, Settings
from ikpca.hebbian.start import initial_coefficients
from ikpca.hebbian.store import CoefficientStore, Floats
from ikpca.loop import FORGETFUL, Keeper, Observer, Outcome, PassRecord, run
from ikpca.spectra import choose_landmarks, landmark_start

__all__ = ["HebbianProgress", "HebbianSolution", "iterate", "solve"]

#: Rows of a landmark start; of few samples no more than a quarter, or it would be a dense solver.
N_LANDMARKS = 256
OpenStore: TypeAlias = Callable[[CentredGram, Floats, Floats], CoefficientStore]


@dataclass(frozen=True)
class HebbianSolution:
    """Components and how they came about."""

    coefficients: Floats
    projections: Floats
    eigenvalues: Floats
    gram: CentredGram
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
Watch: TypeAlias = Callable[[Callable[[], HebbianSolution]], Sequence[Observer[Any, Any]]]


def solve(
    source: GramSource,
    n_components: int,
    options: HebbianOptions,
    *,
    seed: int,
    open_store: OpenStore,
    workers: Workers = SERIAL,
    watch: Watch = lambda snapshot: (),
    keeper: Keeper = FORGETFUL,
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
        gram, rows, products = _start(counted(source), n_components, options, seed, workers)
    else:
        gram = CentredGram.restored(source, kept.progress.means, workers)
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
    keeper: Keeper = FORGETFUL,
) -> tuple[Outcome, list[PassRecord]]:
    """Run the passes on a store that holds the start; the result stays in the store."""
    if not isinstance(options.init, str) and not np.diag(store.gram(1))[:n_components].max() > 0:
        raise refuse("init", "array", "has no length in feature space and could never move",
                     "pass rows that are not constant, or init='random'")  # fmt: skip
    settings = options.settings(store, n_components, seed, estimate)
    kept = keeper.recall()
    state = _first_state(store, settings, options) if kept is None else kept.progress.state
    step = HebbianPass(store, settings)
    solution = run(step, state, max_steps=options.max_iter, observers=observers, keeper=keeper)
    return solution.outcome, solution.reports


def _start(
    source: GramSource, n_components: int, options: HebbianOptions, seed: int, workers: Workers
) -> tuple[CentredGram, Floats, Floats]:
    """The centred gram, A over its companion and the same times K', from one pass over K."""
    gram, A, AK = _first_rows(source, n_components, options, seed, workers)
    companions = np.zeros_like(A) if options.has_companion() else A[:0]
    return gram, np.vstack([A, companions]), np.vstack([AK, companions])


def _first_rows(
    source: GramSource, n_components: int, options: HebbianOptions, seed: int, workers: Workers
) -> tuple[CentredGram, Floats, Floats]:
    if options.from_landmarks:
        number = max(min(N_LANDMARKS, source.n_samples // 4), 4 * n_components)
        chosen = choose_landmarks(str(options.init), source, number, seed)
        start = landmark_start(source, n_components, chosen, workers)
        return centred(source, None, workers)[0], start.spread(), start.projections
    if isinstance(options.init, str):
        A = initial_coefficients(options.init, n_components, source.n_samples, seed)
    else:
        A = options.init
    A = A.astype(source.dtype)
    gram, KA = centred(source, A.T, workers)
    return gram, A, KA.T


def _first_state(
    store: CoefficientStore, settings: Settings, options: HebbianOptions
) -> HebbianState:
    """Automatic gains start from orthonormal components, others from the papers' short ones."""
    captured = 0.0
    if options.automatic:
        captured = orthonormalise(store, settings)
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
