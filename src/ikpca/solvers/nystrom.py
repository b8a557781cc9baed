"""Nyström solver: the best components in the span of landmarks, with a sampled certificate.

The images of landmarks, made orthonormal by a Cholesky factor of their kernel matrix, are features
z(x). One pass over the rows sums z and zzᵀ; the principal components of z are the best components
in the span. Kernel values of rows with landmarks are kept for the certificate as far as a small
cache has memory for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import ClassVar, TypeVar

import numpy as np
from scipy import linalg

from ikpca.errors import (
    Choice,
    InvalidInput,
    Number,
    ParameterRules,
    check_parameters,
    invalid_parameter,
    is_auto,
)
from ikpca.gram import ComputedGram, cross_gram, tile_slices
from ikpca.gram.centering import NOT_FINITE, Centering
from ikpca.gram.resources import Workers
from ikpca.kernels import Floats, Indices, Kernel, Rows
from ikpca.solvers.base import (
    EigenSolution,
    Landmarks,
    Outcome,
    PassRecord,
    RunSettings,
    Solver,
)
from ikpca.solvers.landmarks import choose_landmarks
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

Result = TypeVar("Result")

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
#: Entries of a strip of kernel values, limits on its rows, and least number of strips of many rows:
#: threads share the strips evenly only if there are several for each.
_STRIP_ENTRIES, _MIN_STRIP, _MAX_STRIP, _STRIPS = 2**21, 128, 8192, 16
#: Largest amounts of kernel values and projections that are kept for the certificate.
_CACHE_BYTES, _PROJECTION_BYTES = 128 * 10**6, 256 * 10**6
#: Strips of kernel values and features, and sums of products that wait in the order of the rows.
_PENDING = 5
#: Part of k(x, x) below which the rest of a landmark is rounding noise, by item size.
_DROP_PIVOTS = {4: 1e-7, 8: 1e-12}
#: Relative size of the rest of a kernel matrix that shows that it is not positive semi-definite.
_INDEFINITE = 1e-5
#: Blocks of the product with a triangular factor; more of them skip more zeros.
_TRIANGLE_BLOCKS = 8


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
            if number <= min_number or fits_memory(reserved, number):
                break
            number = max(min_number, int(_SHRINK * number))
        return LandmarkFit.of(reserved, self.selection, number, workers, parts)

    def _first_number(self, problem: Problem, n_components: float | None, tol: float) -> int:
        if not is_auto(self.n_landmarks):
            return min(int(self.n_landmarks), problem.n_samples)
        wanted = int(n_components) if isinstance(n_components, Integral) else 0
        first = _LANDMARKS if tol <= np.finfo(problem.X.dtype).eps else _FIRST_LANDMARKS
        return min(max(first, _LANDMARKS_PER_COMPONENT * wanted), problem.n_samples)

    def _outcome(
        self,
        problem: Problem,
        solution: EigenSolution,
        n_components: float | None,
        settings: RunSettings,
        number: int,
    ) -> Outcome | None:
        """Return the outcome of the last number of landmarks; None if more are needed."""
        bound = residual_bound(solution, n_components)
        is_last = not is_auto(self.n_landmarks) or number == problem.n_samples
        if np.isinf(bound):
            if is_last and number < problem.n_samples:
                share = float(solution.eigenvalues.sum(dtype=np.float64)) / solution.trace
                raise invalid_parameter(
                    "n_components",
                    n_components,
                    f"{number} landmarks explain only {share:.3g} of the variance",
                    "pass more landmarks or a smaller fraction",
                )
            return Outcome.LANDMARKS if is_last else None
        if bound <= settings.tol:
            return Outcome.CONVERGED
        if is_last or settings.tol <= np.finfo(problem.X.dtype).eps:
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


def residual_bound(solution: EigenSolution, n_components: float | None) -> float:
    """Return the largest residual bound; infinite if a fraction of the variance is not reached."""
    assert solution.certificate is not None
    fraction = 0.0 if n_components is None or isinstance(n_components, Integral) else n_components
    if fraction and float(solution.eigenvalues.sum(dtype=np.float64)) <= fraction * solution.trace:
        return np.inf
    return float(solution.certificate.residual_bounds.max(initial=0.0))


def strip_rows(problem: Problem, number: int) -> int:
    """Return the rows of a strip; fewer if an explicit budget is small."""
    rows = min(max(_STRIP_ENTRIES // number, _MAX_STRIP // 4), _MAX_STRIP)
    rows = min(rows, max(-(-problem.n_samples // _STRIPS), _MAX_STRIP // 8))
    while rows > _MIN_STRIP and not fits_memory(problem, number, rows, problem.n_threads):
        rows //= 2
    return max(rows, _MIN_STRIP)


def fits_memory(problem: Problem, number: int, rows: int = _MIN_STRIP, threads: int = 1) -> bool:
    """Return False if an explicit budget is too small."""
    needed = landmark_bytes(problem, number, rows, threads)
    return not problem.budget.explicit or needed <= problem.budget.available


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


class IndefiniteKernel(InvalidInput):
    """Kernel matrix with significant negative eigenvalues."""


@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    """Features z(x) = T(k(x) − c) of rows; computes them by strips, also in other processes.

    Parameters
    ----------
    kernel : Kernel
    rows : rows of shape (q, N)
        Landmarks that are linearly independent in feature space.
    gram : ndarray of shape (q, q)
        Their kernel matrix in double precision.
    weights : ndarray of shape (q, q)
        T, the inverse of its Cholesky factor.
    strip : int
        Rows of a strip.
    cache : ndarray of shape (n_cached, q), optional
        Kernel values of the first rows: written by ``moments``, then read.
    """

    kernel: Kernel
    rows: Rows
    gram: Floats
    weights: Floats
    strip: int
    cache: Floats | None = None

    @classmethod
    def of(cls, kernel: Kernel, rows: Rows, strip: int) -> tuple[LandmarkFeatures, Indices]:
        """Factor the kernel matrix of landmarks; also return the indices of those that are kept.

        Landmarks whose images are combinations of those of others are dropped.
        """
        exact = rows.astype(np.float64)
        gram = cross_gram(kernel, exact, exact)
        if not np.isfinite(gram).all():
            raise InvalidInput(NOT_FINITE)
        gram = (gram + gram.T) / 2
        largest = float(np.abs(np.diag(gram)).max())
        tolerance = _DROP_PIVOTS[rows.dtype.itemsize] * largest
        factor, pivots, rank, _ = linalg.lapack.dpstrf(gram, lower=1, tol=tolerance)
        order = np.asarray(pivots, dtype=np.intp) - 1
        rest, below = gram[np.ix_(order[rank:], order[rank:])], factor[rank:, :rank]
        if np.abs(rest - below @ below.T).max(initial=0.0) > _INDEFINITE * largest:
            raise IndefiniteKernel(
                "the kernel matrix of the landmarks is not positive semi-definite: its span has no "
                "best components; choose another kernel, or eigen_solver='krylov'."
            )
        kept, weights = order[: max(rank, 1)], np.zeros((1, 1))
        if rank:
            weights = np.tril(linalg.lapack.dtrtri(factor[:rank, :rank], lower=1)[0])
        return cls(kernel, rows[kept], gram[np.ix_(kept, kept)], weights, strip), kept

    @property
    def center(self) -> Floats:
        """Mean c of the kernel values of the landmarks, near the mean of those of all rows."""
        return self.gram.mean(axis=1)

    def exact_coordinates(self, X: Rows) -> Floats:
        """Return Tk(x) of a few rows in double precision."""
        X, landmarks = (rows.astype(np.float64) for rows in (X, self.rows))
        return multiply_triangle(cross_gram(self.kernel, X, landmarks), self.weights)

    def kernel_values(self, X: Rows, start: int) -> Floats:
        """Return the kernel values of rows with the landmarks, from the cache if it has them."""
        values = self._cached(start, X.shape[0])
        return cross_gram(self.kernel, X, self.rows) if values is None else values

    def moments(self, X: Rows, start: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Return Σz, Σzzᵀ, and the squared distances from the span and k(x, x) of rows.

        Distances that are rounding errors keep their size, by which rows are sampled.
        """
        dtype, number = X.dtype, len(self.gram)
        weights = self.weights.astype(dtype)
        offset = weights @ self.center.astype(dtype)
        sums, products = np.zeros(number), np.zeros((number, number), dtype=dtype)
        distances, diagonal = np.empty((2, X.shape[0]), dtype=dtype)
        for part in tile_slices(X.shape[0], self.strip):
            strip = X[part]
            k = self._cached(start + part.start, strip.shape[0])
            if k is None:
                k = np.empty((strip.shape[0], number), dtype=dtype)
            self.kernel.fill(strip, self.rows, k)
            z = multiply_triangle(k, weights)
            diagonal[part] = self.kernel.diagonal(strip)
            distances[part] = np.abs(diagonal[part] - np.einsum("ij,ij->i", z, z))
            z -= offset
            sums += z.sum(axis=0, dtype=np.float64)
            products += z.T @ z
        return sums, products, distances, diagonal

    def mean_and_scatter(
        self, counts: Floats, sums: Floats, products: Floats, traces: Floats
    ) -> tuple[int, Floats, Floats, float]:
        """Return the number of rows, the mean of Tk, Σzzᵀ about the mean, and the trace of K'.

        The parameters are the moments of parts of the rows.
        """
        n_samples, total = int(counts.sum()), sums.sum(axis=0)
        shift = total / n_samples
        scatter = np.outer(shift, -total)
        scatter += products.sum(axis=0)
        mean = shift + self.weights @ self.center
        trace = float(traces.sum()) - n_samples * float(mean @ mean)
        return n_samples, mean, (scatter + scatter.T) / 2, trace

    def _cached(self, start: int, n_rows: int) -> Floats | None:
        """Return the memory of a strip in the cache; None if it does not have all of it."""
        strip = None if self.cache is None else self.cache[start : start + n_rows]
        return strip if strip is not None and len(strip) == n_rows else None


