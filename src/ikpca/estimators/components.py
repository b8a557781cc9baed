"""What every solver hands to the estimator, in one form."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ikpca import dense
from ikpca.engines import LocalStore
from ikpca.gram import Centring, CountingGram, GramSource, Workers, whole
from ikpca.hebbian import Floats, HebbianOptions, HebbianSolution, solve
from ikpca.loop import Observer, Outcome, PassRecord
from ikpca.spectra import deterministic_signs, nonnegative_eigenvalues

__all__ = ["Components", "Watch", "dense_components", "hebbian_components"]


@dataclass(frozen=True)
class Components:
    """Components in feature space.

    Parameters
    ----------
    coefficients, projections : ndarray of shape (r, l)
        A and AK'.
    eigenvalues : ndarray of shape (r,)
    eigenvectors : ndarray of shape (l, r)
        scikit-learn's: A_i√λ_i as columns, which is the unit eigenvector at convergence.
    centring : Centring
    trace : float
        Of K'.
    outcome : Outcome
    records : list of PassRecord
    """

    coefficients: Floats
    projections: Floats
    eigenvalues: Floats
    eigenvectors: Floats
    centring: Centring
    trace: float
    outcome: Outcome
    records: list[PassRecord]

    def keep(self, chosen: NDArray[np.bool_] | slice) -> Components:
        """Only some of the components."""
        return Components(
            self.coefficients[chosen],
            self.projections[chosen],
            self.eigenvalues[chosen],
            self.eigenvectors[:, chosen],
            self.centring,
            self.trace,
            self.outcome,
            self.records,
        )

    @property
    def rank(self) -> int:
        """Components that carry variance."""
        return int(np.count_nonzero(self.eigenvalues))


#: Makes observers, given a function that returns the components of the moment.
Watch: TypeAlias = Callable[[Callable[[], Components]], Sequence[Observer[Any, Any]]]


def dense_components(
    source: GramSource, n_components: int | None, workers: Workers, share: float | None = None
) -> Components:
    """All of K, decomposed: ``n_components`` leading ones, or as many as hold ``share``."""
    begun = time.perf_counter()
    counted = CountingGram(source)
    K = whole(counted, workers)
    solution = dense.decompose(K, n_components)
    eigenvalues = nonnegative_eigenvalues(solution.eigenvalues)
    rounding = 100 * np.finfo(K.dtype).eps * float(np.abs(np.diag(K)).sum(dtype=np.float64))
    if solution.trace <= rounding and eigenvalues.max(initial=0.0) <= rounding:
        eigenvalues = np.zeros_like(eigenvalues)
    roots = np.sqrt(eigenvalues)[:, None]
    vectors = solution.eigenvectors.T
    signs = deterministic_signs(vectors)[:, None]
    vectors = vectors * signs
    record = PassRecord(
        number=1,
        seconds=time.perf_counter() - begun,
        eigenvalues=eigenvalues,
        residuals=solution.residuals,
        gains=np.full(len(eigenvalues), np.nan),
        entries=counted.entries,
        change=0.0,
    )
    components = Components(
        coefficients=np.divide(vectors, roots, out=np.zeros_like(vectors), where=roots > 0),
        projections=vectors * roots,
        eigenvalues=eigenvalues,
        eigenvectors=vectors.T,
        centring=Centring(solution.column_means, solution.grand_mean),
        trace=solution.trace,
        outcome=Outcome.EXACT,
        records=[record],
    )
    return components if share is None else components.keep(slice(_count(components, share)))


def _count(components: Components, share: float) -> int:
    """The fewest components that hold more than ``share`` of the variance."""
    held = np.cumsum(components.eigenvalues)
    return int(np.searchsorted(held, share * components.trace, side="right")) + 1


def hebbian_components(
    source: GramSource,
    n_components: int,
    options: HebbianOptions,
    seed: int,
    workers: Workers,
    watch: Watch = lambda snapshot: (),
) -> Components:
    """A Hebbian method in this process; ``watch`` makes the observers."""
    solution = solve(
        source,
        n_components,
        options,
        seed=seed,
        open_store=LocalStore,
        workers=workers,
        watch=lambda snapshot: watch(lambda: _from_hebbian(snapshot())),
    )
    return _from_hebbian(solution)


def _from_hebbian(solution: HebbianSolution) -> Components:
    signs = deterministic_signs(solution.projections)[:, None]
    coefficients = solution.coefficients * signs
    return Components(
        coefficients=coefficients,
        projections=solution.projections * signs,
        eigenvalues=solution.eigenvalues,
        eigenvectors=(coefficients * np.sqrt(solution.eigenvalues)[:, None]).T,
        centring=solution.gram.centring,
        trace=solution.gram.mean_diagonal * solution.gram.n_samples,
        outcome=solution.outcome,
        records=solution.records,
    )
