"""Kernel PCA of a stream from moments on a moving basis of rows.

The images of m basis rows span V. With the Cholesky factor K_BB = LLᵀ, the features
z = L⁻¹ k_B(x) are orthonormal coordinates of the projection of Φ(x) on V, and the weighted
moments n = Σw, s = Σwz and C = Σwzzᵀ determine mean and components in V. The basis follows the
rows: it grows up to its limit, its rows become means of their cells, and rows of the stream replace
those that matter least. The state changes at fixed positions of the stream only, so that it does
not depend on how rows are divided into batches.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import blas, lapack

from ikpca.errors import InvalidInput
from ikpca.kernels import Cosine, Floats, Indices, Kernel, Linear, Rows
from ikpca.reduced_sets.select_rows import eliminate
from ikpca.streams.span import (
    Span,
    Stored,
    independent_rows,
    narrowed,
    origin_of,
    pivot_tol,
    shift_of,
    shifted_gram,
    stack,
)
from ikpca.subspace import Subspace

_NONE: Floats = np.zeros(0)
#: Rows of a block, and of the first one; blocks end at powers of two, then at multiples.
_BLOCK, _FIRST_BLOCK = 256, 32
#: Decrease of the weights within a block at which it ends earlier, for ``forgetting`` < 1.
_MAX_FADE = 0.25
#: The basis is renewed when the new rows are this fraction of the stream, also if it forgets.
_RENEWAL, _RENEWAL_FADING = 1 / 3, 3 / 4
#: Leading components are refreshed when the new rows are this fraction; the oversampling.
_REFRESH, _OVERSAMPLES = 0.05, 8
#: Excess of the energy outside of V that does not count as a drift, and that which is one,
#: relative to the last eigenvalue and in standard deviations.
_SLACK, _DRIFT, _DRIFT_STD = 0.1, 0.25, 6.0
#: Rows in a sample.
_SAMPLE = 1024
#: Fraction of the basis that is exchanged at a time.
_EXCHANGE = 1 / 8


@dataclass(eq=False)
class Sample:
    """Priority sample of a weighted stream: unbiased sums over all of its rows.

    A row of weight w has priority w/u, u uniform in (0, 1]; the largest priorities are kept. Each
    row stands for the weight max(w, largest priority that was dropped). All numbers are logarithms
    relative to the present, so that fading weights need no special treatment.
    """

    rows: Rows
    weights: Floats
    priorities: Floats
    dropped: float = -np.inf

    @property
    def is_complete(self) -> bool:
        """True if no row was dropped."""
        return self.dropped == -np.inf

    @classmethod
    def empty(cls, rows: Rows) -> Sample:
        """Return the sample before the first row."""
        return cls(rows[:0], np.zeros(0), np.zeros(0))

    def fade(self, change: float) -> Sample:
        """Return the sample after all weights have changed by a factor, given as a logarithm."""
        return Sample(
            self.rows, self.weights + change, self.priorities + change, self.dropped + change
        )

    def add(self, rows: Rows, weights: Floats, rng: np.random.Generator) -> Sample:
        """Return the sample after more rows."""
        with np.errstate(divide="ignore"):
            logarithms = np.log(weights)
        priorities = logarithms - np.log1p(-rng.random(len(weights)))
        entering = np.flatnonzero(priorities > self.dropped)
        new = Sample(rows[entering], logarithms[entering], priorities[entering], self.dropped)
        return self.join(new) if len(entering) else self

    def join(self, other: Sample) -> Sample:
        """Return the sample of both streams."""
        priorities = np.concatenate([self.priorities, other.priorities])
        dropped = max(self.dropped, other.dropped)
        kept: Indices = np.arange(len(priorities))
        if len(priorities) > _SAMPLE:
            order = np.argpartition(-priorities, _SAMPLE)
            kept = np.sort(order[:_SAMPLE])
            dropped = max(dropped, float(priorities[order[_SAMPLE]]))
        n_old = len(self.weights)
        rows = stack((self.rows, other.rows)) if n_old else other.rows
        weights = np.concatenate([self.weights, other.weights])
        return Sample(rows[kept], weights[kept], priorities[kept], dropped)

    def scaled_weights(self, total: float) -> Floats:
        """Return the weight that each row stands for, with a given sum."""
        logarithms = np.maximum(self.weights, self.dropped)
        shares = np.exp(logarithms - logarithms.max(initial=-np.inf))
        return shares * (total / max(float(shares.sum()), 1e-300))


@dataclass(eq=False)
class MomentState(Stored):
    """State of a stream: a basis, its cells, the moments of the features, and a sample of rows.

    ``learn`` returns a new state and never changes the arrays of the present one.

    Parameters
    ----------
    span : Span
        Basis rows and their span V.
    n_components : int
        r, for the drift test and the novelty.
    max_rows : int or None
        Maximum number of basis rows; None keeps all independent rows, which is exact.
    means : bool
        True if basis rows move to the means of their cells, False if they are rows of the stream.
    decay : float
        f²: every row multiplies the weights of earlier rows.
    seed : int
    row_sum : ndarray of shape (N,)
        Σ w x.
    sample : Sample

    Attributes
    ----------
    seen : int
        Number of rows in finished blocks.
    count : float
        The same, decayed: the number of rows in memory.
    n, s, C : float, ndarray of shape (m,), ndarray of shape (m, m)
        Moments of the features.
    energy : float
        Σ w k(x, x).
    cell_weights : ndarray of shape (m,)
        Weight of each basis row in its next mean.
    cell_sums, cell_counts : ndarray of shape (m, N), ndarray of shape (m,)
        Sum and weight of the rows of each cell since the last renewal.
    is_proved : bool
        True if the moments are those of all rows: then eigenvalues are bounded.
    U, eigenvalues
        Coordinates of the leading components as of the last refresh, and their eigenvalues.
    pending : tuple of (rows, weights)
        Rows of the unfinished block.
    age, renewed, refreshed : int
        Rows since the last drift, renewal and refresh.
    excess, run : float, int
        CUSUM of the energy outside of V, and the number of rows since it was zero.
    """

    span: Span
    n_components: int
    max_rows: int | None
    means: bool
    decay: float
    seed: int
    row_sum: Floats
    sample: Sample
    seen: int = 0
    count: float = 0.0
    n: float = 0.0
    s: Floats = field(default_factory=lambda: np.zeros(0))
    C: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    energy: float = 0.0
    cell_weights: Floats = field(default_factory=lambda: np.zeros(0))
    cell_sums: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    cell_counts: Floats = field(default_factory=lambda: np.zeros(0))
    is_proved: bool = True
    U: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    eigenvalues: Floats = field(default_factory=lambda: np.zeros(0))
    pending: tuple[tuple[Rows, Floats], ...] = ()
    n_pending: int = 0
    age: int = 0
    renewed: int = 0
    refreshed: int = 0
    excess: float = 0.0
    run: int = 0

    @classmethod
    def empty(
        cls,
        kernel: Kernel,
        rows: Rows,
        n_components: int,
        max_rows: int | None,
        *,
        means: bool = True,
        decay: float = 1.0,
        seed: int = 0,
    ) -> MomentState:
        """Return the state before the first row, for rows of this width and type."""
        none = rows[:0]
        span = Span(kernel, none, np.zeros((0, 0), order="F"))
        state = cls(
            span, n_components, max_rows, means and max_rows is not None, decay, seed,
            np.zeros(rows.shape[1]), Sample.empty(none),
        )  # fmt: skip
        state.cell_sums = state._no_sums(0)
        return state

    @property
    def kernel(self) -> Kernel:
        """Kernel of the stream."""
        return self.span.kernel

    @property
    def basis_rows(self) -> Rows:
        """Basis rows, without those of the unfinished block."""
        return self.span.rows

    @property
    def n_seen(self) -> int:
        """Number of rows, with those of the unfinished block."""
        return self.seen + self.n_pending

    @property
    def n_bytes(self) -> int:
        """Memory of the arrays in bytes."""
        rows = [self.span.rows, self.sample.rows, *(part for part, _ in self.pending)]
        arrays = [self.span.factor, self.C, self.cell_sums, self.U]
        for part in rows:
            arrays += [part.data, part.indices] if sparse.issparse(part) else [part]
        return sum(int(array.nbytes) for array in arrays)

    def with_settings(self, n_components: int, decay: float) -> MomentState:
        """Return the state with another number of components and decay of the weights."""
        if (n_components, decay) == (self.n_components, self.decay):
            return self
        return replace(self, n_components=n_components, decay=decay)

    def ends_block(self, n_rows: int) -> bool:
        """Return True if a block ends within the next rows."""
        return self.n_seen + n_rows >= self._block_end

    # Rows in.

    def learn(self, rows: Rows, weights: Floats) -> tuple[MomentState, Floats]:
        """Return the state after more rows, and the novelty of the rows of blocks that have ended.

        The novelty is ‖Φ(x) − µ‖² less the part in the leading components, before the block of the
        row; NaN in the first block.
        """
        state, novelty, start = self._copy(), [_NONE], 0
        while (take := state._block_end - state.n_seen) <= rows.shape[0] - start:
            state.pending += ((rows[start : start + take], weights[start : start + take]),)
            novelty.append(state._learn_block())
            start += take
        if start < rows.shape[0]:
            # A copy, since the caller may write to its array.
            state.span.check_rows(rows[start:])
            state.pending += ((rows[start:].copy(), weights[start:].copy()),)
            state.n_pending += rows.shape[0] - start
        return state, np.concatenate(novelty) if start else _NONE

    def _copy(self) -> MomentState:
        """Return a shallow copy without cached properties, in a tenth of the time of replace."""
        state = object.__new__(type(self))
        state.__dict__.update(self.__dict__)
        for name in ("current", "solution"):
            state.__dict__.pop(name, None)
        return state

    @cached_property
    def current(self) -> MomentState:
        """State in which the rows of the unfinished block have been learned; self is unchanged."""
        if not self.n_pending:
            return self
        state = self._copy()
        state._learn_block()
        return state

    @property
    def _block_rows(self) -> int:
        """Rows of a block in the long run."""
        if self.decay == 1:
            return _BLOCK
        return int(np.clip(_MAX_FADE / (1 - self.decay), 1, _BLOCK))

    @property
    def _block_end(self) -> int:
        size = self._block_rows
        return min((self.seen // size + 1) * size, max(_FIRST_BLOCK, 2 * self.seen))

    def _learn_block(self) -> Floats:
        """Learn the pending rows; return their novelty."""
        rows = stack([part for part, _ in self.pending])
        weights = np.concatenate([part for _, part in self.pending])
        self.pending, self.n_pending, self._read = (), 0, (0, _NONE)
        rng = np.random.default_rng([self.seed, self.seen])
        n_rows, diagonal = rows.shape[0], self.span.diagonal(rows)
        fading = self.decay ** np.arange(n_rows - 1.0, -1.0, -1.0)
        faded = weights * fading
        Z, outside, nearest = self.span.features(rows, diagonal)
        novelty = self._novelty(Z, diagonal)
        self._forget_projector()
        is_full = self.max_rows is not None and len(self.span) >= self.max_rows
        if is_full:
            is_moved = self._follow(rows, outside, rng)
        else:
            is_moved = self._grow(rows, faded, diagonal, outside, rng)
        if is_moved:
            Z, outside, nearest = self.span.features(rows, diagonal)
        self._fade(self.decay**n_rows)
        s, C = _moments(Z, faded)
        self.s, self.C, self.row_sum = self.s + s, self.C + C, self.row_sum + faded @ rows
        self.n += float(faded.sum())
        self.energy += float(faded @ diagonal)
        self.count += float(fading.sum())
        for name in ("seen", "age", "renewed", "refreshed"):
            setattr(self, name, getattr(self, name) + n_rows)
        if self.means and len(self.span):
            self._add_to_cells(rows, faded, nearest)
        self.sample, self._sampled = self.sample.add(rows, faded, rng), ()
        if is_moved or self.refreshed >= _REFRESH * self.count:
            self._refresh()
        return novelty

    def _fade(self, decay: float) -> None:
        if decay == 1:
            return
        for name in ("count", "n", "energy", "s", "C", "row_sum", "cell_weights", "cell_sums",
                     "cell_counts"):  # fmt: skip
            setattr(self, name, decay * getattr(self, name))
        self.sample = self.sample.fade(np.log(decay))

    # Novelty.

    #: Number of parts of ``pending`` whose novelty was read, and this; not a field, as no state.
    _read = 0, _NONE

    @property
    def pending_novelty(self) -> Floats:
        """Novelty of the rows of the unfinished block."""
        n_parts, novelty = self._read
        if n_parts < len(self.pending):
            rows = stack([part for part, _ in self.pending[n_parts:]])
            values, diagonal = self.span.values(rows)[0], self.span.diagonal(rows)
            if self.n and self.n_components < len(self.span):
                new = self._outside_leading((values @ self._weights).T, diagonal)
            else:
                new = self._novelty(self.span.solve(values), diagonal)
            self._read = len(self.pending), np.concatenate([novelty, new])
        return self._read[1]

    def _novelty(self, Z: Floats, diagonal: Floats) -> Floats:
        if not self.n:
            return np.full(len(diagonal), np.nan)
        if self.n_components >= len(self.span):
            return np.maximum(diagonal - np.einsum("ij,ij->j", Z, Z), 0)
        return self._outside_leading(self._projector[0] @ Z, diagonal)

    def _outside_leading(self, products: Floats, diagonal: Floats) -> Floats:
        """Return the novelty from products with the leading components and, last, the mean."""
        _, offsets, squared_mean = self._projector
        y = products[:-1] - offsets
        lengths = diagonal - 2 * products[-1] + squared_mean
        return np.maximum(lengths - np.einsum("ij,ij->j", y, y), 0)

    @cached_property
    def _projector(self) -> tuple[Floats, Floats, float]:
        """Leading components above the mean, their products with the mean, and its square."""
        mean, components = self.s / self.n, self.U[:, : self.n_components].T
        return np.vstack([components, mean]), (components @ mean)[:, None], float(mean @ mean)

    @cached_property
    def _weights(self) -> Floats:
        """The same as combinations of kernel values with the basis, as columns."""
        return blas.dtrsm(1.0, self.span.factor, self._projector[0].T, lower=1, trans_a=1)

    def _forget_projector(self) -> None:
        for name in ("_projector", "_weights"):
            self.__dict__.pop(name, None)

    def scorer(self, fraction: float | None) -> MomentState:
        """Return the state after all rows, with components of all of them, for ``scores``.

        With a fraction, they are as many as explain this fraction of the variance.
        """
        state = self.current._copy()
        state._forget_projector()
        if fraction is None:
            state._refresh()
            return state
        eigenvalues, U = state.leading(len(state.span))
        explained = np.cumsum(eigenvalues) < fraction * state.total_variance
        number = min(int(np.count_nonzero(explained)) + 1, len(state.span))
        state.n_components = max(number, 1)
        state.U, state.eigenvalues = U[:, :number].copy(), eigenvalues[:number].copy()
        return state

    def scores(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return the novelty of rows, and that of rows whose images are orthogonal to the basis.

        Infinite for rows so far away that kernel values overflow.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = self.kernel.diagonal(rows) + np.float64(shift_of(self.kernel))
            values, _ = self.span.values(rows)
        finite = np.isfinite(diagonal) & np.isfinite(values).all(axis=1)
        novelty, highest = np.full(len(finite), np.inf), np.full(len(finite), np.inf)
        Z = self.span.solve(values[finite])
        novelty[finite] = self._novelty(Z, diagonal[finite])
        highest[finite] = self._novelty(np.zeros_like(Z), diagonal[finite])
        return novelty, highest

    # Basis and cells.

    def _grow(
        self,
        rows: Rows,
        weights: Floats,
        diagonal: Floats,
        outside: Floats,
        rng: np.random.Generator,
    ) -> bool:
        """Add independent rows of the block to the basis; return True if there were any."""
        tol = pivot_tol(rows, exact=self.max_rows is None) * float(diagonal.max(initial=0.0))
        # Features in single precision are not precise enough for smaller ones.
        margin = 16 if rows.dtype == np.float32 else 1
        new = np.flatnonzero((outside > margin * tol) & (weights > 0))
        size = len(self.span)
        if self.max_rows is not None and len(new) > self.max_rows - size:
            chances = outside[new] / outside[new].sum()
            new = np.sort(rng.choice(new, self.max_rows - size, replace=False, p=chances))
        if not len(new):
            return False
        Y = self.span.wide_features(rows[new])
        R = shifted_gram(self.kernel, rows[new], rows[new]) - Y.T @ Y
        chosen, corner = independent_rows((R + R.T) / 2, tol)
        if not len(chosen):
            return False
        number = len(chosen)
        factor = np.zeros((size + number,) * 2, order="F")
        factor[:size, :size], factor[size:, :size] = self.span.factor, Y[:, chosen].T
        factor[size:, size:] = corner
        basis = rows[new[chosen]]
        span = Span(self.kernel, stack((self.span.rows, basis)) if size else basis, factor)
        sums, counts = self.cell_sums, self.cell_counts
        self._set_span(span, np.pad(self.cell_weights, (0, number)), np.eye(size + number, size))
        self.cell_sums = np.pad(sums, ((0, number), (0, 0)))
        self.cell_counts = np.pad(counts, (0, number))
        return True

    def _add_to_cells(self, rows: Floats, weights: Floats, nearest: Indices) -> None:
        shape = len(weights), len(self.span)
        member = sparse.csr_array((weights, nearest, np.arange(len(weights) + 1)), shape=shape).T
        self.cell_sums = self.cell_sums + member.astype(rows.dtype) @ rows
        self.cell_counts = self.cell_counts + member.sum(axis=1)

    @property
    def energy_outside(self) -> float:
        """T = Σ w (k(x, x) − ‖z‖²)."""
        return max(self.energy - float(np.trace(self.C)), 0.0)

    def _follow(self, rows: Rows, outside: Floats, rng: np.random.Generator) -> bool:
        """Renew the basis at increasing intervals and after a drift; return True if it changed."""
        has_drifted = self._drifts(outside)
        fraction = _RENEWAL if self.decay == 1 else _RENEWAL_FADING
        if not self.means:
            # Rows of the stream need not wait until their cells are filled.
            fraction /= 2
        schedule = max(fraction * min(self.count, self.age), self._block_rows)
        if not has_drifted and self.renewed < schedule:
            return False
        span, weights = self._means() if self.means else (self.span, self.cell_weights)
        proposal = self._exchange(span, weights, rows, outside, rng)
        self.renewed, self.excess, self.run = 0, 0.0, 0
        if proposal is None and not self.means:
            return False
        if proposal is not None and has_drifted:
            self.age = 0
        self._move_to(*(proposal or (span, weights)))
        return True

    def _means(self) -> tuple[Span, Floats]:
        """Return the span of the means of the cells, and their weights."""
        totals, used = self.cell_weights + self.cell_counts, self.cell_counts > 0
        B = self.span.rows.astype(np.float64)
        B[used] *= self.cell_weights[used, None]
        B[used] += self.cell_sums[used]
        B[used] /= totals[used, None]
        span, chosen = Span.of(self.kernel, B.astype(self.span.rows.dtype))
        return span, totals[chosen]

    def _drifts(self, outside: Floats) -> bool:
        """Update the CUSUM; return True if the energy outside of V has risen."""
        n_rows, n = len(outside), max(self.n, 1e-300)
        # The rows so far have shaped the basis; new ones lie farther outside.
        level = (1 + len(self.span) / self.count) * self.energy_outside / n
        self.excess = max(0.0, self.excess + float(outside.sum()) - (1 + _SLACK) * level * n_rows)
        self.run = self.run + n_rows if self.excess > 0 else 0
        number = min(self.n_components, len(self.eigenvalues))
        last = max(float(self.eigenvalues[number - 1]), 1e-3 * float(self.eigenvalues.sum()))
        rounding = _DRIFT_STD * float(outside.std()) * np.sqrt(n_rows)
        return self.excess > max(_DRIFT * last * self.count / n, rounding)

    def _exchange(
        self, span: Span, weights: Floats, rows: Rows, outside: Floats, rng: np.random.Generator
    ) -> tuple[Span, Floats] | None:
        """Return a span in which rows of the block replace those that matter least.

        None unless the rows since the CUSUM was zero gain more than the sample loses.
        """
        number = min(max(1, int(_EXCHANGE * len(span))), int(np.count_nonzero(outside)),
                     len(outside) - 1, len(span) - 1)  # fmt: skip
        if number < 1:
            return None
        seeds = rng.choice(len(outside), number, replace=False, p=outside / outside.sum())
        limit = len(span) - number
        basis, weights = self._without_some(span, weights, limit)
        new, chosen = Span.of(self.kernel, stack((basis, rows[seeds])))
        weights = np.append(weights, np.zeros(number))[chosen]
        others = np.ones(len(outside), dtype=bool)
        others[seeds] = False
        rest = rows[others]
        gain = float(np.mean(outside[others] - new.features(rest, new.diagonal(rest))[1]))
        shares = self.sample.scaled_weights(1.0)
        loss = shares @ (self._of_sample(new)[1] - self._of_sample(self.span)[1])
        is_better = gain * min(max(self.run, len(outside)), self.count) > loss * self.count
        return (new, weights) if is_better else None

    #: Spans with the features of the sample and its energy outside; not a field, as no state.
    _sampled = tuple[tuple[Span, Floats, Floats], ...]()

    def _of_sample(self, span: Span) -> tuple[Floats, Floats]:
        """Return the features of the sample, and its energy outside of a span."""
        for other, Z, outside in self._sampled:
            if other is span:
                return Z, outside
        rows = self.sample.rows
        Z, outside, _ = span.features(rows, span.diagonal(rows))
        self._sampled += ((span, Z, outside),)
        return Z, outside

    def _limited(self, span: Span, weights: Floats) -> tuple[Span, Floats]:
        """Return a span of no more than the maximum number of basis rows, and their weights."""
        if self.max_rows is None or len(span) <= self.max_rows:
            return span, weights
        rows, weights = self._without_some(span, weights, self.max_rows)
        span, chosen = Span.of(self.kernel, rows)
        return span, weights[chosen]

    def _without_some(self, span: Span, weights: Floats, limit: int) -> tuple[Rows, Floats]:
        """Return basis rows and their weights, reduced to a limit."""
        values = span.factor @ span.factor.T
        if self.means:
            merged, weights = merge_cells(span.rows, values, weights, len(span) - limit)
            return merged.astype(span.rows.dtype), weights
        vectors, importance = np.eye(len(span)), np.ones(len(span))
        if span is self.span:
            # Rows matter as far as leading components and mean do.
            vectors = np.column_stack([self.U, self.s / self.n])
            vectors = blas.dtrsm(1.0, span.factor, vectors, lower=1, trans_a=1).T
            importance = np.sqrt(np.append(np.maximum(self.eigenvalues, 0), self.n))
        kept = eliminate(values, vectors, importance, limit)
        return span.rows[kept], weights[kept]

    # Moments.

    def _move_to(self, span: Span, cell_weights: Floats) -> None:
        """Change the basis, and the origin of a kernel."""
        M, shift = self._map_to(span)
        self._set_span(span, cell_weights, M, shift, self._energy_change(span.kernel))

    def _set_span(
        self,
        span: Span,
        cell_weights: Floats,
        M: Floats,
        shift: Floats | float = 0.0,
        energy_change: float = 0.0,
    ) -> None:
        """Transfer the moments to another span, onto which Mz + shift projects features z.

        The sample estimates, without bias, the parts of rows outside of the old span; exactly as
        long as it holds all rows.
        """
        shift = np.zeros(len(M)) + shift
        tol = len(span) * pivot_tol(span.rows, exact=self.max_rows is None)
        is_inside = self.energy_outside <= tol * self.energy
        s: Floats = M @ self.s
        C: Floats = M @ self.C @ M.T
        mixed = np.outer(shift, s)
        C = C + mixed + mixed.T + self.n * np.outer(shift, shift)
        s = s + self.n * shift
        self.energy += energy_change
        # Otherwise the coordinates on new directions are zero.
        if not is_inside:
            weights, after = self.sample.scaled_weights(self.n), self._of_sample(span)[0]
            before = M @ self._of_sample(self.span)[0] + shift[:, None]
            parts = [_moments(Z, weights) for Z in (after, before)]
            C = C + parts[0][1] - parts[1][1]
            s = s + parts[0][0] - parts[1][0]
            C = _clip(C, s, self.n, self.energy)
            self.is_proved &= self.sample.is_complete
        moved = M @ self.U
        self.U = _aligned(linalg.qr(moved, mode="economic")[0], moved) if moved.size else moved
        self.span, self.s, self.C, self.cell_weights = span, s, C, cell_weights
        self.cell_sums, self.cell_counts = self._no_sums(len(span)), np.zeros(len(span))
        self.excess, self.run, self._sampled = 0.0, 0, ()

    def _no_sums(self, size: int) -> Floats:
        return np.zeros((size, len(self.row_sum) if self.means else 0))

    def _map_to(self, span: Span) -> tuple[Floats, Floats]:
        """Return M and t with Mz + t the projection, on another span, of the point with features z.

        With origins o and o' of two linear kernels, the point Σ_j c_j (b_j − o), c = L⁻ᵀz, is
        Σ_j c_j (b_j − o') + (1 − Σ_j c_j)(o − o').
        """
        old = self.span
        solved = blas.dtrsm(1.0, old.factor, span.cross(old.rows).T, lower=1)
        M = blas.dtrsm(1.0, span.factor, solved.T, lower=1)
        origin = origin_of(old.kernel)
        if np.array_equal(origin, origin_of(span.kernel)):
            return M, np.zeros(len(M))
        shift = span.wide_features(origin[None])[:, 0]
        sums = blas.dtrsm(1.0, old.factor, np.ones((len(old), 1)), lower=1)[:, 0]
        return M - np.outer(shift, sums), shift

    def _energy_change(self, kernel: Kernel) -> float:
        """Return the change of Σ w k(x, x) with the origin of the kernel."""
        first, second = origin_of(self.kernel), origin_of(kernel)
        if not isinstance(self.kernel, Linear | Cosine) or np.array_equal(first, second):
            return 0.0
        change = (first - second).astype(np.float64)
        coefficients = blas.dtrsm(1.0, self.span.factor, self.s[:, None], lower=1, trans_a=1)[:, 0]
        features = self.kernel.features(self.span.rows).astype(np.float64) - first
        return float(2 * (coefficients @ features) @ change + self.n * (change @ change))

    def _refresh(self) -> None:
        """Refresh the leading components by one step of block Krylov, or exactly."""
        size = len(self.span)
        number = min(self.n_components + _OVERSAMPLES, size)
        self.refreshed = 0
        if self.n_components >= size:
            # All directions are components; which of them lead is decided when they are read.
            variance = float(np.trace(self.C) - self.s @ self.s / max(self.n, 1e-300))
            self.U, self.eigenvalues = np.eye(size), np.full(size, variance / max(size, 1))
            return
        if self.U.shape[1] < number or size <= 3 * number:
            self.eigenvalues, self.U = self.leading(number)
            return
        V = np.hstack([self.U, self._times(self.U)])
        V = linalg.qr(V, mode="economic", check_finite=False)[0]
        values, vectors = linalg.eigh(V.T @ self._times(V), check_finite=False)
        self.eigenvalues = values[::-1][:number].copy()
        self.U = _aligned(V @ vectors[:, ::-1][:, :number], self.U)

    def _times(self, X: Floats) -> Floats:
        return self.C @ X - np.outer(self.s / max(self.n, 1e-300), self.s @ X)

    def leading(self, number: int) -> tuple[Floats, Floats]:
        """Return the leading eigenvalues and components, in coordinates of V."""
        size = len(self.span)
        number = min(number, size)
        if not number:
            return np.zeros(0), np.zeros((size, 0))
        centered = self.C - np.outer(self.s, self.s) / max(self.n, 1e-300)
        values, U = linalg.eigh(centered, subset_by_index=[size - number, size - 1])
        return np.maximum(values[::-1], 0), _aligned(U[:, ::-1], self.U)

    @property
    def total_variance(self) -> float:
        """Σ w ‖Φ(x) − µ‖², with the mean in V."""
        return max(self.energy - float(self.s @ self.s) / max(self.n, 1e-300), 0.0)

    @cached_property
    def solution(self) -> tuple[Subspace, Floats]:
        """Components and mean of all rows in double precision, and the eigenvalues."""
        state, number = self.current, self.n_components
        size = len(state.span)
        if not size:
            # No row has an image other than zero.
            zeros, gram = np.zeros((number + 1, 1)), np.eye(number + 1)
            gram[-1, -1] = 0
            rows = state.sample.rows[:1]
            return Subspace(state.kernel, rows, zeros, zeros, gram), np.zeros(number)
        eigenvalues, U = state.leading(number)
        padding = 0, number - len(eigenvalues)
        mean = state.s / max(state.n, 1e-300)
        vectors = np.column_stack([np.pad(U, ((0, 0), padding)), mean])
        coefficients = blas.dtrsm(1.0, state.span.factor, vectors, lower=1, trans_a=1).T
        # Without the shift of the kernel.
        sums = shift_of(state.kernel) * coefficients.sum(axis=1)[:, None]
        products = (state.span.factor @ vectors).T - sums
        gram = vectors.T @ vectors - sums @ coefficients.sum(axis=1)[None]
        subspace = narrowed(state.kernel, state.span.rows, coefficients, products, gram)
        return subspace, np.pad(eigenvalues, padding)


def from_components(
    empty: MomentState, subspace: Subspace, eigenvalues: Floats, n: int, total_variance: float
) -> MomentState:
    """Return the state of n rows of which components, eigenvalues and mean are known.

    The rows of the subspace take the place of the sample.
    """
    rows = subspace.basis
    span, chosen = Span.of(subspace.kernel, rows)
    if not len(chosen):
        raise InvalidInput(
            f"{subspace.kernel!r} is not positive on the rows of the model: a stream cannot start "
            "from it; choose another kernel."
        )
    state = replace(empty, span=span, is_proved=False, seen=n, count=float(n), n=float(n))
    vectors = span.wide_features(rows) @ subspace.coefficients.astype(np.float64).T
    U, mean = vectors[:, :-1], vectors[:, -1]
    state.s, state.C = n * mean, (U * eigenvalues) @ U.T + n * np.outer(mean, mean)
    state.energy = total_variance + n * float(mean @ mean)
    state.cell_weights = np.full(len(chosen), n / len(chosen))
    state.cell_sums, state.cell_counts = state._no_sums(len(chosen)), np.zeros(len(chosen))
    rng = np.random.default_rng(empty.seed)
    state.sample = empty.sample.add(rows, np.full(rows.shape[0], n / rows.shape[0]), rng)
    state.U, state.eigenvalues = U, eigenvalues
    if state.max_rows is not None and len(span) > state.max_rows:
        state._move_to(*state._limited(span, state.cell_weights))
    return state


def merge(first: MomentState, second: MomentState) -> MomentState:
    """Return the state of the rows of both streams, exact if the bases are equal or unlimited."""
    a, b = first.current._copy(), second.current._copy()
    same_shape = a.span.rows.shape == b.span.rows.shape
    same_origin = np.array_equal(origin_of(a.kernel), origin_of(b.kernel))
    if not (same_shape and same_origin and not (a.span.rows != b.span.rows).sum()):
        span, weights = _joint_span(a, b)
        a._move_to(span, weights)
        b._move_to(span, weights)
    a.is_proved &= b.is_proved
    # Rows since the last renewal are counted again in the next one.
    a.cell_weights, b.cell_weights = a.cell_weights + a.cell_counts, b.cell_weights + b.cell_counts
    a.cell_sums, a.cell_counts = a._no_sums(len(a.span)), np.zeros(len(a.span))
    for name in ("seen", "count", "n", "s", "C", "energy", "row_sum", "cell_weights"):
        setattr(a, name, getattr(a, name) + getattr(b, name))
    a.sample = a.sample.join(b.sample)
    a._refresh()
    return a


def _moments(Z: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return Σwz and Σwzzᵀ in double precision, from features in that of the rows."""
    if (weights != 1).any():
        Z = Z * np.sqrt(weights).astype(Z.dtype)
        return (Z @ np.sqrt(weights)).astype(np.float64), (Z @ Z.T).astype(np.float64)
    return Z.sum(axis=1, dtype=np.float64), (Z @ Z.T).astype(np.float64)