def multiply_triangle(k: Floats, lower: Floats) -> Floats:
    """Return k Lᵀ for a lower triangular matrix, by blocks that skip most zeros."""
    number = len(lower)
    out = np.empty_like(k)
    for block in tile_slices(number, max(64, -(-number // _TRIANGLE_BLOCKS))):
        np.matmul(k[:, : block.stop], lower[block, : block.stop].T, out=out[:, block])
    return out


@dataclass(frozen=True, eq=False)
class LandmarkComponents:
    """Components in the span of landmarks; projects strips of rows, also in other processes.

    Parameters
    ----------
    features : LandmarkFeatures
    eigenvalues : ndarray of shape (r,)
    next_eigenvalue : float
    coefficients : ndarray of shape (r, q)
        Coefficients of the images of the landmarks, in double precision.
    offsets : ndarray of shape (r,)
        Inner products with the mean.
    """

    features: LandmarkFeatures
    eigenvalues: Floats
    next_eigenvalue: float
    coefficients: Floats
    offsets: Floats

    def project(self, X: Rows, start: int) -> Floats:
        """Return the projections of rows."""
        A, offsets = self.coefficients.astype(X.dtype), self.offsets.astype(X.dtype)
        parts = tile_slices(X.shape[0], self.features.strip)
        values = (self.features.kernel_values(X[part], start + part.start) for part in parts)
        return np.concatenate([strip @ A.T - offsets for strip in values])

    def leverages_of(self, X: Rows, start: int) -> Floats:
        """Return the leverages of rows."""
        return self.leverages(self.project(X, start))

    def leverages(self, projections: Floats) -> Floats:
        """Return Σ_i y_i²/λ_i, without components that have no variance."""
        weights = np.zeros_like(self.eigenvalues)
        np.divide(1, self.eigenvalues, out=weights, where=self.eigenvalues > 0)
        return np.einsum("ij,ij,j->i", projections, projections, weights)

    def sampled_products(
        self, sample: Rows, projections: Floats | None, X: Rows, start: int
    ) -> Floats:
        """Return the part of rows X of K[S, :]Y, in double precision.

        Parameters
        ----------
        sample : rows of shape (s, N)
            The rows S.
        projections : ndarray of shape (l, r) or None
            Y; computed again if it is not kept.
        X, start
            Rows, and the index of the first one.
        """
        total = np.zeros((sample.shape[0], len(self.offsets)))
        for part in tile_slices(X.shape[0], self.features.strip):
            strip, own = X[part], slice(start + part.start, start + part.stop)
            Y = self.project(strip, own.start) if projections is None else projections[own]
            total += cross_gram(self.features.kernel, strip, sample).T @ Y
        return total


@dataclass(frozen=True, eq=False)
class LandmarkFit:
    """Moments of the features of all rows, from which components follow.

    Parameters
    ----------
    problem : Problem
    workers : Workers
    landmarks : ndarray of shape (m,)
        Indices of all landmarks.
    indices : ndarray of shape (q,)
        Indices of those that are linearly independent, in the order of the features.
    features : LandmarkFeatures
    moments : tuple of ndarray
        Number of rows, Σz, Σzzᵀ and Σk(x, x), of every part of the rows.
    n_samples : int
        Number of rows of which the mean, the scatter and the trace are.
    mean, scatter : ndarray of shape (q,) and (q, q)
        Mean of Tk(x), and Σzzᵀ about it.
    trace : float
    distances, diagonal : ndarray of shape (n_samples,)
        Squared distances of all rows from the span, and k(x, x).
    started : float
    """

    problem: Problem
    workers: Workers
    landmarks: Indices
    indices: Indices
    features: LandmarkFeatures
    moments: tuple[Floats, Floats, Floats, Floats]
    n_samples: int
    mean: Floats
    scatter: Floats
    trace: float
    distances: Floats
    diagonal: Floats
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
        started, needed = time.perf_counter(), landmark_bytes(problem, number)
        purpose, remedy = f"a fit on {number} landmarks", "raise it, or pass fewer landmarks"
        problem.budget.require(needed, purpose, remedy)
        strip = strip_rows(problem, number)
        assert problem.kernel is not None
        source = problem.engine or ComputedGram(problem.kernel, problem.X, strip)
        landmarks = choose_landmarks(selection, source, number, problem.seed, workers)
        if more is not None:
            landmarks = np.union1d(landmarks, more)
        features, kept = LandmarkFeatures.of(problem.kernel, problem.take_rows(landmarks), strip)
        size, available = len(kept), cache_bytes(problem, number, strip, _CACHE_BYTES)
        # Of many rows it would hold too little to save time; strips of parts do not come again.
        worthwhile = parts is None and 4 * available >= number * problem.row_bytes
        if problem.engine is None and worthwhile:
            n_cached = min(problem.n_samples, available // (size * problem.X.dtype.itemsize))
            # One array, which the system backs by huge pages.
            features = replace(features, cache=np.empty((n_cached, size), problem.X.dtype))
        distances, diagonal = np.empty((2, problem.n_samples), dtype=problem.X.dtype)
        n_parts = 1 if parts is None else len(parts)
        counts, traces = np.zeros((2, n_parts))
        sums, products = np.zeros((n_parts, size)), np.zeros((n_parts, size, size))
        for i, rows in enumerate([None] if parts is None else parts):
            n_read = 0
            for moments in problem.map_rows(features.moments, strip, workers, rows):
                sums[i] += moments[0]
                products[i] += moments[1]
                own = slice(n_read, n_read + len(moments[2]))
                indices = own if rows is None else rows[own]
                distances[indices], diagonal[indices] = moments[2:]
                n_read = own.stop
            of_part = diagonal if rows is None else diagonal[rows]
            counts[i], traces[i] = n_read, of_part.sum(dtype=np.float64)
        if not (np.isfinite(products).all() and np.isfinite(traces).all()):
            raise InvalidInput(NOT_FINITE)
        parts_moments = counts, sums, products, traces
        n_samples, mean, scatter, trace = features.mean_and_scatter(*parts_moments)
        return cls(
            problem, workers, landmarks, landmarks[kept], features, parts_moments,
            n_samples, mean, scatter, trace, distances, diagonal, started,
        )  # fmt: skip

    def leave_out(self, part: int, landmarks: Indices) -> LandmarkFit:
        """Return the fit of the other parts on some of the landmarks, without a pass."""
        rows = self.problem.take_rows(landmarks)
        features, kept = LandmarkFeatures.of(self.features.kernel, rows, self.features.strip)
        # Maps features to those in a part of the span.
        coordinates = self.features.exact_coordinates(features.rows)
        projector = features.weights @ coordinates
        n_samples, mean, scatter, trace = self.features.mean_and_scatter(
            *(np.delete(values, part, axis=0) for values in self.moments)
        )
        mean, scatter = projector @ mean, projector @ scatter @ projector.T
        return replace(
            self,
            indices=landmarks[kept],
            features=features,
            n_samples=n_samples,
            mean=mean,
            scatter=(scatter + scatter.T) / 2,
            trace=trace,
        )

    @property
    def captured(self) -> float:
        """Fraction of the variance in the span of the landmarks."""
        return min(1.0, float(np.trace(self.scatter)) / self.trace) if self.trace > 0 else 1.0

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
        A = U.T @ self.features.weights
        A *= deterministic_signs(A @ self.features.gram - (A @ self._kernel_means)[:, None])[
            :, None
        ]
        return LandmarkComponents(self.features, eigenvalues, following, A, A @ self._kernel_means)

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
        certificate = certify(
            eigenvalues,
            estimate.residuals,
            A @ gram @ A.T,
            # A lower bound, as eigenvalues in the span are at most those of K'.
            float(np.sum(np.square(self.scatter))),
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
        landmarks = replace(
            solution.landmarks,
            row_projections=row_projections,
            missed_eigenvalue=float(missed.max(initial=0.0)),
        )
        records = [*earlier, record]
        return replace(solution, certificate=certificate, records=records, landmarks=landmarks)

    def to_solution(self, components: LandmarkComponents) -> EigenSolution:
        """Return components as a solution, without a certificate and its pass over the rows."""
        A, gram, eigenvalues = components.coefficients, self.features.gram, components.eigenvalues
        dtype, mean = self.problem.X.dtype, self.features.weights.T @ self.mean
        return EigenSolution(
            coefficients=A.astype(dtype),
            projections=(A @ gram - components.offsets[:, None]).astype(dtype),
            eigenvalues=eigenvalues,
            eigenvectors=(A * np.sqrt(eigenvalues)[:, None]).T.astype(dtype),
            centering=Centering(self._kernel_means.astype(dtype), float(self.mean @ self.mean)),
            trace=self.trace,
            certificate=None,
            outcome=Outcome.LANDMARKS,
            landmarks=Landmarks(self.features.rows, mean.astype(dtype), self.n_samples),
        )

    def projections(self, components: LandmarkComponents) -> Floats:
        """Return the projections of all rows."""
        Y = np.empty((self.problem.n_samples, len(components.offsets)), self.problem.X.dtype)
        start = 0
        for part in self._map_rows(components.project):
            Y[start : start + len(part)] = part
            start += len(part)
        return Y

    @cached_property
    def distant_rows(self) -> Indices:
        """Rows drawn in proportion to their squared distance from the span; they may repeat."""
        if not self.distances.any():
            return np.zeros(0, dtype=np.intp)
        rng = np.random.default_rng([self.problem.seed, 9])
        return draw_rows(self.distances, rng.random(SAMPLE_ROWS))

    def missed_eigenvalues(self) -> Floats:
        """Estimate the largest eigenvalues of K outside of the span of the landmarks.

        The kernel matrix of the differences from the span is sampled in proportion to its diagonal.
        Its own diagonal is left out, as it is not small where all other entries are.
        """
        indices = self.distant_rows
        if not len(indices):
            return np.zeros(0)
        rows = self.problem.take_rows(indices).astype(np.float64)
        z = self.features.exact_coordinates(rows)
        rest = cross_gram(self.features.kernel, rows, rows) - z @ z.T
        np.fill_diagonal(rest, 0)
        weights = self.distances[indices] / self.distances.sum(dtype=np.float64) * len(indices)
        values = np.linalg.eigvalsh(rest / np.sqrt(np.outer(weights, weights)))
        return values[values > 0][::-1]

    def _sampled_residuals(
        self, components: LandmarkComponents, tol: float
    ) -> tuple[SampledResiduals, Floats | None]:
        """Estimate residuals in a pass over the rows; also return the projections of all rows.

        The projections are None if they need too much memory. The mean of the rows is not in the
        span, and leaving it out only makes residuals larger.
        """
        eigenvalues, projections = components.eigenvalues.astype(np.float64), None
        if not eigenvalues.any():
            return SampledResiduals(eigenvalues, eigenvalues, 0), None
        features, problem = self.features, self.problem
        limit = cache_bytes(problem, len(features.gram), features.strip, _PROJECTION_BYTES)
        if problem.engine is None and problem.row_bytes * len(eigenvalues) <= limit:
            projections = self.projections(components)
            leverages = components.leverages(projections)
        else:
            leverages = np.concatenate(list(self._map_rows(components.leverages_of)))
        roots = np.sqrt(eigenvalues)

        def rows_of(indices: Indices) -> Floats:
            sample = problem.take_rows(indices)
            total = sum(self._map_rows(partial(components.sampled_products, sample, projections)))
            R = np.divide(total, roots, out=np.zeros_like(total), where=roots > 0)
            values = cross_gram(features.kernel, sample, features.rows).astype(np.float64)
            return R - values @ components.coefficients.T * roots

        estimate = SampledResiduals.of(
            rows_of, self.diagonal, self.distances, leverages, problem.seed, tol, eigenvalues.max()
        )
        return estimate, projections

    def _map_rows(self, function: Callable[[Rows, int], Result]) -> Iterable[Result]:
        return self.problem.map_rows(function, self.features.strip, self.workers)

    @property
    def _kernel_means(self) -> Floats:
        """Mean kernel values of the landmarks with all rows."""
        return self.features.gram @ (self.features.weights.T @ self.mean)

    def _eigenpairs(self, n_components: float | None) -> tuple[Floats, Floats]:
        """Return the leading eigenpairs of the scatter, and one more; all if the number is open."""
        order = len(self.scatter)
        scale = self.trace + self.n_samples * float(self.mean @ self.mean)
        if self.trace <= 100 * np.finfo(self.problem.X.dtype).eps * scale:
            return np.zeros(0), np.zeros((order, 0))
        number = min(int(n_components) + 1, order) if isinstance(n_components, Integral) else order
        return leading_eigenpairs(self.scatter, number)
