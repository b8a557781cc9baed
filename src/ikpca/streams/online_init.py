"""Initialization of online kernel PCA."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Kernel
from ikpca.streams.online_kha import OnlineSettings, OnlineState, learn_rows, start_online

START_NAMES = ("rows", "random", "covering")
#: Minimum number of rows used for the start.
_MIN_ROWS = 64
#: Minimum cosine, in feature space, between neighbors on a covering grid.
_MIN_COSINE = 0.6
#: Maximum number of points of a covering, and its radius relative to that of the rows.
_MAX_POINTS, _RADIUS_FACTOR = 512, 1.25
#: Relative threshold below which a direction is rounding noise.
_DROP = 1e-10


@dataclass(frozen=True, eq=False)
class OnlineStart:
    """Initial state, computed from the first rows of a stream.

    Parameters
    ----------
    kind : {"rows", "random", "covering"} or ndarray of shape (r, N)
        "rows": kernel PCA of the first rows. "random": Kim's points, one per component, drawn with
        the mean and standard deviation of the first rows. "covering": random combinations of points
        that cover the ball of the first rows (figure 7). An array contains the points themselves.
    n_components, seed : int
    room : int
        Maximum number of points of the expansion.
    """

    kind: str | Floats
    n_components: int
    seed: int
    room: int

    @property
    def n_rows(self) -> int:
        """Number of rows used: a power of two; 1 if the points are given."""
        if not isinstance(self.kind, str):
            return 1
        number = min(max(_MIN_ROWS, 4 * self.n_components), max(self.room, 1))
        return 1 << (number.bit_length() - 1)

    def state(self, rows: Floats, settings: OnlineSettings) -> OnlineState:
        """Return the state after these rows, the first of the stream."""
        if isinstance(self.kind, str) and self.kind == "rows":
            return _kernel_pca_state(rows, self, settings)
        points, coefficients = self._points(rows, settings.kernel)
        first = start_online(settings, points, coefficients)
        return learn_rows(first, rows, settings)[0]

    def _points(self, rows: Floats, kernel: Kernel) -> tuple[Floats, Floats]:
        rng = np.random.default_rng([self.seed, 4])
        if not isinstance(self.kind, str):
            return _normalize(kernel, self.kind.astype(rows.dtype), np.eye(self.n_components))
        if self.kind == "random":
            points = _random_points(rows, self.n_components, rng)
            return _normalize(kernel, points, np.eye(self.n_components))
        points = _covering_points(rows, kernel, min(_MAX_POINTS, self.room), rng)
        return _normalize(kernel, points, rng.normal(size=(self.n_components, len(points))))


def learn_stream(
    start: OnlineStart,
    state: OnlineState | None,
    kept: Floats,
    rows: Floats,
    settings: OnlineSettings,
) -> tuple[OnlineState, Floats, Floats, int]:
    """Update the state with rows; early in the stream, restart when their number has doubled.

    A start from few rows is poor, and a restart costs no more than the rows it is computed from.
    Restarts happen at fixed times of the stream, so that the result does not depend on the batches.

    Parameters
    ----------
    start : OnlineStart
    state : OnlineState or None
        None before the first row.
    kept : ndarray of shape (n, N)
        The first rows of the stream, as long as ``start`` uses them.

    Returns
    -------
    state, kept
    errors : ndarray of shape (n,)
        As returned by ``learn_rows``; k(x, x) for the first row.
    halvings : int
    """
    errors: list[Floats] = []
    halvings = 0
    while len(rows):
        seen = 0 if state is None else state.seen
        if state is not None and seen >= start.n_rows:
            state, found, halved = learn_rows(state, rows, settings)
            return state, kept[:0], np.concatenate([*errors, found]), halvings + halved
        doubled = 1 << seen.bit_length()
        new, rows = rows[: doubled - seen], rows[doubled - seen :]
        if state is None:
            found, halved = settings.kernel.diagonal(new).astype(np.float64), 0
        else:
            state, found, halved = learn_rows(state, new, settings)
        kept = np.vstack([kept, new])
        errors.append(found)
        halvings += halved
        if len(kept) == doubled:
            state = start.state(kept, settings)
            # Halvings before the restart do not count.
            halvings = round(-np.log2(state.gain_scale))
    assert state is not None
    return state, kept if state.seen < start.n_rows else kept[:0], np.concatenate(errors), halvings


def _kernel_pca_state(rows: Floats, start: OnlineStart, settings: OnlineSettings) -> OnlineState:
    """Return the state of a kernel PCA of the rows, with random points for missing components."""
    r, n = start.n_components, len(rows)
    points = _random_points(rows, r, np.random.default_rng([start.seed, 4]))
    basis = np.vstack([rows, points])
    K = cross_gram(settings.kernel, basis, basis).astype(np.float64)
    means = K[:n, :n].mean(axis=0)
    centered = K[:n, :n] - means - means[:, None] + means.mean()
    eigenvalues, vectors = linalg.eigh((centered + centered.T) / 2)
    eigenvalues, vectors = eigenvalues[::-1][:r], vectors[:, ::-1][:, :r]
    positive = eigenvalues > _DROP * max(float(np.abs(np.diagonal(K)).max()), 1e-300) * n
    found = (vectors[:, positive] / np.sqrt(eigenvalues[positive])).T
    coefficients: Floats = np.zeros((len(found) + r, n + r))
    coefficients[: len(found), :n] = found
    coefficients[len(found) :, n:] = np.eye(r)
    coefficients = _orthonormal(coefficients, K)[:r]
    used = slice(0, n if len(found) == r else n + r)
    basis, coefficients, K = basis[used], coefficients[:, used], K[used, used]
    total = max(float(np.trace(centered)) / n, 0.0)
    variances = np.full(r, total or float(np.abs(np.diagonal(K)).mean()) or 1.0)
    variances[: len(found)] = eigenvalues[positive] / n
    mean = np.zeros(len(basis))
    mean[:n] = 1 / n
    first = start_online(settings, basis, coefficients, coefficients @ K @ coefficients.T)
    return replace(
        first,
        mean=mean,
        with_mean=first.coefficients @ (K @ mean),
        mean_length=float(means.mean()),
        moments=np.diag(variances * np.diagonal(first.lengths)),
        total_variance=total,
        seen=n,
    )


def _random_points(rows: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Draw points with the mean and standard deviation of the rows; for one row, of its size."""
    mean, std = rows.mean(axis=0), rows.std(axis=0)
    if not std.any():
        std = np.full_like(mean, float(np.sqrt(np.mean(np.square(mean)))) or 1.0)
    return (mean + std * rng.normal(size=(number, rows.shape[1]))).astype(rows.dtype)


