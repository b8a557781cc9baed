"""Nyström solver: the best components in the span of landmarks, with a sampled certificate.

The images of landmarks, made orthonormal by a Cholesky factor of their kernel matrix, are features
z(x). One pass over the rows sums z and zzᵀ; the principal components of z are the best components
in the span. Kernel values of rows with landmarks are kept for the certificate as far as a small
cache has memory for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from numbers import Integral
from typing import ClassVar, TypeVar

import numpy as np
from scipy import linalg

from ikpca.errors import (
    InvalidInput,
    Number,
    ParameterRules,
    check_parameters,
    invalid_parameter,
    is_auto,
)
from ikpca.gram import cross_gram, tile_slices
from ikpca.gram.centering import NOT_FINITE, Centering
from ikpca.gram.resources import Workers
from ikpca.kernels import Floats, Indices, Kernel, Rows
from ikpca.solvers.base import (
    EigenSolution,
    Outcome,
    PassRecord,
    RunSettings,
    Solver,
)
from ikpca.solvers.landmarks import uniform_landmarks
from ikpca.solvers.problem import Problem, check_kernel_values
from ikpca.solvers.rayleigh_ritz import (
    SAMPLE_ROWS,
    certify,
    deterministic_signs,
    draw_rows,
    leading_eigenpairs,
    nonnegative_eigenvalues,
    sample_residuals,
)

Result = TypeVar("Result")

_RULES: ParameterRules = {
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

    def __init__(self, n_landmarks: int | str = "auto") -> None:
        self.n_landmarks = n_landmarks

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

    def solve(
        self, problem: Problem, n_components: float | None, settings: RunSettings
    ) -> EigenSolution:
        """Compute the leading components; the parameters are those of :meth:`Solver.solve`."""
        check_rows_and_kernel(problem)
        used = problem.in_single_precision(settings.tol)
        number = self._first_number(problem, n_components, settings.tol)
        records: list[PassRecord] = []
        while True:
            with Workers(problem.n_threads) as workers:
                fit = LandmarkFit(used, number, workers)
                solution = fit.solution(n_components, records, tol=settings.tol)
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

        Every row belongs to one of the parts. With ``n_landmarks="auto"``, there are ``number``
        landmarks, or fewer if an explicit budget is too small, but at least ``min_number``.
        """
        check_rows_and_kernel(problem)
        if not is_auto(self.n_landmarks):
            number = min_number = int(self.n_landmarks)
        number = min(number, problem.n_samples)
        while True:
            # The moments of every part, and the components without it.
            used = problem.budget.used + 2 * 8 * len(parts) * number * number
            reserved = replace(problem, budget=replace(problem.budget, used=used))
            if number <= min_number or _fits_memory(reserved, number):
                return LandmarkFit(reserved, number, workers, parts)
            number = max(min_number, int(_SHRINK * number))

    def _first_number(self, problem: Problem, n_components: float | None, tol: float) -> int:
        if not is_auto(self.n_landmarks):
            return min(int(self.n_landmarks), problem.n_samples)
        n_expected = int(n_components) if isinstance(n_components, Integral) else 0
        first = _LANDMARKS if tol <= np.finfo(problem.X.dtype).eps else _FIRST_LANDMARKS
        return min(max(first, _LANDMARKS_PER_COMPONENT * n_expected), problem.n_samples)

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


