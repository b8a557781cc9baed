"""Dense solver: eigendecomposition of K' by LAPACK, of few components by ARPACK.

It is the reference for the other solvers and shares no algorithm with them.
"""

from __future__ import annotations

import time
from dataclasses import replace
from numbers import Integral
from typing import ClassVar

import numpy as np

from ikpca.errors import InvalidInput
from ikpca.gram import full_matrix, tile_slices
from ikpca.gram.centering import NOT_FINITE, Centering
from ikpca.kernels import Floats
from ikpca.solvers.base import EigenSolution, Outcome, PassRecord, RunSettings, Solver
from ikpca.solvers.problem import Plan, Problem
from ikpca.solvers.rayleigh_ritz import (
    certify,
    deterministic_signs,
    leading_eigenpairs,
    nonnegative_eigenvalues,
)


class Dense(Solver):
    """Eigendecomposition of the full kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> from ikpca.solvers import Dense
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> KernelPCA(2, kernel="rbf", eigen_solver=Dense()).fit_transform(X).shape
    (60, 2)
    """

    default_max_iter: ClassVar[int] = 1
    name = "dense"

    def check(self, n_components: float | None) -> None:
        """Accept any number of components."""

    def plan(self, problem: Problem, n_components: int) -> Plan:
        """Plan the memory of K, the copy that LAPACK overwrites, components and products."""
        vectors = 2 * problem.n_samples + 3 * n_components
        # Inner products of the components are in double precision at most.
        return Plan(vectors * problem.row_bytes + 5 * 8 * n_components**2)

    def solve(
        self, problem: Problem, n_components: float | None, settings: RunSettings
    ) -> EigenSolution:
        """Compute the leading components; the parameters are those of :meth:`Solver.solve`."""
        number = int(n_components) if isinstance(n_components, Integral) else None
        started = time.perf_counter()
        plan = self.plan(problem, min(number or problem.n_samples, problem.n_samples))
        with problem.open(plan) as (source, workers):
            K = full_matrix(source, workers)
            if not np.isfinite(K).all():
                raise InvalidInput(NOT_FINITE)
            # One BLAS thread, as the last bits depend on the number of threads.
            solution = solve_dense(K, number, overwrite=True)
        certificate = solution.certificate
        assert certificate is not None
        record = PassRecord(
            number=1,
            seconds=time.perf_counter() - started,
            eigenvalues=solution.eigenvalues,
            residuals=certificate.residuals,
            gains=np.full(len(solution.eigenvalues), np.nan),
            entries=source.entries,
            change=0.0,
            orthonormality_defect=certificate.orthonormality_defect,
            excess_error=certificate.excess_error,
        )
        solution = replace(solution, records=[record])
        if number is None and n_components is not None:
            solution = solution.select_fraction(n_components)
        settings.report(solution)
        return solution


def solve_dense(
    K: Floats, n_components: int | None = None, *, overwrite: bool = False
) -> EigenSolution:
    """Center K (Günter 2006, eq. 5) and solve the kernel eigenvalue problem.

    Parameters
    ----------
    K : ndarray of shape (l, l)
        Of an asymmetric matrix the lower triangle is used after centering.
    n_components : int, optional
        Number of leading eigenpairs; all by default.
    overwrite : bool
        Center K in place instead of a copy.
    """
    column_means, row_means = (K.mean(axis=axis, dtype=np.float64) for axis in (0, 1))
    grand_mean = float(column_means.mean())
    scale = float(np.abs(np.diag(K)).sum(dtype=np.float64))
    centered = K if overwrite else K.copy()
    # In double precision, as means may be much larger than centered values.
    for strip in tile_slices(len(K)):
        centered[strip] = K[strip] - column_means - (row_means[strip, None] - grand_mean)
    number = len(K) if n_components is None else min(n_components, len(K))
    values, vectors = leading_eigenpairs(centered, number)
    residuals = _residuals(centered, values, vectors)
    trace = float(np.trace(centered))
    eigenvalues = nonnegative_eigenvalues(values)
    rounding = 100 * np.finfo(K.dtype).eps * scale
    if trace <= rounding and eigenvalues.max(initial=0.0) <= rounding:
        eigenvalues = np.zeros_like(eigenvalues)
    roots = np.sqrt(eigenvalues)[:, None]
    rows = vectors.T
    rows *= deterministic_signs(rows)[:, None]
    coefficients = np.divide(rows, roots, out=np.zeros_like(rows), where=roots > 0)
    projections = rows * roots
    squared_norm = float(np.einsum("ij,ij->", centered, centered))
    return EigenSolution(
        coefficients=coefficients,
        projections=projections,
        eigenvalues=eigenvalues,
        eigenvectors=rows.T,
        centering=Centering(column_means.astype(K.dtype), grand_mean),
        trace=trace,
        certificate=certify(eigenvalues, residuals, coefficients @ projections.T, squared_norm),
        outcome=Outcome.EXACT,
    )


def _residuals(centered: Floats, values: Floats, vectors: Floats) -> Floats:
    largest, defects = float(np.abs(values).max(initial=0.0)), np.empty_like(values)
    for part in tile_slices(len(values)):
        products = centered @ vectors[:, part]
        products -= vectors[:, part] * values[part]
        defects[part] = np.linalg.norm(products, axis=0)
    return defects / largest if largest > 0 else np.zeros_like(defects)
