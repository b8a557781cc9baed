"""Block form against the pattern-by-pattern update."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ikpca import KernelPCA
from ikpca.gram import ComputedGram, PrecomputedGram, Workers, full_matrix
from ikpca.kernels import Floats, Gaussian
from ikpca.solvers import (
    METHODS,
    HebbianOptions,
    LocalStore,
    hebbian_step,
    hebbian_step_with_products,
    meta_step,
    solve_kha,
)

#: A gain small enough for every method on the generated rows.
_GAIN = 0.05
#: γ of the Gaussian kernel on generated rows.
KERNEL_GAMMA = 0.2


@dataclass(frozen=True)
class SpeedRow:
    """Seconds per pass of both forms, the best of several passes each.

    The bare rule updates A alone (``hebbian_step``), which is all that KHA and KHA/t need of it;
    the block form always keeps AK' too, since it reads its projections from there.
    """

    method: str
    rule_seconds: float
    block_seconds: float
    bare_rule_seconds: float | None = None

    @property
    def ratio(self) -> float:
        """How many times faster the block form is."""
        return self.rule_seconds / self.block_seconds

    @property
    def bare_ratio(self) -> float | None:
        """The same against the update of A alone."""
        if self.bare_rule_seconds is None:
            return None
        return self.bare_rule_seconds / self.block_seconds


def generated_rows(n_samples: int, n_features: int) -> Floats:
    """Normal rows of falling spread, the same every time."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_samples, n_features)) / np.sqrt(1 + np.arange(n_features))


def block_against_rule(
    workers: Workers,
    n_samples: int = 2000,
    n_components: int = 16,
    rule_passes: int = 4,
    block_passes: int = 60,
) -> list[SpeedRow]:
    """Time both forms with K given; both leave A and AK' up to date.

    The rule gets K' ready-made, which favours it.
    """
    K = full_matrix(ComputedGram(Gaussian(KERNEL_GAMMA), generated_rows(n_samples, 20)))
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    rows = []
    for method in METHODS:
        ours = _block_seconds(K, method, n_components, block_passes, workers)
        theirs = _rule_seconds(centred, method, n_components, rule_passes)
        bare = None
        if method != "kha-smd":
            bare = _rule_seconds(centred, "bare", n_components, rule_passes)
        rows.append(SpeedRow(method, theirs, ours, bare))
    return rows


def seconds_per_fit(X: Floats, n_components: int, passes: int, n_jobs: int) -> float:
    """A whole KHA fit from raw rows, as a user calls it: kernel, centring, passes."""
    model = KernelPCA(
        n_components,
        kernel="rbf",
        gamma=KERNEL_GAMMA,
        eigen_solver="kha",
        gain=_GAIN,
        rayleigh_ritz=False,
        max_iter=passes,
        n_jobs=n_jobs,
        random_state=0,
    )
    begun = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - begun


def _block_seconds(
    K: Floats, method: str, n_components: int, passes: int, workers: Workers
) -> float:
    options = HebbianOptions(
        method, gain=_GAIN, meta_gain=0.1, rayleigh_ritz=False, max_iter=passes
    )
    source = PrecomputedGram(K)
    solution = solve_kha(
        source, n_components, options, seed=0, open_store=LocalStore, workers=workers
    )
    # The first pass may compile.
    return min(record.seconds for record in solution.records[1:])


def _rule_seconds(centred: Floats, method: str, n_components: int, passes: int) -> float:
    one_pass = _rule_pass(centred, method, n_components)
    seconds = []
    for _ in range(passes):
        begun = time.perf_counter()
        one_pass()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def _rule_pass(centred: Floats, method: str, r: int) -> Callable[[], None]:
    """A pass of Günter's algorithm 1; without meta-descent B, ρ and their updates fall away."""
    n_samples = len(centred)
    rng = np.random.default_rng(0)
    A = rng.normal(size=(r, n_samples)) / np.sqrt(r * n_samples)
    AK, h, zero = A @ centred, np.full(r, _GAIN), np.zeros(r)
    order = rng.permutation(n_samples)

    def bare() -> None:
        moved = A
        for p in order:
            moved = hebbian_step(moved, centred[p], p, h)

    def with_products() -> None:
        moved, products = A, AK
        for p in order:
            moved, products = hebbian_step_with_products(moved, products, centred[p], p, h)

    def with_meta_descent() -> None:
        state: tuple[Floats, Floats, Floats, Floats] = (A, np.zeros_like(A), AK, zero)
        for p in order:
            state = meta_step(*state, centred[p], p, h, 0.1, 0.99)

    return {"kha-smd": with_meta_descent, "bare": bare}.get(method, with_products)