def _strip_rows(problem: Problem, number: int) -> int:
    """Return the rows of a strip; fewer if an explicit budget is small."""
    rows = min(max(_STRIP_ENTRIES // number, _MAX_STRIP // 4), _MAX_STRIP)
    rows = min(rows, max(-(-problem.n_samples // _STRIPS), _MAX_STRIP // 8))
    while rows > _MIN_STRIP and not _fits_memory(problem, number, rows, problem.n_threads):
        rows //= 2
    return max(rows, _MIN_STRIP)


def _fits_memory(problem: Problem, number: int, rows: int = _MIN_STRIP, threads: int = 1) -> bool:
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


def _cache_bytes(problem: Problem, number: int, rows: int, limit: int) -> int:
    """Return the memory for values that are kept between the passes."""
    needed = landmark_bytes(problem, number, rows, problem.n_threads)
    return max(0, min(limit, (problem.budget.available - needed) // 3))


class IndefiniteKernel(InvalidInput):
    """Kernel matrix with significant negative eigenvalues."""


class LandmarkFeatures:
    """Features z(x) = T(k(x) − c) of rows; computes them by strips, also in other processes.

    T is the inverse of the Cholesky factor of the kernel matrix of the landmarks, and c the mean of
    this matrix, near the mean of the kernel values of all rows. Landmarks whose images are
    combinations of those of others are dropped; ``kept`` are the indices of the rest.
    """

    def __init__(self, kernel: Kernel, rows: Rows, strip: int) -> None:
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
        self.kernel, self.strip = kernel, strip
        self.kept = order[: max(rank, 1)]
        self.rows, self.gram = rows[self.kept], gram[np.ix_(self.kept, self.kept)]
        self.weights, self.center = np.zeros((1, 1)), self.gram.mean(axis=1)
        if rank:
            self.weights = np.tril(linalg.lapack.dtrtri(factor[:rank, :rank], lower=1)[0])
        #: Kernel values of the first rows: written by ``moments``, then read.
        self.cache: Floats | None = None

    def exact_coordinates(self, X: Rows) -> Floats:
        """Return Tk(x) of a few rows in double precision."""
        X, landmarks = (rows.astype(np.float64) for rows in (X, self.rows))
        return _multiply_triangle(cross_gram(self.kernel, X, landmarks), self.weights)

    def moments(self, X: Rows, start: int) -> tuple[Floats, Floats, Floats]:
        """Return Σz, Σzzᵀ, and two rows: squared distances from the span and k(x, x) of X.

        Distances that are rounding errors keep their size, by which rows are sampled.
        """
        dtype, number = X.dtype, len(self.gram)
        weights = self.weights.astype(dtype)
        offset = weights @ self.center.astype(dtype)
        sums, products = np.zeros(number), np.zeros((number, number), dtype=dtype)
        distances, diagonal = sizes = np.empty((2, X.shape[0]), dtype=dtype)
        for part in tile_slices(X.shape[0], self.strip):
            strip = X[part]
            k = self._cached(start + part.start, strip.shape[0])
            if k is None:
                k = np.empty((strip.shape[0], number), dtype=dtype)
            self.kernel.fill(strip, self.rows, k)
            z = _multiply_triangle(k, weights)
            diagonal[part] = self.kernel.diagonal(strip)
            distances[part] = np.abs(diagonal[part] - np.einsum("ij,ij->i", z, z))
            z -= offset
            sums += z.sum(axis=0, dtype=np.float64)
            products += z.T @ z
        return sums, products, sizes

    def project(self, A: Floats, offsets: Floats, X: Rows, start: int) -> Floats:
        """Return the projections Ak(x) − offsets of rows, with kernel values from the cache."""
        A, offsets, strips = A.astype(X.dtype), offsets.astype(X.dtype), []
        for part in tile_slices(X.shape[0], self.strip):
            values = self._cached(start + part.start, part.stop - part.start)
            if values is None:
                values = cross_gram(self.kernel, X[part], self.rows)
            strips.append(values @ A.T - offsets)
        return np.concatenate(strips)

    def sampled_products(
        self, A: Floats, offsets: Floats, sample: Rows, Y: Floats | None, X: Rows, start: int
    ) -> Floats:
        """Return the part of rows X of K[S, :]Y for a sample S, in double precision.

        The projections Y of all rows are computed again if they are not kept.
        """
        total = np.zeros((sample.shape[0], len(offsets)))
        for part in tile_slices(X.shape[0], self.strip):
            strip, own = X[part], slice(start + part.start, start + part.stop)
            projections = self.project(A, offsets, strip, own.start) if Y is None else Y[own]
            total += cross_gram(self.kernel, strip, sample).T @ projections
        return total

    def _cached(self, start: int, n_rows: int) -> Floats | None:
        """Return the memory of a strip in the cache; None if it does not have all of it."""
        strip = None if self.cache is None else self.cache[start : start + n_rows]
        return strip if strip is not None and len(strip) == n_rows else None


def _multiply_triangle(k: Floats, lower: Floats) -> Floats:
    """Return k Lᵀ for a lower triangular matrix, by blocks that skip most zeros."""
    number = len(lower)
    out = np.empty_like(k)
    for block in tile_slices(number, max(64, -(-number // _TRIANGLE_BLOCKS))):
        np.matmul(k[:, : block.stop], lower[block, : block.stop].T, out=out[:, block])
    return out


class LandmarkFit:
    """Moments of the features of all rows, computed in one pass, from which components follow.

    Landmarks are a ``number`` of random rows and ``more`` rows. :meth:`leave_out` may leave out one
    of the ``parts`` of the rows; all rows are one by default.
    """

    def __init__(
        self,
        problem: Problem,
        number: int,
        workers: Workers,
        parts: Sequence[Indices] | None = None,
        more: Indices | None = None,
    ) -> None:
        self._started, needed = time.perf_counter(), landmark_bytes(problem, number)
        purpose, remedy = f"a fit on {number} landmarks", "raise it, or pass fewer landmarks"
        problem.budget.require(needed, purpose, remedy)
        strip = _strip_rows(problem, number)
        landmarks = uniform_landmarks(problem.n_samples, number, problem.seed)
        self._problem, self._workers = problem, workers
        self.landmarks = landmarks if more is None else np.union1d(landmarks, more)
        self._use_landmarks(self.landmarks, strip)
        size, available = len(self.indices), _cache_bytes(problem, number, strip, _CACHE_BYTES)
        # Of many rows it would hold too little to save time; strips of parts do not come again.
        worthwhile = parts is None and 4 * available >= number * problem.row_bytes
        if problem.engine is None and worthwhile:
            n_cached = min(problem.n_samples, available // (size * problem.X.dtype.itemsize))
            # One array, which the system backs by huge pages.
            self.features.cache = np.empty((n_cached, size), problem.X.dtype)
        #: Squared distances of all rows from the span, and k(x, x).
        self._distances, self._diagonal = np.empty((2, problem.n_samples), problem.X.dtype)
        n_parts = 1 if parts is None else len(parts)
        counts, traces = np.zeros((2, n_parts))
        sums, products = np.zeros((n_parts, size)), np.zeros((n_parts, size, size))
        for i, rows in enumerate(parts or [None]):
            strips = []
            for moments in problem.map_rows(self.features.moments, strip, workers, rows):
                sums[i] += moments[0]
                products[i] += moments[1]
                strips.append(moments[2])
            own, (distances, diagonal) = slice(None) if rows is None else rows, np.hstack(strips)
            self._distances[own], self._diagonal[own] = distances, diagonal
            counts[i], traces[i] = len(diagonal), diagonal.sum(dtype=np.float64)
        if not (np.isfinite(products).all() and np.isfinite(traces).all()):
            raise InvalidInput(NOT_FINITE)
        #: Number of rows, Σz, Σzzᵀ and Σk(x, x), of every part of the rows.
        self._moments = counts, sums, products, traces
        self._use_moments(counts, sums, products, traces)

    def _use_landmarks(self, landmarks: Indices, strip: int) -> None:
        """Compute features; ``indices`` are the landmarks that are linearly independent."""
        kernel, rows = self._problem.kernel, self._problem.take_rows(landmarks)
        assert kernel is not None
        self.features = LandmarkFeatures(kernel, rows, strip)
        self.indices = landmarks[self.features.kept]

    def _use_moments(self, counts: Floats, sums: Floats, products: Floats, traces: Floats) -> None:
        """Compute the mean of Tk, Σzzᵀ about the mean, and the trace of K', from those of parts."""
        features, total = self.features, sums.sum(axis=0)
        self._n_samples = int(counts.sum())
        shift = total / self._n_samples
        scatter = np.outer(shift, -total)
        scatter += products.sum(axis=0)
        self._scatter = (scatter + scatter.T) / 2
        self._mean = shift + features.weights @ features.center
        self._trace = float(traces.sum()) - self._n_samples * float(self._mean @ self._mean)

    def leave_out(self, part: int, landmarks: Indices) -> LandmarkFit:
        """Return the fit of the other parts on some of the landmarks, without a pass."""
        fit, features = copy(self), self.features
        fit._use_moments(*(np.delete(values, part, axis=0) for values in self._moments))
        fit._use_landmarks(landmarks, features.strip)
        # Maps features to those in a part of the span.
        projector = fit.features.weights @ features.exact_coordinates(fit.features.rows)
        scatter = projector @ fit._scatter @ projector.T
        fit._mean, fit._scatter = projector @ fit._mean, (scatter + scatter.T) / 2
        return fit

    @property
    def captured(self) -> float:
        """Fraction of the variance in the span of the landmarks."""
        return min(1.0, float(np.trace(self._scatter)) / self._trace) if self._trace > 0 else 1.0

    def components(self, n_components: float | None) -> EigenSolution:
        """Return the leading components, not certified; zeros beyond the rank."""
        A, eigenvalues, _ = self._components(n_components)
        return self._to_solution(A, eigenvalues)

    def solution(
        self,
        n_components: float | None,
        earlier: Sequence[PassRecord] = (),
        choice: str = "",
        tol: float = 0.0,
    ) -> EigenSolution:
        """Compute components and their certificate; ``tol`` decides on the size of its sample.

        They are in double precision if the rows of the problem were.
        """
        A, eigenvalues, following = self._components(n_components)
        (residuals, bounds, n_rows), row_projections = self._sampled_residuals(A, eigenvalues, tol)
        missed, gram = self._missed_eigenvalues(), self.features.gram
        certificate = certify(
            eigenvalues,
            residuals,
            A @ gram @ A.T,
            # A lower bound, as eigenvalues in the span are at most those of K'.
            float(np.sum(np.square(self._scatter))),
            following,
            residual_bounds=bounds,
            of_projections=True,
            missed=missed,
        )
        entries = self._n_samples * (2 * len(gram) + n_rows)
        record = PassRecord(
            number=len(earlier) + 1,
            seconds=time.perf_counter() - self._started,
            eigenvalues=eigenvalues,
            residuals=certificate.residuals,
            gains=np.full(len(eigenvalues), np.nan),
            entries=entries + (earlier[-1].entries if earlier else 0),
            change=np.nan,
            orthonormality_defect=certificate.orthonormality_defect,
            excess_error=certificate.excess_error,
            choice=choice or f"{len(gram)} landmarks",
        )
        solution = self._to_solution(A, eigenvalues)
        solution = replace(
            solution,
            certificate=certificate,
            records=[*earlier, record],
            row_projections=row_projections,
            missed_eigenvalue=float(missed.max(initial=0.0)),
        )
        problem = self._problem
        if problem.exact is None:
            return solution
        rows = problem.exact.take_rows(self.indices)
        return solution.with_error(problem.error).astype_float64(rows)

    def projections(self, n_components: int) -> Floats:
        """Return the projections of all rows on the leading components."""
        return self._projections(self._components(n_components)[0])

    @cached_property
    def distant_rows(self) -> Indices:
        """Rows drawn in proportion to their squared distance from the span; they may repeat."""
        if not self._distances.any():
            return np.zeros(0, dtype=np.intp)
        rng = np.random.default_rng([self._problem.seed, 9])
        return draw_rows(self._distances, rng.random(SAMPLE_ROWS))

    def _missed_eigenvalues(self) -> Floats:
        """Estimate the largest eigenvalues of K outside of the span of the landmarks.

        The kernel matrix of the differences from the span is sampled in proportion to its diagonal.
        Its own diagonal is left out, as it is not small where all other entries are.
        """
        indices = self.distant_rows
        if not len(indices):
            return np.zeros(0)
        rows = self._problem.take_rows(indices).astype(np.float64)
        z = self.features.exact_coordinates(rows)
        rest = cross_gram(self.features.kernel, rows, rows) - z @ z.T
        np.fill_diagonal(rest, 0)
        weights = self._distances[indices] / self._distances.sum(dtype=np.float64) * len(indices)
        values = np.linalg.eigvalsh(rest / np.sqrt(np.outer(weights, weights)))
        return values[values > 0][::-1]

    def _components(self, n_components: float | None) -> tuple[Floats, Floats, float]:
        """Return coefficients in double precision, eigenvalues, and the next eigenvalue."""
        values, U = self._eigenpairs(n_components)
        number = len(values)
        if isinstance(n_components, Integral):
            number = min(int(n_components), self._n_samples)
        elif n_components is not None:
            explained = np.cumsum(values) > n_components * self._trace
            number = int(np.argmax(explained)) + 1 if explained.any() else number
        following = float(values[number]) if number < len(values) else 0.0
        missing, dtype = max(0, number - len(values)), self._problem.X.dtype
        eigenvalues = nonnegative_eigenvalues(np.pad(values[:number], (0, missing)).astype(dtype))
        U = np.pad(U[:, :number], ((0, 0), (0, missing))) * (eigenvalues > 0)
        A = U.T @ self.features.weights
        signs = deterministic_signs(A @ self.features.gram - self._offsets(A)[:, None])
        return A * signs[:, None], eigenvalues, following

    def _to_solution(self, A: Floats, eigenvalues: Floats) -> EigenSolution:
        dtype, mean = self._problem.X.dtype, self.features.weights.T @ self._mean
        return EigenSolution(
            coefficients=A.astype(dtype),
            projections=(A @ self.features.gram - self._offsets(A)[:, None]).astype(dtype),
            eigenvalues=eigenvalues,
            eigenvectors=(A * np.sqrt(eigenvalues)[:, None]).T.astype(dtype),
            centering=Centering(self._kernel_means.astype(dtype), float(self._mean @ self._mean)),
            trace=self._trace,
            n_samples=self._n_samples,
            certificate=None,
            outcome=Outcome.LANDMARKS,
            landmarks=self.features.rows,
            landmark_mean=mean.astype(dtype),
        )

    def _projections(self, A: Floats) -> Floats:
        """Return the projections of all rows on components."""
        Y = np.empty((self._problem.n_samples, len(A)), self._problem.X.dtype)
        start = 0
        for part in self._map_rows(self.features.project, A, self._offsets(A)):
            Y[start : start + len(part)] = part
            start += len(part)
        return Y

    def _sampled_residuals(
        self, A: Floats, values: Floats, tol: float
    ) -> tuple[tuple[Floats, Floats, int], Floats | None]:
        """Estimate residuals in a pass over the rows; also return the projections of all rows.

        The projections are None if they need too much memory. The mean of the rows is not in the
        span, and leaving it out only makes residuals larger.
        """
        eigenvalues, projections = values.astype(np.float64), None
        if not eigenvalues.any():
            return (eigenvalues, eigenvalues, 0), None
        features, problem, offsets = self.features, self._problem, self._offsets(A)
        limit = _cache_bytes(problem, len(features.gram), features.strip, _PROJECTION_BYTES)
        if problem.engine is None and problem.row_bytes * len(eigenvalues) <= limit:
            projections = self._projections(A)
            blocks: Iterable[Floats] = [projections]
        else:
            blocks = self._map_rows(features.project, A, offsets)
        roots = np.sqrt(eigenvalues)
        weights = np.divide(1, values, out=np.zeros_like(values), where=values > 0)
        leverages = np.concatenate([np.einsum("ij,ij,j->i", Y, Y, weights) for Y in blocks])

        def rows_of(indices: Indices) -> Floats:
            sample = problem.take_rows(indices)
            total = sum(self._map_rows(features.sampled_products, A, offsets, sample, projections))
            R = np.divide(total, roots, out=np.zeros_like(total), where=roots > 0)
            values = cross_gram(features.kernel, sample, features.rows).astype(np.float64)
            return R - values @ A.T * roots

        sizes = self._diagonal, self._distances, leverages
        estimate = sample_residuals(rows_of, *sizes, problem.seed, tol, eigenvalues.max())
        return estimate, projections

    def _map_rows(self, function: Callable[..., Result], *arguments: object) -> Iterable[Result]:
        strip = self.features.strip
        return self._problem.map_rows(partial(function, *arguments), strip, self._workers)

    def _offsets(self, A: Floats) -> Floats:
        """Return the inner products of components with the mean."""
        return A @ self._kernel_means

    @property
    def _kernel_means(self) -> Floats:
        """Mean kernel values of the landmarks with all rows."""
        return self.features.gram @ (self.features.weights.T @ self._mean)

    def _eigenpairs(self, n_components: float | None) -> tuple[Floats, Floats]:
        """Return the leading eigenpairs of the scatter, and one more; all if the number is open."""
        order = len(self._scatter)
        scale = self._trace + self._n_samples * float(self._mean @ self._mean)
        if self._trace <= 100 * np.finfo(self._problem.X.dtype).eps * scale:
            return np.zeros(0), np.zeros((order, 0))
        number = min(int(n_components) + 1, order) if isinstance(n_components, Integral) else order
        return leading_eigenpairs(self._scatter, number)