def _covering_points(rows: Floats, kernel: Kernel, limit: int, rng: np.random.Generator) -> Floats:
    """Return points that cover a ball around the rows, close enough to overlap (figure 7).

    They form a grid if that needs at most ``limit`` points, and are drawn at random otherwise; with
    a narrow kernel the covering is then incomplete.
    """
    center, N = rows.mean(axis=0, dtype=np.float64), rows.shape[1]
    radius = _RADIUS_FACTOR * float(np.sqrt(np.square(rows - center).sum(axis=1).max()))
    radius = radius or float(np.linalg.norm(center)) or 1.0
    for per_axis in range(3, int(limit ** (1 / N)) + 1):
        axis = np.linspace(-radius, radius, per_axis)
        grid = np.stack(np.meshgrid(*[axis] * N, indexing="ij"), axis=-1).reshape(-1, N)
        inside = grid[np.linalg.norm(grid, axis=1) <= radius * (1 + 1e-9)] + center
        neighbor = inside[:1] + (axis[1] - axis[0]) * np.eye(N)[:1]
        if _kernel_cosine(kernel, inside[:1], neighbor) >= _MIN_COSINE:
            return inside.astype(rows.dtype)
    directions = rng.normal(size=(limit, N))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    distances = radius * rng.uniform(size=(limit, 1)) ** (1 / N)
    return (center + distances * directions).astype(rows.dtype)


def _kernel_cosine(kernel: Kernel, x: Floats, z: Floats) -> float:
    squared = float(kernel.diagonal(x)[0]) * float(kernel.diagonal(z)[0])
    return float(cross_gram(kernel, x, z)[0, 0]) / np.sqrt(squared) if squared > 0 else 1.0


def _normalize(kernel: Kernel, points: Floats, coefficients: Floats) -> tuple[Floats, Floats]:
    """Scale the components to unit length in feature space."""
    K = cross_gram(kernel, points, points).astype(np.float64)
    squared = np.abs(np.einsum("ij,jk,ik->i", coefficients, K, coefficients, optimize=True))
    lengths = np.sqrt(squared)[:, None]
    return points, np.divide(
        coefficients, lengths, out=np.zeros_like(coefficients), where=lengths > 0
    )


def _orthonormal(coefficients: Floats, K: Floats) -> Floats:
    """Apply Gram–Schmidt in feature space; dependent rows are replaced by zeros at the end."""
    basis: list[Floats] = []
    for row in coefficients:
        residual = row
        for _ in range(2):
            residual = residual - sum((other @ K @ residual) * other for other in basis)
        before, squared = float(row @ K @ row), float(residual @ K @ residual)
        if squared > _DROP * abs(before) and squared > 0:
            basis.append(residual / np.sqrt(squared))
    while len(basis) < len(coefficients):
        basis.append(np.zeros(coefficients.shape[1]))
    return np.array(basis)
