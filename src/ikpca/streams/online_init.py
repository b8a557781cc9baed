"""Initialization of online components."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from ikpca.gram import cross_gram
from ikpca.kernels import Floats, Kernel
from ikpca.streams.online_kha import OnlineSettings, OnlineState, learn_rows, start_online

START_NAMES = ("rows", "random", "covering")
#: Rows from which the scale of the data is read, at least.
_ROWS = 64
#: Neighbours on a covering grid are at least this alike: cos of their images' angle.
_LIKENESS = 0.6
#: Points of a covering, at most; and how much further than the rows it reaches.
_COVERING, _REACH = 512, 1.25
#: Directions below this share of the leading one are rounding.
_DROP = 1e-10


@dataclass(frozen=True, eq=False)
class OnlineStart:
    """A first state, from as many rows as have come so far.

    Parameters
    ----------
    kind : {"rows", "random", "covering"} or ndarray of shape (r, N)
        "rows": kernel PCA of the first rows. "random": Kim's points, one per component, drawn with
        the mean and spread of the first rows. "covering": random combinations of points that cover
        the ball of the first rows (figure 7). An array holds the points themselves.
    n_components, seed : int
    room : int
        Points that the expansion has room for.
    """

    kind: str | Floats
    n_components: int
    seed: int
    room: int

    @property
    def n_rows(self) -> int:
        """Rows that are looked at: a power of two, or none where the points are given."""
        if not isinstance(self.kind, str):
            return 1
        wanted = min(max(_ROWS, 4 * self.n_components), max(self.room, 1))
        return 1 << (wanted.bit_length() - 1)

    def state(self, rows: Floats, settings: OnlineSettings) -> OnlineState:
        """The model after these rows, as if they were all that is known."""
        if isinstance(self.kind, str) and self.kind == "rows":
            return _components_of(rows, self, settings)
        points, coefficients = self._points(rows, settings.kernel)
        first = start_online(settings, points, coefficients)
        return learn_rows(first, rows, settings)[0]

    def _points(self, rows: Floats, kernel: Kernel) -> tuple[Floats, Floats]:
        rng = np.random.default_rng([self.seed, 4])
        if not isinstance(self.kind, str):
            return _unit(kernel, self.kind.astype(rows.dtype), np.eye(self.n_components))
        if self.kind == "random":
            points = _like(rows, self.n_components, rng)
            return _unit(kernel, points, np.eye(self.n_components))
        points = _covering(rows, kernel, min(_COVERING, self.room), rng)
        return _unit(kernel, points, rng.normal(size=(self.n_components, len(points))))


def learn_stream(
    start: OnlineStart,
    state: OnlineState | None,
    kept: Floats,
    rows: Floats,
    settings: OnlineSettings,
) -> tuple[OnlineState, Floats, Floats, int]:
    """Learn from rows; while few have come, begin anew each time their number has doubled.

    The first steps of a stream lead away from a start that knew too little, and a start takes no
    longer than the rows it is made of took. Times are those of the stream, so that it does not
    matter how it is cut into batches.

    Parameters
    ----------
    start : Start
    state : OnlineState or None
        None before the first row.
    kept : ndarray of shape (n, N)
        The first rows of the stream, as long as ``start`` looks at them.

    Returns
    -------
    state, kept
    errors : ndarray of shape (n,)
        As ``learn_rows`` has them; k(x, x) of the very first row.
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
            # Gains that were too large for a start that is no more are of no account.
            halvings = round(-np.log2(state.gain_scale))
    assert state is not None
    return state, kept if state.seen < start.n_rows else kept[:0], np.concatenate(errors), halvings


