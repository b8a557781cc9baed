"""Nyström solver: the best components in the span of landmarks, with a sampled certificate.

The images of landmarks, made orthonormal by a Cholesky factor of their kernel matrix, are features
z(x). One pass over the rows sums z and zzᵀ; the principal components of z are the best components
in the span. No array of rows × landmarks is ever stored.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import ClassVar

import numpy as np

from ikpca.errors import (
    Choice,
    InvalidInput,
    Number,
    ParameterRules,
    check_parameters,
    invalid_parameter,
    is_auto,
)
from ikpca.gram import ComputedGram, GramSource, cross_gram
from ikpca.gram.centering import NOT_FINITE, Centering
from ikpca.gram.parallel import Workers
from ikpca.kernels import Floats, Indices
from ikpca.solvers.base import (
    EigenSolution,
    Landmarks,
    Outcome,
    PassRecord,
    RunSettings,
    Solver,
)
from ikpca.solvers.landmarks import (
    KernelColumns,
    LandmarkComponents,
    LandmarkFeatures,
    Moments,
    multiply_triangle,
    pivoted_landmarks,
    symmetrized,
    total_moments,
    uniform_landmarks,
)
from ikpca.solvers.problem import Plan, Problem, check_kernel_values
from ikpca.solvers.rayleigh_ritz import (
    SAMPLE_ROWS,
    SampledResiduals,
    certify,
    deterministic_signs,
    draw_rows,
    leading_eigenpairs,
    nonnegative_eigenvalues,
)

SELECTIONS = ("uniform", "pivoted")
_RULES: ParameterRules = {
    "selection": Choice(SELECTIONS),
    "n_landmarks": Number("must be 'auto' or a positive integer", "pass 'auto'",
                          low=1, integer=True, allowed=("auto",)),
}  # fmt: skip
#: Landmarks without a tolerance: at least this many, and this many per component.
_LANDMARKS, _LANDMARKS_PER_COMPONENT = 512, 16
#: First number of landmarks with a tolerance.
_FIRST_LANDMARKS = 256
#: Factor of the number of landmarks until they fit into an explicit budget.
_SHRINK = 0.8
#: Entries of a strip of kernel values, and limits on its rows.
_STRIP_ENTRIES, _MIN_STRIP, _MAX_STRIP = 2**21, 128, 8192
#: Least number of strips of many rows.
_STRIPS = 16
#: Largest amounts of kernel values and projections that are kept for the certificate.
_CACHE_BYTES, _PROJECTION_BYTES = 128 * 10**6, 256 * 10**6
#: Strips of kernel values and features, and sums of products that wait in the order of the rows.
_PENDING = 5


class Nystrom(Solver):
    """Best components in the span of landmarks, from a few passes over the rows.

    The fitted model keeps only the landmarks: ``landmarks_`` are their rows, and the components are
    ``landmark_coefficients_`` times the images of these rows, not centered. The certificate is
    estimated from kernel values of a few random rows with all rows.

    Parameters
    ----------
    n_landmarks : int or "auto", default="auto"
        Number of landmarks, at most the number of rows. "auto": with ``tol=0``, 16 per component
        and at least 512; otherwise doubled until the certificate is within ``tol``.
    selection : {"uniform", "pivoted"}, default="uniform"
        Rows drawn uniformly, or by randomly pivoted Cholesky, for data with a few outlying rows.

    See Also
    --------
    sklearn.kernel_approximation.Nystroem : Followed by PCA, it finds the same components.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> from ikpca.solvers import Nystrom
    >>> X = np.random.default_rng(0).normal(size=(3000, 3))
    >>> model = KernelPCA(2, kernel="rbf", eigen_solver=Nystrom(100), random_state=0).fit(X)
    >>> model.landmarks_.shape, model.landmark_coefficients_.shape
    ((100, 3), (2, 100))
    >>> bool((model.certificate_.residual_bounds >= model.certificate_.residuals).all())
    True
    """

    default_max_iter: ClassVar[int] = 20
    name = "nystrom"

    def __init__(self, n_landmarks: int | str = "auto", selection: str = "uniform") -> None:
        self.n_landmarks = n_landmarks
        self.selection = selection

    def check(self, n_components: float | None) -> None:
        """Validate the options; there are at most as many components as landmarks."""
        check_parameters(self, _RULES)
        if is_auto(self.n_landmarks):
            return
        if isinstance(n_components, Integral) and n_components > int(self.n_landmarks):
            raise invalid_parameter(
                "n_landmarks",
                self.n_landmarks,
                f"there are at most as many components as landmarks, and n_components="
                f"{n_components}",
                "pass more landmarks",
            )

    def plan(self, problem: Problem, n_components: int) -> Plan:
        """Plan the first number of landmarks."""
        number = self._first_number(problem, n_components, 0.0)
        return Plan(landmark_bytes(problem, number), n_landmarks=number)

    def solve(
        self, problem: Problem, n_components: float | None, settings: RunSettings
    ) -> EigenSolution:
        """Compute the leading components; the parameters are those of :meth:`Solver.solve`."""
        check_rows_and_kernel(problem)
        single, error = problem.in_single_precision(settings.tol) or (problem, 0.0)
        number = self._first_number(problem, n_components, settings.tol)
        records: list[PassRecord] = []
        while True:
            check_memory(single, number)
            with Workers(problem.n_threads) as workers:
                fit = LandmarkFit.of(single, self.selection, number, workers)
                solution = fit.solution(n_components, records, tol=settings.tol)
            if single is not problem:
                solution = solution.with_error(error)
                solution = solution.astype_float64(problem.take_rows(fit.indices))
            records = list(solution.records)
            stop = settings.report(solution)
            outcome = self._outcome(problem, solution, n_components, settings, number) or stop
            if outcome is not None:
                return replace(solution, outcome=outcome)
            number = min(2 * number, problem.n_samples)

    def fit_parts(
        self,
        problem: Problem,
        parts: Sequence[Indices],
        number: int,
        min_number: int,
        workers: Workers,
    ) -> LandmarkFit:
        """Compute the moments of parts of the rows on one set of landmarks.

        Parameters
        ----------
        problem : Problem
        parts : sequence of indices
            Every row belongs to one of them.
        number, min_number : int
            Landmarks for ``n_landmarks="auto"``; fewer, but at least ``min_number``, if an explicit
            budget is too small.
        workers : Workers
        """
        check_rows_and_kernel(problem)
        if not is_auto(self.n_landmarks):
            number = min_number = int(self.n_landmarks)
        number = min(number, problem.n_samples)
        while True:
            # The moments of every part, and the components without it.
            used = problem.budget.used + 2 * 8 * len(parts) * number * number
            reserved = replace(problem, budget=replace(problem.budget, used=used))
            fits = landmark_bytes(reserved, number) <= reserved.budget.available
            if fits or not problem.budget.explicit or number <= min_number:
                break
            number = max(min_number, int(_SHRINK * number))
        check_memory(reserved, number)
        return LandmarkFit.of(reserved, self.selection, number, workers, parts)

    def _first_number(self, problem: Problem, n_components: float | None, tol: float) -> int:
        if not is_auto(self.n_landmarks):
            return min(int(self.n_landmarks), problem.n_samples)
        n_known = int(n_components) if isinstance(n_components, Integral) else 0
        first = _LANDMARKS if tol <= np.finfo(problem.X.dtype).eps else _FIRST_LANDMARKS
        return min(max(first, _LANDMARKS_PER_COMPONENT * n_known), problem.n_samples)

    def _outcome(
        self,
        problem: Problem,
        solution: EigenSolution,
        n_components: float | None,
        settings: RunSettings,
        number: int,
    ) -> Outcome | None:
        """Return the outcome of the last number of landmarks; None if more are needed."""
        assert solution.certificate is not None
        exact = settings.tol <= np.finfo(problem.X.dtype).eps
        fixed = not is_auto(self.n_landmarks) or number == problem.n_samples
        if not explains_enough(solution.eigenvalues, solution.trace, n_components):
            if fixed and number < problem.n_samples:
                share = float(solution.eigenvalues.sum(dtype=np.float64)) / solution.trace
                raise invalid_parameter(
                    "n_components",
                    n_components,
                    f"{number} landmarks explain only {share:.3g} of the variance",
                    "pass more landmarks or a smaller fraction",
                )
            return Outcome.LANDMARKS if fixed else None
        if float(solution.certificate.residual_bounds.max(initial=0.0)) <= settings.tol:
            return Outcome.CONVERGED
        if fixed or exact:
            return Outcome.LANDMARKS
        return Outcome.PASS_LIMIT if len(solution.records) >= settings.max_iter else None


def check_rows_and_kernel(problem: Problem) -> None:
    """Raise an error for a problem without rows, and for kernel values that overflow."""
    if problem.kernel is None or problem.transform is not None:
        raise InvalidInput(
            "eigen_solver='nystrom' computes kernel values of rows with landmarks: it does not "
            "support a precomputed or normalized kernel matrix; pass rows and a kernel, or "
            "eigen_solver='krylov'."
        )
    if problem.engine is None:
        check_kernel_values(problem.kernel, problem.X)


def explains_enough(eigenvalues: Floats, trace: float, n_components: float | None) -> bool:
    """Return False if eigenvalues explain less than the requested fraction of the variance."""
    if n_components is None or isinstance(n_components, Integral):
        return True
    return float(eigenvalues.sum(dtype=np.float64)) > n_components * trace


def strip_rows(problem: Problem, number: int) -> int:
    """Return the rows of a strip; fewer if an explicit budget is small."""
    rows, budget = min(max(_STRIP_ENTRIES // number, _MAX_STRIP // 4), _MAX_STRIP), problem.budget
    # Threads share the strips evenly only if there are several for each.
    rows = min(rows, max(-(-problem.n_samples // _STRIPS), _MAX_STRIP // 8))
    while rows > _MIN_STRIP and budget.explicit:
        if landmark_bytes(problem, number, rows, problem.n_threads) <= budget.available:
            break
        rows //= 2
    return max(rows, _MIN_STRIP)


def landmark_bytes(problem: Problem, number: int, rows: int = _MIN_STRIP, threads: int = 1) -> int:
    """Return the memory of a fit: factors in double precision, strips, and one number per row."""
    item = problem.X.dtype.itemsize
    width = 2 * (number + SAMPLE_ROWS) + problem.X.shape[1] + 4
    factors = 6 * 8 * number * number + (_PENDING - 1) * threads * number * number * item
    strips = threads * rows * width * item
    # Distances, leverages, their product, and the probabilities of rows.
    vectors = 6 * item * problem.n_samples
    return factors + strips + vectors + 2 * number * problem.X.shape[1] * item


def cache_bytes(problem: Problem, number: int, rows: int, limit: int) -> int:
    """Return the memory for values that are kept between the passes."""
    needed = landmark_bytes(problem, number, rows, problem.n_threads)
    return max(0, min(limit, (problem.budget.available - needed) // 3))


def check_memory(problem: Problem, number: int) -> None:
    """Raise an error if an explicit budget is too small."""
    needed = problem.budget.used + landmark_bytes(problem, number)
    if problem.budget.explicit and needed > problem.budget.n_bytes:
        raise invalid_parameter(
            "max_memory",
            problem.budget.n_bytes,
            f"{number} landmarks need at least {needed} bytes",
            "raise it, or pass fewer landmarks",
        )


@dataclass(frozen=True, eq=False)
class LandmarkFit:
    """Moments of the features of all rows, from which components follow.

    Parameters
    ----------
    problem : Problem
    landmarks : ndarray of shape (m,)
        Indices of all landmarks.
    indices : ndarray of shape (q,)
        Indices of those that are linearly independent, in the order of the features.
    features : LandmarkFeatures
    parts : list of Moments
        Moments of the parts of the rows.
    n_samples : int
        Number of rows of which the mean, the scatter and the trace are.
    mean, scatter : ndarray of shape (q,) and (q, q)
    distances : ndarray of shape (n_samples,)
        Squared distances of all rows from the span.
    diagonal : ndarray of shape (n_samples,)
        k(x, x) of all rows.
    trace : float
    workers : Workers
    cache : ndarray of shape (rows, q) or None
        Kernel values of the first rows, in one array, which the system backs by huge pages.
    started : float
    """

    problem: Problem
    landmarks: Indices
    indices: Indices
    features: LandmarkFeatures
    parts: Sequence[Moments]
    n_samples: int
    mean: Floats
    scatter: Floats
    distances: Floats
    diagonal: Floats
    trace: float
    workers: Workers
    cache: Floats | None
    started: float

    @classmethod
    def of(
        cls,
        problem: Problem,
        selection: str,
        number: int,
        workers: Workers,
        parts: Sequence[Indices] | None = None,
        more: Indices | None = None,
    ) -> LandmarkFit:
        """Choose landmarks and compute the moments in one pass over the rows, or over parts.

        The landmarks also contain the rows ``more``.
        """
        started = time.perf_counter()
        assert problem.kernel is not None
        landmarks = select_landmarks(problem, selection, number, workers)
        if more is not None:
            landmarks = np.union1d(landmarks, more)
        strip = strip_rows(problem, number)
        features, kept = LandmarkFeatures.of(problem.kernel, problem.take_rows(landmarks), strip)
        cache, available = None, cache_bytes(problem, number, strip, _CACHE_BYTES)
        # Of many rows it would hold too little to save time; strips of parts do not come again.
        worthwhile = parts is None and 4 * available >= number * problem.row_bytes
        if problem.engine is None and worthwhile:
            kept_rows = min(problem.n_samples, available // (len(kept) * problem.X.dtype.itemsize))
            cache = np.empty((kept_rows, len(kept)), dtype=problem.X.dtype)
        size = len(features.gram)
        distances, diagonal = np.empty((2, problem.n_samples), dtype=problem.X.dtype)
        part_moments: list[Moments] = []
        for rows in [None] if parts is None else parts:
            sums, products, n_read = np.zeros(size), np.zeros((size, size)), 0
            function = partial(features.moments, cache)
            for moments in problem.map_rows(function, strip, workers, rows):
                sums += moments[0]
                products += moments[1]
                own = slice(n_read, n_read + len(moments[2]))
                indices = own if rows is None else rows[own]
                distances[indices], diagonal[indices] = moments[2:]
                n_read = own.stop
            trace = float(diagonal[slice(n_read) if rows is None else rows].sum(dtype=np.float64))
            if not (np.isfinite(products).all() and np.isfinite(trace)):
                raise InvalidInput(NOT_FINITE)
            part_moments.append((n_read, sums, products, trace))
        total = total_moments(part_moments)
        mean, scatter = features.mean_and_scatter(total)
        trace = total[3] - total[0] * float(mean @ mean)
        return cls(
            problem, landmarks, landmarks[kept], features, part_moments, total[0], mean, scatter,
            distances, diagonal, trace, workers, cache, started,
        )  # fmt: skip

    def leave_out(self, part: int, landmarks: Indices) -> LandmarkFit:
        """Return the fit of the other parts on some of the landmarks, without a pass."""
        rows = self.problem.take_rows(landmarks)
        features, kept = LandmarkFeatures.of(self.features.kernel, rows, self.features.strip)
        projector = self.features.projector(features)
        rest = total_moments([*self.parts[:part], *self.parts[part + 1 :]])
        mean, scatter = self.features.mean_and_scatter(rest)
        mean, scatter = projector @ mean, projector @ scatter @ projector.T
        return replace(
            self,
            indices=landmarks[kept],
            features=features,
            n_samples=rest[0],
            mean=mean,
            scatter=symmetrized(scatter),
            trace=rest[3] - rest[0] * float(mean @ mean),
        )

    @property
    def captured(self) -> float:
        """Fraction of the variance in the span of the landmarks."""
        return min(1.0, float(np.trace(self.scatter)) / self.trace) if self.trace > 0 else 1.0

    @property
    def kernel_means(self) -> Floats:
        """Mean kernel values of the landmarks with all rows."""
        return self.features.gram @ (self.features.inverse.T @ self.mean)

    def components(self, n_components: float | None) -> LandmarkComponents:
        """Compute the leading components; zeros beyond the rank."""
        values, U = self._eigenpairs(n_components)
        number = len(values)
        if isinstance(n_components, Integral):
            number = min(int(n_components), self.n_samples)
        elif n_components is not None:
            explained = np.cumsum(values) > n_components * self.trace
            number = int(np.argmax(explained)) + 1 if explained.any() else number
        following = float(values[number]) if number < len(values) else 0.0
        missing = max(0, number - len(values))
        values = np.pad(values[:number], (0, missing))
        eigenvalues = nonnegative_eigenvalues(values.astype(self.problem.X.dtype))
        U = np.pad(U[:, :number], ((0, 0), (0, missing))) * (eigenvalues > 0)
        A = U.T @ self.features.inverse
        signs = deterministic_signs(A @ (self.features.gram - self.kernel_means[:, None]))
        A = A * signs[:, None]
        return LandmarkComponents(self.features, eigenvalues, following, A, A @ self.kernel_means)

    def solution(
        self,
        n_components: float | None,
        earlier: Sequence[PassRecord] = (),
        choice: str = "",
        tol: float = 0.0,
    ) -> EigenSolution:
        """Compute components and their certificate; ``tol`` decides on the size of its sample."""
        components, gram = self.components(n_components), self.features.gram
        A, eigenvalues = components.coefficients, components.eigenvalues
        estimate, row_projections = self._sampled_residuals(components, tol)
        missed = self.missed_eigenvalues()
        # A lower bound, as eigenvalues in the span are at most those of K'.
        squared_norm = float(np.sum(np.square(self.scatter)))
        certificate = certify(
            eigenvalues,
            estimate.residuals,
            A @ gram @ A.T,
            squared_norm,
            components.next_eigenvalue,
            residual_bounds=estimate.bounds,
            of_projections=True,
            missed=missed,
        )
        entries = self.n_samples * (2 * len(gram) + estimate.n_rows)
        record = PassRecord(
            number=len(earlier) + 1,
            seconds=time.perf_counter() - self.started,
            eigenvalues=eigenvalues,
            residuals=certificate.residuals,
            gains=np.full(len(eigenvalues), np.nan),
            entries=entries + (earlier[-1].entries if earlier else 0),
            change=np.nan,
            orthonormality_defect=certificate.orthonormality_defect,
            excess_error=certificate.excess_error,
            choice=choice or f"{len(gram)} landmarks",
        )
        solution = self.to_solution(components)
        assert solution.landmarks is not None
        return replace(
            solution,
            certificate=certificate,
            records=[*earlier, record],
            landmarks=replace(
                solution.landmarks,
                row_projections=row_projections,
                missed_eigenvalue=float(missed.max(initial=0.0)),
            ),
        )

    def residual_bound(self, n_components: float | None) -> float:
        """Return the largest residual bound; infinite if the components explain too little."""
        components = self.components(n_components)
        if not explains_enough(components.eigenvalues, self.trace, n_components):
            return np.inf
        return float(self._sampled_residuals(components, 0.0)[0].bounds.max(initial=0.0))

    @cached_property
    def distant_rows(self) -> Indices:
        """Rows drawn in proportion to their squared distance from the span; they may repeat."""
        rng = np.random.default_rng([self.problem.seed, 9])
        if not self.distances.any():
            return np.zeros(0, dtype=np.intp)
        return draw_rows(self.distances, rng.random(SAMPLE_ROWS))

    def missed_eigenvalues(self) -> Floats:
        """Estimate the largest eigenvalues of K outside of the span of the landmarks.

        The kernel matrix of the differences from the span is sampled in proportion to its diagonal.
        Its own diagonal is left out, as it is not small where all other entries are.
        """
        indices, features = self.distant_rows, self.features
        if not len(indices):
            return np.zeros(0)
        rows = self.problem.take_rows(indices).astype(np.float64)
        z = KernelColumns(features.kernel, features.rows.astype(np.float64)).of(rows)
        z = multiply_triangle(z, features.inverse)
        rest = cross_gram(features.kernel, rows, rows) - z @ z.T
        np.fill_diagonal(rest, 0)
        weights = self.distances[indices] / self.distances.sum(dtype=np.float64) * len(indices)
        values = np.linalg.eigvalsh(rest / np.sqrt(np.outer(weights, weights)))
        return values[values > 0][::-1]

    def _sampled_residuals(
        self, components: LandmarkComponents, tol: float
    ) -> tuple[SampledResiduals, Floats | None]:
        """Estimate residuals in a pass over the rows; also return the projections of all rows.

        The mean of the rows is not in the span, and leaving it out only makes residuals larger.
        """
        if not components.eigenvalues.any():
            zeros = np.zeros(len(components.eigenvalues))
            return SampledResiduals(zeros, zeros, 0), None
        projections, leverages = self._projections_and_leverages(components)
        eigenvalues = components.eigenvalues.astype(np.float64)
        roots, largest = np.sqrt(eigenvalues), float(eigenvalues.max())
        values = KernelColumns(self.features.kernel, self.features.rows)

        def rows_of(indices: Indices) -> Floats:
            sample = self.problem.take_rows(indices)
            products = partial(components.sampled_products, sample, projections, self.cache)
            total = sum(self.problem.map_rows(products, self.features.strip, self.workers))
            R = np.divide(total, roots, out=np.zeros_like(total), where=roots > 0)
            return R - values.of(sample).astype(np.float64) @ components.coefficients.T * roots

        estimate = SampledResiduals.of(
            rows_of, self.diagonal, self.distances, leverages, self.problem.seed, tol, largest
        )
        return estimate, projections

    def to_solution(self, components: LandmarkComponents) -> EigenSolution:
        """Return components as a solution, without a certificate and its pass over the rows."""
        A, gram, eigenvalues = components.coefficients, self.features.gram, components.eigenvalues
        dtype, mean = self.problem.X.dtype, self.features.inverse.T @ self.mean
        return EigenSolution(
            coefficients=A.astype(dtype),
            projections=(A @ gram - components.offsets[:, None]).astype(dtype),
            eigenvalues=eigenvalues,
            eigenvectors=(A * np.sqrt(eigenvalues)[:, None]).T.astype(dtype),
            centering=Centering(self.kernel_means.astype(dtype), float(self.mean @ self.mean)),
            trace=self.trace,
            certificate=None,
            outcome=Outcome.LANDMARKS,
            landmarks=Landmarks(self.features.rows, mean.astype(dtype), self.n_samples),
        )

    def projections(self, number: int) -> Floats:
        """Return the projections of all rows on the leading components."""
        project = self.components(number).project
        parts = self.problem.map_rows(partial(project, None), self.features.strip, self.workers)
        return np.concatenate(list(parts))

    def _projections_and_leverages(
        self, components: LandmarkComponents
    ) -> tuple[Floats | None, Floats]:
        """Return the projections of all rows, None if they need too much memory, and leverages."""
        strip, number = self.features.strip, len(components.offsets)
        n_bytes = self.problem.row_bytes * number
        leverages, start = np.empty_like(self.distances), 0
        if self.problem.engine is not None or n_bytes > cache_bytes(
            self.problem, len(self.features.gram), strip, _PROJECTION_BYTES
        ):
            function = partial(components.leverages, self.cache)
            for part in self.problem.map_rows(function, strip, self.workers):
                leverages[start : start + len(part)] = part
                start += len(part)
            return None, leverages
        Y = np.empty((self.problem.n_samples, number), dtype=leverages.dtype)
        function, weights = partial(components.project, self.cache), components.inverse_eigenvalues
        for part in self.problem.map_rows(function, strip, self.workers):
            own = slice(start, start + len(part))
            Y[own], leverages[own] = part, np.square(part) @ weights.astype(Y.dtype)
            start = own.stop
        return Y, leverages

    def _eigenpairs(self, n_components: float | None) -> tuple[Floats, Floats]:
        """Return the leading eigenpairs of the scatter, and one more; all if the number is open."""
        order = len(self.scatter)
        scale = self.trace + self.n_samples * float(self.mean @ self.mean)
        if self.trace <= 100 * np.finfo(self.problem.X.dtype).eps * scale:
            return np.zeros(0), np.zeros((order, 0))
        number = min(int(n_components) + 1, order) if isinstance(n_components, Integral) else order
        return leading_eigenpairs(self.scatter, number)


def select_landmarks(problem: Problem, selection: str, number: int, workers: Workers) -> Indices:
    """Choose rows uniformly, or by randomly pivoted Cholesky."""
    if selection == "uniform" or number >= problem.n_samples:
        return uniform_landmarks(problem.n_samples, number, problem.seed)
    assert problem.kernel is not None
    source: GramSource | None = problem.engine
    if source is None:
        source = ComputedGram(problem.kernel, problem.X, strip_rows(problem, number))
    return pivoted_landmarks(source, number, problem.seed, workers)
