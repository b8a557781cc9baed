"""Which solver, told what, for a ``KernelPCA``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse

from ikpca import hebbian, krylov
from ikpca.engines import LocalStore, plan_source
from ikpca.estimators.components import (
    Components,
    Watch,
    dense_components,
    iterated_components,
)
from ikpca.estimators.magnitudes import check_kernel_values
from ikpca.estimators.parameters import KRYLOV_NAMES, check_init, is_fraction
from ikpca.estimators.precision import rounding_share, widened
from ikpca.estimators.rounds import Round, first_round
from ikpca.estimators.threads import n_threads
from ikpca.gram import (
    SERIAL,
    Budget,
    CentredGram,
    GramSource,
    PrecomputedGram,
    Workers,
    read_budget,
)
from ikpca.hebbian import (
    METHODS,
    CoefficientStore,
    Floats,
    HebbianOptions,
    continued_coefficients,
)
from ikpca.kernels import Kernel, Rows
from ikpca.krylov import KrylovOptions, block_size
from ikpca.loop import FORGETFUL, Keeper, Observer, Outcome, PassRecord, ProgressLines
from ikpca.spectra import DIRECTIONS_PER_COMPONENT, LANDMARK_KINDS

__all__ = ["Engine", "Problem", "View", "as_it_is", "chosen_solver", "decompose", "n_passes"]

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

    def open_store(self, gram: CentredGram, rows: Floats, products: Floats) -> CoefficientStore:
        """The coefficient store over that source."""


def as_it_is(source: GramSource, workers: Workers) -> GramSource:
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
    view: View = as_it_is
    keeper: Keeper = FORGETFUL
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


def decompose(model: Any, problem: Problem, watch: Watch) -> Components:
    """Run the solver that the model asks for, within its memory."""
    solver = chosen_solver(model, problem.n_samples)
    solve = {"dense": _dense, "krylov": _krylov}.get(solver, _hebbian)
    components = solve(model, problem, read_budget(model.max_memory), watch)
    if model.remove_zero_eig or model.n_components is None:
        return components.keep(components.eigenvalues > 0)
    return components


def _number(model: Any, problem: Problem) -> int:
    return min(int(model.n_components), problem.n_samples)


def _dense(model: Any, problem: Problem, budget: Budget, watch: Watch) -> Components:
    # K, its centred copy, and the copy that LAPACK overwrites.
    fixed = 3 * problem.n_samples * problem.row_bytes
    with _machinery(model, problem, budget, fixed) as (source, workers):
        if model.n_components is None or is_fraction(model.n_components):
            found = dense_components(source, None, workers, share=model.n_components)
        else:
            found = dense_components(source, _number(model, problem), workers)
    if model.verbose:
        ProgressLines("dense", 1).see(None, found.records[-1])
    return found


def _krylov(model: Any, problem: Problem, budget: Budget, watch: Watch) -> Components:
    if is_fraction(model.n_components):
        return _krylov_share(model, problem, budget, watch)
    return _krylov_number(model, problem, budget, watch, _number(model, problem))


def _landmarks(n_samples: int) -> int:
    """A twentieth of few rows, a sixtieth of many: fewer cost a pass more, more cost too much."""
    few = min(max(_LEAST_LANDMARKS, n_samples // 20), _LANDMARKS)
    return max(few, min(n_samples // 60, _MOST_LANDMARKS))


def _krylov_share(model: Any, problem: Problem, budget: Budget, watch: Watch) -> Components:
    """Twice as many components each time, from where the last ones are, until they hold enough."""
    number, records = first_round(problem.keeper, _FIRST_SHARE_NUMBER)
    while 4 * block_size(number) < problem.n_samples:
        this = replace(problem, keeper=Round(problem.keeper, number, records))
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
    model: Any, problem: Problem, budget: Budget, watch: Watch, number: int
) -> Components:
    """In single precision, where ``tol`` is loose enough for it."""
    share = rounding_share(problem.kernel, problem.X, float(model.tol), problem.seed)
    if share is None:
        return _krylov_as_given(model, problem, budget, watch, number)
    narrow = replace(problem, X=problem.X.astype(np.float32))

    def wide(snapshot: Callable[[], Components]) -> Sequence[Observer[Any, Any]]:
        return watch(lambda: widened(snapshot(), share))

    copied = replace(budget, taken=budget.taken + narrow.X.nbytes)
    return widened(_krylov_as_given(model, narrow, copied, wide, number), share)


def _krylov_as_given(
    model: Any, problem: Problem, budget: Budget, watch: Watch, number: int
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
    with _machinery(model, problem, budget, fixed, "tiles", distant) as (source, workers):
        return iterated_components(
            krylov.solve,
            source,
            number,
            options,
            seed=problem.seed,
            workers=workers,
            watch=watch,
            keeper=problem.keeper,
        )


def _hebbian(model: Any, problem: Problem, budget: Budget, watch: Watch) -> Components:
    number = _number(model, problem)
    options = _hebbian_options(model, problem, number)
    # A, AK', companions, marks and scratch; a strip of kernel rows per block; landmarks.
    width = 256 if isinstance(options.block_size, str) else options.block_size
    columns = 16 * number + 2 * width
    distant = (columns, 3 * (number + 1))
    fixed = columns * problem.row_bytes
    with _machinery(model, problem, budget, fixed, "matrix", distant) as (source, workers):
        open_store = LocalStore if problem.engine is None else problem.engine.open_store
        solve = partial(hebbian.solve, open_store=open_store)
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
def _machinery(
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