def _like(rows: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Points with the mean and spread of rows; of their size where there is but one."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    if not spread.any():
        spread = np.full_like(mean, float(np.sqrt(np.mean(np.square(mean)))) or 1.0)
    return (mean + spread * rng.normal(size=(number, rows.shape[1]))).astype(rows.dtype)


def _unit(kernel: Kernel, points: Floats, coefficients: Floats) -> tuple[Floats, Floats]:
    """Components of unit length, whatever the scale of the kernel."""
    K = cross_gram(kernel, points, points).astype(np.float64)
    squared = np.abs(np.einsum("ij,jk,ik->i", coefficients, K, coefficients, optimize=True))
    lengths = np.sqrt(squared)[:, None]
    return points, np.divide(
        coefficients, lengths, out=np.zeros_like(coefficients), where=lengths > 0
    )


def _covering(rows: Floats, kernel: Kernel, limit: int, rng: np.random.Generator) -> Floats:
    """Points in a ball around the rows, at an interval at which neighbours overlap (figure 7).

    A grid where one fits into the limit; otherwise as many points of the ball as there is room for,
    which covers but what the kernel is wide enough for.
    """
    centre, N = rows.mean(axis=0, dtype=np.float64), rows.shape[1]
    radius = _REACH * float(np.sqrt(np.square(rows - centre).sum(axis=1).max()))
    radius = radius or float(np.linalg.norm(centre)) or 1.0
    for per_axis in range(3, int(limit ** (1 / N)) + 1):
        axis = np.linspace(-radius, radius, per_axis)
        grid = np.stack(np.meshgrid(*[axis] * N, indexing="ij"), axis=-1).reshape(-1, N)
        inside = grid[np.linalg.norm(grid, axis=1) <= radius * (1 + 1e-9)] + centre
        neighbour = inside[:1] + (axis[1] - axis[0]) * np.eye(N)[:1]
        if _alike(kernel, inside[:1], neighbour) >= _LIKENESS:
            return inside.astype(rows.dtype)
    directions = rng.normal(size=(limit, N))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    reach = radius * rng.uniform(size=(limit, 1)) ** (1 / N)
    return (centre + reach * directions).astype(rows.dtype)


def _alike(kernel: Kernel, x: Floats, z: Floats) -> float:
    own = float(kernel.diagonal(x)[0]) * float(kernel.diagonal(z)[0])
    return float(cross_gram(kernel, x, z)[0, 0]) / np.sqrt(own) if own > 0 else 1.0


def _components_of(rows: Floats, start: OnlineStart, settings: OnlineSettings) -> OnlineState:
    """Kernel PCA of the rows; what they do not have is filled up with points like them."""
    r, n = start.n_components, len(rows)
    points = _like(rows, r, np.random.default_rng([start.seed, 4]))
    library = np.vstack([rows, points])
    K = cross_gram(settings.kernel, library, library).astype(np.float64)
    means = K[:n, :n].mean(axis=0)
    centred = K[:n, :n] - means - means[:, None] + means.mean()
    eigenvalues, vectors = linalg.eigh((centred + centred.T) / 2)
    eigenvalues, vectors = eigenvalues[::-1][:r], vectors[:, ::-1][:, :r]
    there = eigenvalues > _DROP * max(float(np.abs(np.diagonal(K)).max()), 1e-300) * n
    found = (vectors[:, there] / np.sqrt(eigenvalues[there])).T
    coefficients: Floats = np.zeros((len(found) + r, n + r))
    coefficients[: len(found), :n] = found
    coefficients[len(found) :, n:] = np.eye(r)
    coefficients = _orthonormal(coefficients, K)[:r]
    used = slice(0, n if len(found) == r else n + r)
    library, coefficients, K = library[used], coefficients[:, used], K[used, used]
    total = max(float(np.trace(centred)) / n, 0.0)
    variances = np.full(r, total or float(np.abs(np.diagonal(K)).mean()) or 1.0)
    variances[: len(found)] = eigenvalues[there] / n
    mean = np.zeros(len(library))
    mean[:n] = 1 / n
    first = start_online(settings, library, coefficients, coefficients @ K @ coefficients.T)
    return replace(
        first,
        mean=mean,
        with_mean=first.coefficients @ (K @ mean),
        mean_length=float(means.mean()),
        moments=np.diag(variances * np.diagonal(first.lengths)),
        total_variance=total,
        seen=n,
    )


def _orthonormal(coefficients: Floats, K: Floats) -> Floats:
    """Gram–Schmidt in feature space, in order; what depends on earlier rows becomes zero."""
    done: list[Floats] = []
    for row in coefficients:
        left = row
        for _ in range(2):
            left = left - sum((other @ K @ left) * other for other in done)
        before, squared = float(row @ K @ row), float(left @ K @ left)
        if squared > _DROP * abs(before) and squared > 0:
            done.append(left / np.sqrt(squared))
    while len(done) < len(coefficients):
        done.append(np.zeros(coefficients.shape[1]))
    return np.array(done)
