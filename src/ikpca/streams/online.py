"""Online KHA (Kim 2003, appendix A): each pattern is used once and added to the expansion."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Kernel
from ikpca.solvers import Gain
from ikpca.solvers.rayleigh_ritz import rayleigh_ritz
from ikpca.subspace import Subspace

START_NAMES = ("rows", "random", "covering")
#: Patterns between two refreshes of λ for the gains: at most 32, and about 1/8 of those seen.
#: Refreshes happen at fixed times of the stream, so that the result does not depend on batches.
_MAX_INTERVAL, _INTERVAL_DIVISOR = 32, 8
#: Minimum number of rows used for the start.
_MIN_ROWS = 64
#: Minimum cosine, in feature space, between neighbors on a covering grid.
_MIN_COSINE = 0.6
#: Maximum number of points of a covering, and its radius relative to that of the rows.
_MAX_POINTS, _RADIUS_FACTOR = 512, 1.25
#: Relative threshold below which a direction is rounding noise.
_DROP = 1e-10


@dataclass(frozen=True)
class OnlineSettings:
    """Settings of a stream."""

    kernel: Kernel
    gain: Gain
    #: True for automatic gains, which are capped.
    is_capped: bool
    #: Used in place of l, which a stream does not have: default τ of inverse time.
    horizon: int
    #: Time constant of the mean, λ and the clock of the gains, in patterns.
    memory: float = np.inf


@dataclass(frozen=True, eq=False)
class OnlineState:
    """State of online KHA between two patterns."""

    #: Rows of the expansion.
    basis: Floats
    #: α.
    coefficients: Floats
    #: ν.
    mean: Floats
    #: ⟨w_i, w_j⟩.
    lengths: Floats
    #: ⟨w_i, µ⟩ and ⟨µ, µ⟩.
    with_mean: Floats
    mean_length: float
    #: Running mean of yyᵀ, weighted towards later patterns, since the components have changed.
    moments: Floats
    #: Running mean of ‖Φ(x) − µ‖².
    total_variance: float
    #: Number of patterns so far.
    seen: int = 0
    #: Product of all back-offs.
    gain_scale: float = 1.0
    #: ``variances`` at the last refresh, used for the gains.
    gain_variances: Floats | None = None

    @property
    def n_components(self) -> int:
        """Number of components r."""
        return len(self.lengths)

    @property
    def variances(self) -> Floats:
        """Variance λ_i/l along each component, scaled to unit length."""
        lengths = np.diagonal(self.lengths)
        variances = np.diagonal(self.moments)
        return np.divide(variances, lengths, out=np.zeros(len(lengths)), where=lengths > 0)

    def subspace(self, kernel: Kernel, *, ritz: bool) -> tuple[Subspace, Floats]:
        """Return components and mean in the precision of the rows, and the variances.

        With ``ritz`` the components are orthonormalized and ordered within their span, by the
        running moments; the state itself does not change.
        """
        r = self.n_components
        T: Floats = np.eye(r)
        variances = self.variances
        if ritz:
            variances, T = rayleigh_ritz(self.lengths, self.moments)
        offsets = T @ self.with_mean
        gram = np.block(
            [[T @ self.lengths @ T.T, offsets[:, None]], [offsets, np.array(self.mean_length)]]
        )
        vectors = np.vstack([T @ self.coefficients, self.mean])
        dtype = self.basis.dtype
        subspace = Subspace(kernel, self.basis, vectors.astype(dtype), None, gram.astype(dtype))
        return subspace, np.maximum(variances, 0)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def flip_signs(self, signs: Floats) -> OnlineState:
        """Return the state with components multiplied by ±1."""
        both = np.outer(signs, signs)
        return replace(
            self,
            coefficients=self.coefficients * signs[:, None],
            lengths=self.lengths * both,
            with_mean=self.with_mean * signs,
            moments=self.moments * both,
        )


def start_online(
    settings: OnlineSettings, points: Floats, coefficients: Floats, lengths: Floats | None = None
) -> OnlineState:
    """Return the state of components on initial points, which are not in the mean (appendix A.2).

    λ is still unknown; the mean of k(x, x), an upper bound, makes the first steps short.
    """
    variance = float(np.abs(settings.kernel.diagonal(points)).mean(dtype=np.float64)) or 1.0
    if lengths is None:
        K = cross_gram(settings.kernel, points, points).astype(np.float64)
        lengths = coefficients @ K @ coefficients.T
    return OnlineState(
        basis=points,
        coefficients=coefficients,
        mean=np.zeros(len(points)),
        lengths=(lengths + lengths.T) / 2,
        with_mean=np.zeros(len(coefficients)),
        mean_length=0.0,
        moments=variance * np.diag(np.diagonal(lengths)),
        total_variance=variance,
    )


def learn_rows(
    state: OnlineState, rows: Floats, settings: OnlineSettings
) -> tuple[OnlineState, Floats, int]:
    """Update the state with rows, in order.

    Returns the state, ‖Φ(x) − µ − P(Φ(x) − µ)‖² of every row before its update, and the number of
    times that the gains were halved because they were too large.
    """
    errors, halvings, start = [], 0, 0
    while start < len(rows):
        if state.gain_variances is None or _steps_to_refresh(state.seen) == _interval(state.seen):
            state = replace(state, gain_variances=state.variances)
        end = start + min(_steps_to_refresh(state.seen), len(rows) - start)
        state, found, halved = _learn_block(state, rows[start:end], settings)
        errors.append(found)
        halvings += halved
        start = end
    return state, np.concatenate(errors), halvings


def _steps_to_refresh(seen: int) -> int:
    """Return the number of patterns until λ is refreshed; depends on ``seen`` alone."""
    return _interval(seen) - seen % _interval(seen)


def _interval(seen: int) -> int:
    """Return the number of patterns between two refreshes, a power of two."""
    return min(_MAX_INTERVAL, 1 << max(0, (seen // _INTERVAL_DIVISOR).bit_length() - 1))


def _learn_block(
    state: OnlineState, rows: Floats, settings: OnlineSettings
) -> tuple[OnlineState, Floats, int]:
    # Imported here because importing it starts the compiler.
    from ikpca.streams.online_sweep import online_sweep

    cross_values = cross_gram(settings.kernel, state.basis, rows).astype(np.float64)
    batch_values = cross_gram(settings.kernel, rows, rows).astype(np.float64)
    if not (np.isfinite(cross_values).all() and np.isfinite(batch_values).all()):
        raise invalid_parameter(
            "kernel",
            settings.kernel,
            "returned NaN or infinite values for these rows",
            "scale the rows or correct the kernel; nothing was learned",
        )
    vectors = np.vstack([state.coefficients, state.mean])
    lengths, with_mean, moments = state.lengths.copy(), state.with_mean.copy(), state.moments.copy()
    times = np.arange(state.seen, state.seen + len(rows), dtype=np.float64)
    T, C, s, d, errors, mean_length, total, halvings = online_sweep(
        vectors @ cross_values, batch_values, lengths, with_mean, state.mean_length,
        _gains(state, times, settings), state.gain_scale, settings.is_capped,
        np.maximum(1 / (times + 1), 1 / settings.memory), moments, state.total_variance,
        _moment_weights(times, settings),
    )  # fmt: skip
    updated = replace(
        state,
        basis=np.vstack([state.basis, rows]),
        coefficients=np.hstack([T @ vectors, C]),
        mean=np.append(s * state.mean, d),
        lengths=lengths,
        with_mean=with_mean,
        mean_length=mean_length,
        moments=moments,
        total_variance=total,
        seen=state.seen + len(rows),
        gain_scale=state.gain_scale * 0.5**halvings,
    )
    return updated, errors, halvings


def _gains(state: OnlineState, times: Floats, settings: OnlineSettings) -> Floats:
    """Return η for every pattern; zero for the first, which only sets the mean."""
    horizon = settings.horizon
    clock = np.minimum(times, settings.memory)
    variances = state.variances if state.gain_variances is None else state.gain_variances
    eta = settings.gain.gains(clock, horizon, variances * horizon)
    eta = np.broadcast_to(eta, (len(times), state.n_components)).astype(np.float64)
    eta[times == 0] = 0
    return eta


def _moment_weights(times: Floats, settings: OnlineSettings) -> Floats:
    """Return weights that grow linearly in time, so that initial transients decay as 1/t²."""
    weights = np.maximum(2 / (times + 3), min(1.0, 2 / settings.memory))
    weights[times == 0] = 0
    return weights


@dataclass(frozen=True, eq=False)
class OnlineStart:
    """Initial state, computed from the first rows of a stream.

    "rows": kernel PCA of the first rows. "random": Kim's points, one per component, drawn with the
    mean and standard deviation of the first rows. "covering": random combinations of points that
    cover the ball of the first rows (figure 7). An array contains the points themselves.
    """

    kind: str | Floats
    n_components: int
    seed: int

    @property
    def n_rows(self) -> int:
        """Number of rows used: a power of two; 1 if the points are given."""
        if not isinstance(self.kind, str):
            return 1
        number = max(_MIN_ROWS, 4 * self.n_components)
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
        points = _covering_points(rows, kernel, rng)
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

    ``kept`` are the first rows of the stream, as long as ``start`` uses them. Returns the state,
    the rows to keep, and errors and halvings as ``learn_rows`` does; the error of the first row is
    k(x, x).
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
    if not np.isfinite(K).all():
        raise InvalidInput(
            f"kernel values of the first rows overflow under {settings.kernel!r}; scale X, or "
            "choose a smaller gamma or degree."
        )
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
    mean, std = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    if not std.any():
        std = np.full_like(mean, float(np.sqrt(np.mean(np.square(mean)))) or 1.0)
    return (mean + std * rng.normal(size=(number, rows.shape[1]))).astype(rows.dtype)


def _covering_points(rows: Floats, kernel: Kernel, rng: np.random.Generator) -> Floats:
    """Return points that cover a ball around the rows, close enough to overlap (figure 7).

    They form a grid if that needs at most 512 points, and are drawn at random otherwise; with
    a narrow kernel the covering is then incomplete.
    """
    center, N = rows.mean(axis=0, dtype=np.float64), rows.shape[1]
    radius = _RADIUS_FACTOR * float(np.sqrt(np.square(rows - center).sum(axis=1).max()))
    radius = radius or float(np.linalg.norm(center)) or 1.0
    for per_axis in range(3, int(_MAX_POINTS ** (1 / N)) + 1):
        axis = np.linspace(-radius, radius, per_axis)
        grid = np.stack(np.meshgrid(*[axis] * N, indexing="ij"), axis=-1).reshape(-1, N)
        inside = grid[np.linalg.norm(grid, axis=1) <= radius * (1 + 1e-9)] + center
        neighbor = inside[:1] + (axis[1] - axis[0]) * np.eye(N)[:1]
        if _kernel_cosine(kernel, inside[:1], neighbor) >= _MIN_COSINE:
            return inside.astype(rows.dtype)
    directions = rng.normal(size=(_MAX_POINTS, N))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    distances = radius * rng.uniform(size=(_MAX_POINTS, 1)) ** (1 / N)
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