def _clip(C: Floats, s: Floats, n: float, energy: float) -> Floats:
    """Make the centered moments positive semi-definite, and C no larger than all energy."""
    offset = np.outer(s, s) / n
    centered = C - offset
    scale = max(float(np.trace(centered)), 0.0)
    shifted = centered.copy()
    shifted.flat[:: len(C) + 1] += 1e-12 * scale
    if lapack.dpotrf(shifted, lower=1)[1]:
        values, vectors = linalg.eigh(centered)
        centered = (vectors * np.maximum(values, 0)) @ vectors.T
        scale = float(np.trace(centered))
    largest = max(energy - float(np.trace(offset)), 0.0)
    return offset + centered * min(1.0, largest / max(scale, 1e-300))


def _aligned(U: Floats, earlier: Floats) -> Floats:
    """Return components with the signs of earlier ones; new ones with deterministic signs."""
    signs = np.where(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])] < 0, -1.0, 1.0)
    if earlier.size and len(earlier) == len(U):
        overlaps = earlier.T @ U
        nearest = overlaps[np.abs(overlaps).argmax(axis=0), np.arange(U.shape[1])]
        signs = np.where(np.square(nearest) > 0.5, np.sign(nearest), signs)
    return U * signs


def _joint_span(a: MomentState, b: MomentState) -> tuple[Span, Floats]:
    """Return the span of both bases, reduced to the limit, and the weights of its rows."""
    parts = [a.span.rows, b.span.rows]
    weights: Floats = np.append(a.cell_weights + a.cell_counts, b.cell_weights + b.cell_counts)
    origin = origin_of(b.kernel)
    if len(origin):
        # Features of the second stream are relative to its origin.
        parts.append(origin[None].astype(a.span.rows.dtype))
        weights = np.append(weights, 1.0)
    span, chosen = Span.of(a.kernel, stack(parts))
    return a._limited(span, weights[chosen])


