"""Residuals of components, estimated from a sample of rows, and their upper confidence bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ikpca.errors import InvalidInput
from ikpca.gram.centering import NOT_FINITE
from ikpca.kernels import Floats, Indices

#: Sampled rows. All rows are used if there are fewer than this many per sample.
SAMPLE_ROWS, _ROWS_PER_SAMPLE = 128, 8
#: Factor of the size of a second sample.
_SAMPLE_GROWTH = 4
#: Shares of the sample that are drawn by squared norms, by distances, and also by leverages.
_SAMPLE_SHARES = (0.1, 0.45, 0.45)
#: Confidence of the residual bounds.
_CONFIDENCE = 0.99
#: Rows per block of weights.
_BLOCK = 1024


@dataclass(frozen=True)
class SampledResiduals:
    """Relative residuals, estimated from a sample of rows, and upper confidence bounds.

    The residual K'v − λv of the best component in a subspace, for v along its projections, is
    ⟨Φ'(x), g⟩ for a vector g that is orthogonal to the subspace. So rows are sampled with
    probabilities proportional to their squared distance from the subspace, which bounds the
    residual of a row, half of them also to their squared projections: neither rows unlike all
    others nor components that concentrate on a few rows are missed, and the terms vary little. A
    few are sampled by their squared norm, as rounding errors may hide the distance of long rows.

    Parameters
    ----------
    residuals, bounds : ndarray of shape (r,)
    n_rows : int
        Number of sampled rows.
    """

    residuals: Floats
    bounds: Floats
    n_rows: int

    @classmethod
    def of(
        cls,
        rows_of: Callable[[Indices], Floats],
        squared_norms: Floats,
        distances: Floats,
        leverages: Floats,
        seed: int,
        tol: float,
        largest: float,
    ) -> SampledResiduals:
        """Estimate residuals from their rows.

        If the residuals are within the tolerance, but not their bounds, a second and larger sample
        takes less time than better components.

        Parameters
        ----------
        rows_of : callable
            Returns rows of K'v − λv for all components; a constant may be added to them.
        squared_norms, distances, leverages : ndarray of shape (l,)
            Squared norms of the images of all rows, their squared distances from the subspace, and
            Σ_i y_i²/λ_i of them.
        seed : int
        tol : float
        largest : float
            λ₁.
        """
        number, n_rows = SAMPLE_ROWS, 0
        while True:
            weights = squared_norms, distances, leverages * distances
            rows, n_certain, probabilities = sample_rows(weights, seed, number)
            R = rows_of(rows)
            if not np.isfinite(R).all():
                raise InvalidInput(NOT_FINITE)
            n_rows += len(R)
            if len(R) == len(distances):
                exact = np.linalg.norm(R - R.mean(axis=0), axis=0) / largest
                return cls(exact, exact, n_rows)
            squares = np.square(R)
            certain = squares[:n_certain].sum(axis=0)
            terms = squares[n_certain:] / probabilities[:, None]
            residuals = np.sqrt(certain + terms.mean(axis=0)) / largest
            bounds = np.sqrt(certain + upper_bounds(terms)) / largest
            decided = residuals.max() > tol or bounds.max() <= tol
            if decided or number > SAMPLE_ROWS:
                return cls(residuals, bounds, n_rows)
            number *= _SAMPLE_GROWTH


def sample_rows(weights: Sequence[Floats], seed: int, number: int) -> tuple[Indices, int, Floats]:
    """Draw rows in proportion to one of several weights each, in fixed shares.

    Rows that are expected at least once are drawn with certainty, so that a few rows that are
    larger than all others do not hide the rest. If there are few rows, all are.

    Returns
    -------
    rows : ndarray of shape (s,)
        Rows that are drawn with certainty, then rows drawn with replacement from the others.
    n_certain : int
    probabilities : ndarray of shape (s - n_certain,)
        Probabilities of the rows that are drawn with replacement.
    """
    n_samples = len(weights[0])
    if n_samples <= _ROWS_PER_SAMPLE * number:
        return np.arange(n_samples), n_samples, np.zeros(0)
    certain = np.zeros(0, dtype=np.intp)
    while True:
        totals = [float(own.sum(dtype=np.float64)) for own in weights]
        shares = [
            share / total if total > 0 else 0.0
            for share, total in zip(_SAMPLE_SHARES, totals, strict=True)
        ]
        uniform = (1 - np.dot(shares, totals)) / n_samples
        expected = number * (sum(map(np.multiply, weights, shares)) + uniform)
        following = np.flatnonzero(expected >= 1)
        if not len(following) or len(certain) + len(following) > number:
            break
        weights = weights if len(certain) else [own.copy() for own in weights]
        certain = np.concatenate([certain, following])
        for own in weights:
            own[following] = 0
    rng = np.random.default_rng([seed, 5, number])
    kinds = rng.choice(len(weights), size=number, p=_SAMPLE_SHARES)
    rows = rng.integers(n_samples, size=number)
    for kind, (own, total) in enumerate(zip(weights, totals, strict=True)):
        if total > 0:
            rows[kinds == kind] = draw_rows(own, rng.random(np.count_nonzero(kinds == kind)))
    rows.sort()
    return np.concatenate([certain, rows]), len(certain), expected[rows] / number


def draw_rows(weights: Floats, draws: Floats) -> Indices:
    """Return rows drawn in proportion to weights, without a second array of all rows."""
    starts = np.arange(0, len(weights), _BLOCK)
    sums = np.cumsum(np.add.reduceat(weights, starts, dtype=np.float64))
    targets = draws * sums[-1]
    chunks = np.minimum(np.searchsorted(sums, targets, side="right"), len(starts) - 1)
    rows = np.empty(len(draws), dtype=np.intp)
    for i, (chunk, target) in enumerate(zip(chunks, targets, strict=True)):
        part = np.cumsum(weights[starts[chunk] : starts[chunk] + _BLOCK], dtype=np.float64)
        rest = target - (sums[chunk] - part[-1])
        rows[i] = starts[chunk] + min(int(np.searchsorted(part, rest, "right")), len(part) - 1)
    return rows


def upper_bounds(terms: Floats) -> Floats:
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
