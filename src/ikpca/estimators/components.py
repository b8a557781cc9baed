"""What every solver hands to the estimator, in one form."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ikpca import dense
from ikpca.errors import InvalidInput
from ikpca.gram import NOT_FINITE, Centring, CountingGram, GramSource, Workers, whole
from ikpca.hebbian import Floats, HebbianOptions, HebbianSolution
from ikpca.krylov import KrylovOptions, KrylovSolution
from ikpca.loop import FORGETFUL, Keeper, Observer, Outcome, PassRecord
from ikpca.measures import relative_residuals
from ikpca.spectra import (
    Certificate,
    certify,
    deterministic_signs,
    nonnegative_eigenvalues,
)

__all__ = [
    "Components",
    "Watch",
    "dense_components",
    "iterated_components",
]


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
    certificate : Certificate
    outcome : Outcome
    records : list of PassRecord
    """

    coefficients: Floats
    projections: Floats
    eigenvalues: Floats
    eigenvectors: Floats
    centring: Centring
    trace: float
    certificate: Certificate | None
    outcome: Outcome
    records: list[PassRecord]

    def keep(self, chosen: NDArray[np.bool_] | slice) -> Components:
        """Only some of the components."""
        return replace(
            self,
            coefficients=self.coefficients[chosen],
            projections=self.projections[chosen],
            eigenvalues=self.eigenvalues[chosen],
            eigenvectors=self.eigenvectors[:, chosen],
        )

    @property
    def held(self) -> float:
        """Variance of all the components."""
        return float(self.eigenvalues.sum(dtype=np.float64))

    def count(self, share: float) -> int:
        """The fewest components that hold more than ``share`` of the variance."""
        held = np.cumsum(self.eigenvalues)
        return int(np.searchsorted(held, share * self.trace, side="right")) + 1

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
    if not np.isfinite(K).all():
        raise InvalidInput(NOT_FINITE)
    solution = dense.decompose(K, n_components)
    eigenvalues = nonnegative_eigenvalues(solution.eigenvalues)
    rounding = 100 * np.finfo(K.dtype).eps * float(np.abs(np.diag(K)).sum(dtype=np.float64))
    if solution.trace <= rounding and eigenvalues.max(initial=0.0) <= rounding:
        eigenvalues = np.zeros_like(eigenvalues)
    roots = np.sqrt(eigenvalues)[:, None]
    vectors = solution.eigenvectors.T
    signs = deterministic_signs(vectors)[:, None]
    vectors = vectors * signs
    coefficients = np.divide(vectors, roots, out=np.zeros_like(vectors), where=roots > 0)
    projections = vectors * roots
    certificate = certify(
        eigenvalues, solution.residuals, coefficients @ projections.T, solution.squared_norm
    )
    record = PassRecord(
        number=1,
        seconds=time.perf_counter() - begun,
        eigenvalues=eigenvalues,
        residuals=solution.residuals,
        gains=np.full(len(eigenvalues), np.nan),
        entries=counted.entries,
        change=0.0,
        orthonormality_defect=certificate.orthonormality_defect,
        excess_error=certificate.excess_error,
        recovery=workers.shortage.note,
    )
    components = Components(
        coefficients=coefficients,
        projections=projections,
        eigenvalues=eigenvalues,
        eigenvectors=vectors.T,
        centring=Centring(solution.column_means, solution.grand_mean),
        trace=solution.trace,
        certificate=certificate,
        outcome=Outcome.EXACT,
        records=[record],
    )
    return components if share is None else components.keep(slice(components.count(share)))


def iterated_components(
    solve: Callable[..., HebbianSolution | KrylovSolution],
    source: GramSource,
    n_components: int,
    options: HebbianOptions | KrylovOptions,
    *,
    seed: int,
    workers: Workers,
    watch: Watch = lambda snapshot: (),
    keeper: Keeper = FORGETFUL,
) -> Components:
    """An iterative solver in this process; ``watch`` makes the observers."""
    solution = solve(
        source,
        n_components,
        options,
        seed=seed,
        workers=workers,
        watch=lambda snapshot: watch(lambda: _from_iterations(snapshot())),
        keeper=keeper,
    )
    return _from_iterations(solution)


def _from_iterations(solution: HebbianSolution | KrylovSolution) -> Components:
    gram = solution.gram
    signs = deterministic_signs(solution.projections)[:, None]
    coefficients, projections = solution.coefficients * signs, solution.projections * signs
    eigenvalues = nonnegative_eigenvalues(solution.eigenvalues)
    return Components(
        coefficients=coefficients,
        projections=projections,
        eigenvalues=eigenvalues,
        eigenvectors=(coefficients * np.sqrt(eigenvalues)[:, None]).T,
        centring=gram.centring,
        trace=gram.mean_diagonal * gram.n_samples,
        certificate=certify(
            eigenvalues,
            relative_residuals(coefficients, projections, eigenvalues),
            coefficients.astype(np.float64) @ projections.astype(np.float64).T,
            gram.squared_norm_estimate,
            solution.next_eigenvalue if isinstance(solution, KrylovSolution) else None,
        ),
        outcome=solution.outcome,
        records=solution.records,
    )
