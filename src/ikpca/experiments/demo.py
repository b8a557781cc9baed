"""Every contestant in turn, measured by one measure."""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import TypeAlias

from ikpca.errors import refuse
from ikpca.experiments.contestants import CONTESTANTS, DENSE, PassDone, Performance, compete
from ikpca.experiments.processes import run_alone
from ikpca.experiments.reference import Reference
from ikpca.experiments.results import DemoResult, Run
from ikpca.experiments.spec import DemoSpec

__all__ = ["run_demo", "versions"]

_LIBRARIES = ("ikpca", "numpy", "scipy", "scikit-learn", "numba")
#: Told of a method, the passes it has done and the seconds they took.
Announce: TypeAlias = Callable[[str, int, float], None]


def run_demo(spec: DemoSpec, announce: Announce = lambda *news: None) -> DemoResult:
    """Run every contestant, one after the other, each in a process of its own.

    Parameters
    ----------
    spec : DemoSpec
    announce : callable
        Called after every pass with the method, the passes done and the seconds they took.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(spec.threads):
        X = spec.load()
        # The reference goes first: its eigenvalues are what the others are measured against.
        exact, exact_passes = _attend(spec, DENSE, announce)
        if not exact.eigenvalues.any():
            rule = "is so wide that the kernel has no variance on these rows"
            raise refuse("sigma", spec.sigma, rule, "pass a smaller one")
        reference = Reference.of(spec, X, exact.eigenvalues)
        runs, threads = [], exact.threads
        for method in CONTESTANTS:
            if method != DENSE:
                cost, passes = _attend(spec, method, announce)
                runs.append(_run(method, cost, passes, reference))
                threads = max(threads, cost.threads)
        runs.append(_run(DENSE, exact, exact_passes, reference))
    return DemoResult(spec, X.shape[1], tuple(runs), threads, versions())


def _attend(spec: DemoSpec, method: str, announce: Announce) -> tuple[Performance, list[PassDone]]:
    """Collect the passes; measuring them waits, so as not to compete for the machine."""
    passes: list[PassDone] = []

    def hear(news: PassDone) -> None:
        passes.append(news)
        announce(method, news.number, news.seconds)

    cost = run_alone(CONTESTANTS[method], partial(compete, spec, method), hear)
    return cost, passes


def _run(method: str, cost: Performance, passes: list[PassDone], reference: Reference) -> Run:
    return Run(
        method=method,
        label=CONTESTANTS[method],
        excess_errors=tuple(reference.excess_error(done.projections) for done in passes),
        seconds=cost.seconds,
        entries=cost.entries,
        peak_bytes=cost.peak_bytes,
        outcome=cost.outcome,
    )


def versions() -> dict[str, str]:
    """Of Python and of what the numbers depend on."""
    return {
        "python": platform.python_version(),
        **{library: version(library) for library in _LIBRARIES},
    }