def merge_cells(rows: Floats, K: Floats, weights: Floats, number: int) -> tuple[Floats, Floats]:
    """Merge pairs of cells ``number`` times, and return the rows and weights that remain.

    Pairs have the smallest ν_j ν_k/(ν_j + ν_k) ‖Φ(b_j) − Φ(b_k)‖² (Ward's criterion in feature
    space), which is computed again when an eighth of the cells has been merged.
    """
    while number:
        size, positive = len(K), np.maximum(weights, 1e-300)
        squares = np.diagonal(K)
        costs = np.maximum(squares[:, None] + squares - 2 * K, 0)
        costs *= np.outer(positive, positive) / np.add.outer(positive, positive)
        costs[np.tril_indices(size)] = np.inf
        T, is_free, limit = np.eye(size), np.ones(size, dtype=bool), min(number, max(size // 8, 1))
        dropped: list[int] = []
        for pair in costs.argsort(axis=None, kind="stable"):
            j, k = divmod(int(pair), size)
            if is_free[j] and is_free[k]:
                T[j, [j, k]] = positive[[j, k]] / (positive[j] + positive[k])
                is_free[[j, k]] = False
                dropped.append(k)
            if len(dropped) == limit:
                break
        sums = np.where(T > 0, 1.0, 0.0) @ weights
        T, weights = np.delete(T, dropped, axis=0), np.delete(sums, dropped)
        rows, K, number = T @ rows, T @ K @ T.T, number - limit
    return rows, weights
