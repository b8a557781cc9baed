"""Rayleigh–Ritz step, and the accuracy of its result: sampled residuals and the certificate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg, stats
from scipy.sparse.linalg import ArpackError, eigsh

from ikpca.errors import InvalidInput
from ikpca.gram import tile_slices
from ikpca.gram.centering import NOT_FINITE
from ikpca.gram.resources import SERIAL, Workers
from ikpca.kernels import Floats, Indices

#: Lanczos iterations are faster than LAPACK from this order on, for few enough eigenpairs.
_LANCZOS_ORDER, _ORDER_PER_PAIR = 400, 12
#: Sampled rows. All rows are used if there are fewer than this many per sample.
SAMPLE_ROWS, _ROWS_PER_SAMPLE = 128, 8
#: Factor of the size of a second sample.
_SAMPLE_GROWTH = 4
#: Shares of the sample that are drawn by squared norms, by distances, and also by leverages.
_SAMPLE_SHARES = (0.1, 0.45, 0.45)
#: Confidence of the residual bounds.
_CONFIDENCE = 0.99


def inner_in_double(Q: Floats, Z: Floats, workers: Workers = SERIAL) -> Floats:
    """Return QᵀZ in double precision, by strips, so that Q and Z are not converted as a whole."""

    def part(strip: slice) -> Floats:
        return Q[strip].astype(np.float64, copy=False).T @ Z[strip].astype(np.float64, copy=False)

    total = np.zeros((Q.shape[1], Z.shape[1]))
    for product in workers.map(part, tile_slices(len(Q))):
        total += product
    return total


def multiply_rows(Q: Floats, T: Floats, workers: Workers = SERIAL) -> Floats:
    """Return QT for a tall Q, by strips of rows; T is cast to the type of Q."""
    T = T.astype(Q.dtype, copy=False)
    out = np.empty((len(Q), T.shape[1]), dtype=Q.dtype)

    def part(strip: slice) -> None:
        np.matmul(Q[strip], T, out=out[strip])

    workers.for_each(part, tile_slices(len(Q)))
    return out


def deterministic_signs(projections: Floats) -> Floats:
    """Return ±1 per row that makes its entry of largest magnitude positive, as in scikit-learn."""
    largest = projections[np.arange(len(projections)), np.abs(projections).argmax(axis=1)]
    return np.where(largest < 0, -1, 1).astype(projections.dtype)


def nonnegative_eigenvalues(eigenvalues: Floats) -> Floats:
    """Set rounding noise to zero; raise an error for significant negative eigenvalues.

    The thresholds are those of scikit-learn: negative values are significant above 1e-5 of the
    largest (5e-3 in single precision), positive values below 1e-12 of it (2e-7) are noise.
    """
    single = eigenvalues.dtype == np.float32
    largest = eigenvalues.max(initial=0.0)
    smallest = eigenvalues.min(initial=0.0)
    significant = max((5e-3 if single else 1e-5) * largest, 1e-6 if single else 1e-10)
    if smallest < -significant:
        share = f"{-smallest / largest:g} of the maximum positive" if largest > 0 else "all of them"
        raise InvalidInput(
            f"There are significant negative eigenvalues ({share}): the kernel matrix is not "
            "positive semi-definite; ask for fewer components or choose another kernel."
        )
    noise = eigenvalues < (2e-7 if single else 1e-12) * largest
    return np.where(noise | (eigenvalues < 0), 0, eigenvalues).astype(eigenvalues.dtype)


def rayleigh_ritz(N: Floats, S: Floats, drop: float = 1e-12) -> tuple[Floats, Floats]:
    """Solve S v = λ N v with N = AK'Aᵀ and S = (AK')(AK')ᵀ.

    Returns the Ritz values, descending, and T: A ← TA makes the components orthonormal and ordered.
    Both are zero for directions of N with less than ``drop`` times the largest eigenvalue.
    """
    diagonal = np.diag(N)
    # Scale rows to unit length, since long rows would mask short ones, but not rows of rounding
    # noise, which would mask valid ones.
    significant = diagonal > drop * max(float(diagonal.max(initial=0.0)), 0.0)
    scale = np.sqrt(np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=significant))
    lengths, Q = linalg.eigh(N * np.outer(scale, scale))
    kept = lengths > drop * max(float(lengths.max(initial=0.0)), 0.0)
    basis = scale[:, None] * Q[:, kept] / np.sqrt(lengths[kept])
    values, U = linalg.eigh(basis.T @ S @ basis)
    T = np.zeros_like(N)
    T[: kept.sum()] = (basis @ U[:, ::-1]).T
    eigenvalues = np.zeros(len(N), dtype=N.dtype)
    eigenvalues[: kept.sum()] = values[::-1]
    # Components keep their sign.
    return eigenvalues, T * np.where(np.diag(T) < 0, -1.0, 1.0)[:, None]


def leading_eigenpairs(matrix: Floats, number: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues of a symmetric matrix, descending, and their eigenvectors.

    Few of many eigenpairs are computed by Lanczos iterations from a fixed vector.
    """
    order = len(matrix)
    if order >= max(_LANCZOS_ORDER, _ORDER_PER_PAIR * number):
        start = np.random.default_rng(0).normal(size=order).astype(matrix.dtype)
        try:
            values, vectors = eigsh(matrix, number, which="LA", v0=start)
        except ArpackError:
            # No convergence, or a matrix that is zero.
            pass
        else:
            ranked = np.argsort(values)[::-1]
            return values[ranked], vectors[:, ranked]
    values, vectors = linalg.eigh(matrix, subset_by_index=(max(order - number, 0), order - 1))
    return values[::-1], vectors[:, ::-1]


def relative_residuals(coefficients: Floats, projections: Floats, eigenvalues: Floats) -> Floats:
    """Return ‖K'v_i − λ_i v_i‖ / λ_1 for unit v_i along the rows of A; projections are AK'."""
    A, Y = (np.asarray(part, dtype=np.float64) for part in (coefficients, projections))
    defects = np.linalg.norm(Y - eigenvalues[:, None] * A, axis=1)
    scale = np.linalg.norm(A, axis=1) * np.abs(eigenvalues).max(initial=0.0)
    return np.divide(defects, scale, out=np.zeros_like(defects), where=scale > 0)


def sample_residuals(
    rows_of: Callable[[Indices], Floats],
    squared_norms: Floats,
    distances: Floats,
    leverages: Floats,
    seed: int,
    tol: float,
    largest: float,
) -> tuple[Floats, Floats, int]:
    """Estimate relative residuals; return them, upper confidence bounds, and the number of rows.

    The residual K'v − λv of the best component in a subspace, for v along its projections, is
    ⟨Φ'(x), g⟩ for a vector g that is orthogonal to the subspace. So rows are sampled with
    probabilities proportional to their squared distance from the subspace, which bounds the
    residual of a row, half of them also to their squared projections: neither rows unlike all
    others nor components that concentrate on a few rows are missed, and the terms vary little. A
    few are sampled by their squared norm, as rounding errors may hide the distance of long rows.

    If the residuals are within the tolerance, but not their bounds, a second and larger sample
    takes less time than better components.

    ``rows_of`` returns rows of K'v − λv for all components, up to a constant. For all rows,
    ``squared_norms`` are those of their images, ``distances`` the squared ones from the subspace,
    and ``leverages`` Σ_i y_i²/λ_i. ``largest`` is λ₁.
    """
    n_rows, weights = 0, (squared_norms, distances, leverages * distances)
    for number in (SAMPLE_ROWS, _SAMPLE_GROWTH * SAMPLE_ROWS):
        rows, n_certain, probabilities = _sample_rows(weights, seed, number)
        R = rows_of(rows)
        if not np.isfinite(R).all():
            raise InvalidInput(NOT_FINITE)
        n_rows += len(R)
        if len(R) == len(distances):
            exact = np.linalg.norm(R - R.mean(axis=0), axis=0) / largest
            return exact, exact, n_rows
        squares = np.square(R)
        certain = squares[:n_certain].sum(axis=0)
        terms = squares[n_certain:] / probabilities[:, None]
        residuals = np.sqrt(certain + terms.mean(axis=0)) / largest
        bounds = np.sqrt(certain + _upper_bounds(terms)) / largest
        if residuals.max() > tol or bounds.max() <= tol:
            break
    return residuals, bounds, n_rows


def _sample_rows(weights: Sequence[Floats], seed: int, number: int) -> tuple[Indices, int, Floats]:
    """Draw rows in proportion to one of several weights each, in fixed shares.

    Rows that are expected at least once, or all of few rows, are drawn with certainty. Returns them
    and rows drawn with replacement from the others; the number of the former, and the probabilities
    of the latter.
    """
    n_samples = len(weights[0])
    if n_samples <= _ROWS_PER_SAMPLE * number:
        return np.arange(n_samples), n_samples, np.zeros(0)
    certain = np.zeros(0, dtype=np.intp)
    while True:
        expected = np.zeros_like(weights[0])
        for share, own in zip(_SAMPLE_SHARES, weights, strict=True):
            total = float(own.sum(dtype=np.float64))
            expected += number * share * (own / total if total > 0 else 1 / n_samples)
        following = np.flatnonzero(expected >= 1)
        if not len(following) or len(certain) + len(following) > number:
            break
        certain = np.concatenate([certain, following])
        weights = [own.copy() for own in weights]
        for own in weights:
            own[certain] = 0
    draws = np.random.default_rng([seed, 5, number]).random(number)
    rows = np.sort(draw_rows(expected, draws))
    return np.concatenate([certain, rows]), len(certain), expected[rows].astype(float) / number


def draw_rows(weights: Floats, draws: Floats) -> Indices:
    """Return rows drawn in proportion to weights; ``draws`` are uniform numbers in [0, 1)."""
    sums = np.cumsum(weights, dtype=np.float64)
    return np.minimum(np.searchsorted(sums, draws * sums[-1], side="right"), len(sums) - 1)


def _upper_bounds(terms: Floats) -> Floats:
    """Return upper confidence bounds of means: Student's t, corrected for skewness (Johnson 1978).

    Terms are not negative.
    """
    number = len(terms)
    means, deviations = terms.mean(axis=0), terms.std(axis=0, ddof=1)
    quantile = float(stats.t.ppf(_CONFIDENCE, number - 1))
    third = np.mean((terms - means) ** 3, axis=0)
    variances = np.square(deviations)
    skew = np.divide(third, variances, out=np.zeros_like(third), where=variances > 0)
    correction = skew * (1 + 2 * quantile**2) / (6 * number)
    bounds: Floats = means + np.maximum(correction, 0) + quantile * deviations / np.sqrt(number)
    return bounds


@dataclass(frozen=True)
class Certificate:
    """Bounds and estimates of the error of a solution.

    Parameters
    ----------
    residuals : ndarray of shape (r,)
        ‖K'v − λv‖/λ₁ for unit v: along the coefficients A_i, or for Hebbian solvers along the
        projections (AK')_i, since their coefficients may have a part in the null space of K'. With
        landmarks, and where only those along the projections are within ``tol``, they are estimated
        from a sample of rows.
    residual_bounds : ndarray of shape (r,)
        Upper confidence bounds (99 %) of estimated residuals, measured ones themselves; plus an
        estimate of the rounding errors of kernel values.
    orthonormality_defect : float
        The largest entry of AK'Aᵀ − I, in magnitude.
    eigenvalue_bounds : ndarray of shape (r,)
        An eigenvalue of K' lies within this distance of each λ (K' is symmetric), up to the
        confidence of ``residual_bounds``.
    excess_error : float
        Estimate of E/E_min − 1 from the residuals and the gaps to the next eigenvalue; of E/‖K'‖
        if E_min is zero up to rounding, as for kernels of rank at most r.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> certificate = KernelPCA(2, kernel="rbf", eigen_solver="dense").fit(X).certificate_
    >>> bool(certificate.residuals.max() < 1e-10)
    True
    """

    residuals: Floats
    residual_bounds: Floats
    orthonormality_defect: float
    eigenvalue_bounds: Floats
    excess_error: float

    def __str__(self) -> str:
        return (
            f"residual {self.residuals.max(initial=0.0):.1e}, eigenvalues within "
            f"{self.eigenvalue_bounds.max(initial=0.0):.1e}, orthonormal to "
            f"{self.orthonormality_defect:.1e}, excess error about {self.excess_error:.1e}"
        )


def certify(
    eigenvalues: Floats,
    residuals: Floats,
    component_gram: Floats,
    squared_norm: float,
    next_eigenvalue: float | None = None,
    residual_bounds: Floats | None = None,
    *,
    of_projections: bool = False,
    missed: Floats | None = None,
    eps: float = float(np.finfo(np.float64).eps),
) -> Certificate:
    """Compute the certificate of a solution from λ, ‖K'v − λv‖/λ₁, AK'Aᵀ and ‖K'‖²_F.

    The next eigenvalue is extrapolated, and bounds are the residuals themselves, by default. With
    ``of_projections``, v is along the projections (AK')_i, otherwise along the coefficients.
    ``missed`` are estimates of eigenvalues of which the solution has no component, and ``eps`` is
    the relative rounding error of K'.
    """
    values = np.asarray(eigenvalues, dtype=np.float64)
    relative = np.asarray(residuals, dtype=np.float64)
    upper = relative if residual_bounds is None else np.asarray(residual_bounds, np.float64)
    bounds = upper * np.abs(values).max(initial=0.0)
    positive = values > 0
    identity = np.diag(positive.astype(np.float64))
    largest = values if missed is None else np.sort(np.concatenate([values, missed]))[::-1]
    optimum = float(np.sum(np.square(np.maximum(largest[: len(values)], 0))))
    captured = float(np.sum(np.square(values[positive])))
    defects = component_gram - identity
    increase = (
        optimum
        - captured
        + _squared_error_increase(
            values[positive],
            bounds[positive],
            defects[np.ix_(positive, positive)],
            next_eigenvalue,
            of_projections,
        )
    )
    return Certificate(
        residuals=relative,
        residual_bounds=upper,
        orthonormality_defect=float(np.abs(defects).max(initial=0.0)),
        eigenvalue_bounds=bounds,
        excess_error=excess_error(max(increase, 0.0), optimum, squared_norm, eps),
    )


def _squared_error_increase(
    values: Floats,
    bounds: Floats,
    defects: Floats,
    next_eigenvalue: float | None,
    of_projections: bool,
) -> float:
    """Estimate E² − E²_min from the errors of the Ritz values and the orthonormality defect.

    The error of a component lies in directions j > r, which its coefficients weigh λ_i/λ_j times as
    much as its projections. So the error of λ_i is at most ‖residual‖²/gap for residuals of the
    projections, at most the fraction λ_{r+1}/λ_i of it for those of the coefficients, and never
    more than the residual. It increases E² by 2λ_i times as much, and a defect D of AK'Aᵀ by
    ‖Λ^½ D Λ^½‖².
    """
    if not len(values):
        return 0.0
    below = _extrapolate(values) if next_eigenvalue is None else next_eigenvalue
    if of_projections:
        # From random vectors it is a lower bound, too low for flat spectra.
        below = max(below, _extrapolate(values))
    gaps = np.maximum(values - below, bounds)
    errors = np.divide(bounds * bounds, gaps, out=np.zeros_like(bounds), where=gaps > 0)
    if not of_projections:
        errors *= np.minimum(max(below, 0.0) / values, 1.0)
    roots = np.sqrt(values)
    return 2 * float(values @ errors) + float(np.sum(np.square(roots[:, None] * defects * roots)))


def excess_error(increase: float, captured: float, squared_norm: float, eps: float) -> float:
    """Return E/E_min − 1 from E² − E²_min, Σλ² and ‖K'‖²; E/‖K'‖ if E_min is rounding error."""
    # Rounding may make ‖K'‖² smaller than Σλ².
    squared_norm = max(squared_norm, captured)
    minimum = squared_norm - captured
    if squared_norm == 0:
        return 0.0
    if minimum <= 100 * eps * squared_norm:
        return float(np.sqrt(increase / squared_norm))
    return float(np.sqrt(1 + increase / minimum) - 1)


def _extrapolate(values: Floats) -> float:
    """Return an estimate of λ_{r+1} from the last ratio of eigenvalues."""
    if len(values) < 2:
        return 0.0
    return float(values[-1] * min(values[-1] / values[-2], 1 - 1e-3))
