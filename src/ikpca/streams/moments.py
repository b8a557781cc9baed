"""Kernel PCA of a stream from moments on a moving basis of rows.

The images of m basis rows span V. With the Cholesky factor K_BB = LLᵀ, the features
z = L⁻¹ k_B(x) are orthonormal coordinates of the projection of Φ(x) on V, and the weighted
moments n = Σw, s = Σwz and C = Σwzzᵀ determine mean and components in V. The basis is moved to
where the rows are: it grows, its rows become means of their cells, and some are exchanged after a
drift. The state changes at fixed positions of the stream only, so that it does not depend on how
rows are divided into batches.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import blas, lapack

from ikpca.errors import InvalidInput
from ikpca.gram import cross_gram
from ikpca.kernels import Cosine, Floats, Indices, Kernel, Linear, Rows
from ikpca.reduced_sets.select_rows import eliminate
from ikpca.solvers.rayleigh_ritz import deterministic_signs
from ikpca.streams.cells import local_means, merge_cells
from ikpca.streams.sample import Sample, stack
from ikpca.streams.span import (
    Span,
    Stored,
    independent_rows,
    narrowed,
    origin_of,
    pivot_tol,
    shift_of,
    shifted_gram,
)
from ikpca.subspace import Subspace

#: Rows of a block, and of the first one; blocks end at powers of two, then at multiples.
_BLOCK, _FIRST_BLOCK = 256, 32
#: Decrease of the weights within a block at which it ends earlier, for ``forgetting`` < 1.
_MAX_FADE = 0.25
#: The first rows that are kept, also per basis row.
_KEPT, _KEPT_PER_ROW = 1024, 2
#: The basis is renewed when the new rows are this fraction of the stream.
_RENEWAL = 1 / 3
#: Leading components are refreshed when the new rows are this fraction; the oversampling.
_REFRESH, _OVERSAMPLES = 0.05, 8
#: Energy outside of V, relative to an eigenvalue, below which the basis is good enough.
_NEGLIGIBLE = 1e-3
#: Cells with less than this fraction of the mean weight are replaced if the stream forgets.
_DEAD = 0.02
#: Excess of the energy outside of V that does not count as a drift, and that which is one,
#: relative to the last eigenvalue and in standard deviations.
_SLACK, _DRIFT, _DRIFT_STD = 0.1, 0.25, 6.0
#: Fraction of the basis that is exchanged after a drift; then a quarter of it is tried.
_SWAP = 1 / 8
#: Blocks over which the level of the energy outside of V is averaged.
_LEVEL_BLOCKS = 20


@dataclass(eq=False)
class MomentState(Stored):
    """State of a stream: a basis, its cells, the moments of the features, and a sample of rows.

    ``learn`` returns a new state and never changes the arrays of the present one.

    Parameters
    ----------
    span : Span
        Basis rows and their span V.
    n_components : int
        r, for the schedule of renewals and the novelty.
    max_rows : int or None
        Maximum number of basis rows; None keeps all independent rows, which is exact.
    means : bool
        True if basis rows move to the means of their cells, False if they are rows of the stream.
    decay : float
        f²: every row multiplies the weights of earlier rows.
    seed : int

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
    row_sum : ndarray of shape (N,)
        Σ w x.
    cell_weights, cell_sums, cell_counts
        Weight of each basis row; sum and weight of the rows of its cell since the last renewal.
    is_proved : bool
        True if the moments are those of all rows: then eigenvalues are bounded.
    kept, kept_weights
        The first rows, as long as moments are recomputed from them; None afterwards.
    sample : Sample
    U, eigenvalues
        Coordinates of the leading components as of the last refresh, and their eigenvalues.
    pending : tuple of (rows, weights)
        Rows of the unfinished block.
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
    cell_sums: Floats | None = None
    cell_counts: Floats | None = None
    is_proved: bool = True
    kept: Rows | None = None
    kept_weights: Floats = field(default_factory=lambda: np.zeros(0))
    U: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    eigenvalues: Floats = field(default_factory=lambda: np.zeros(0))
    pending: tuple[tuple[Rows, Floats], ...] = ()
    n_pending: int = 0
    # Rows since the last renewal, refresh and swap.
    renewed: int = 0
    refreshed: int = 0
    swapped: int = 0
    # CUSUM of the energy outside of V: its level, the rows that it is averaged over, the excess,
    # the length of the present run, and that at which a swap is tried again.
    level: float = 0.0
    level_rows: int = 0
    excess: float = 0.0
    run: int = 0
    retry: int = 0

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
        if max_rows is not None:
            state.kept = none
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
        rows = [self.span.rows, self.sample.rows, *(each for each, _ in self.pending)]
        if self.kept is not None:
            rows.append(self.kept)
        arrays = [self.span.factor, self.C, self.cell_sums, self.U]
        for each in rows:
            arrays += [each.data, each.indices] if sparse.issparse(each) else [each]
        return sum(int(array.nbytes) for array in arrays if array is not None)

    def with_settings(self, n_components: int, decay: float) -> MomentState:
        """Return the state with another number of components and decay of the weights."""
        if (n_components, decay) == (self.n_components, self.decay):
            return self
        return replace(self, n_components=n_components, decay=decay)

    def _copy(self) -> MomentState:
        """Return a shallow copy without cached properties, in a tenth of the time of replace."""
        state = object.__new__(type(self))
        state.__dict__.update(self.__dict__)
        for name in ("current", "solution"):
            state.__dict__.pop(name, None)
        return state

    def ends_block(self, n_rows: int) -> bool:
        """Return True if a block ends within the next rows."""
        return self.n_pending + n_rows >= self._block_end - self.seen

    # Rows in.

    def learn(self, rows: Rows, weights: Floats) -> tuple[MomentState, Floats]:
        """Return the state after more rows, and the novelty of every row before its block.

        The novelty is ‖Φ(x) − µ‖² less the part in the leading components; NaN in the first block.
        """
        state, novelty, start = self._copy(), list[Floats](), 0
        while (take := state._block_end - state.seen - state.n_pending) <= rows.shape[0] - start:
            part = rows[start : start + take], weights[start : start + take]
            parts = [*state.pending, part]
            n_earlier, state.pending, state.n_pending = state.n_pending, (), 0
            found = state._learn_block(
                stack([each for each, _ in parts]), np.concatenate([each for _, each in parts])
            )
            novelty.append(found[n_earlier:])
            start += take
        if start < rows.shape[0]:
            # A copy, since the caller may write to its array.
            rest = rows[start:].copy(), weights[start:].copy()
            diagonal = state.span.diagonal(rest[0])
            novelty.append(state._novelty(state.span.features(rest[0], diagonal)[0], diagonal))
            state.pending += (rest,)
            state.n_pending += len(rest[1])
            if not state.seen:
                state._check_first_rows()
        return state, np.concatenate(novelty)

    @cached_property
    def current(self) -> MomentState:
        """State in which the rows of the unfinished block have been learned; self is unchanged."""
        if not self.n_pending:
            return self
        state = replace(self)
        rows, weights = zip(*state.pending, strict=True)
        state.pending, state.n_pending = (), 0
        state._learn_block(stack(rows), np.concatenate(weights))
        return state

    @property
    def _block_end(self) -> int:
        size = _BLOCK
        if self.decay < 1:
            size = int(np.clip(_MAX_FADE / (1 - self.decay), 1, _BLOCK))
        return min((self.seen // size + 1) * size, max(_FIRST_BLOCK, 2 * self.seen))

    def _check_first_rows(self) -> None:
        """Raise an error for infinite kernel values among rows for which there is no basis."""
        rows = stack([each for each, _ in self.pending])
        if not np.isfinite(cross_gram(self.kernel, rows, rows)).all():
            raise InvalidInput(
                "kernel values of rows of X are not finite: an update needs finite values; scale "
                "the rows, or remove these."
            )

    def _learn_block(self, rows: Rows, weights: Floats) -> Floats:
        """Learn a block; return the novelty of its rows."""
        rng = np.random.default_rng([self.seed, self.seen])
        n_rows, diagonal = rows.shape[0], self.span.diagonal(rows)
        total_decay = self.decay**n_rows
        faded = weights * self.decay ** np.arange(n_rows - 1.0, -1.0, -1.0)
        Z, outside, nearest = self.span.features(rows, diagonal)
        novelty = self._novelty(Z, diagonal)
        is_full = self.max_rows is not None and len(self.span) >= self.max_rows
        is_new = not is_full and self._grow(rows, faded, diagonal, outside, rng)
        is_new = is_new or (is_full and self._drifts(outside) and self._swap(rows, outside, rng))
        if is_new:
            Z, outside, nearest = self.span.features(rows, diagonal)
        self._fade(total_decay)
        self.seen += n_rows
        self.count += float(np.sum(self.decay ** np.arange(n_rows)))
        self.n += float(faded.sum())
        self.energy += float(faded @ diagonal)
        self.row_sum = self.row_sum + faded @ rows
        s, C = _moments(Z, faded)
        self.s, self.C = self.s + s, self.C + C
        if self.means and len(self.span) and not (is_new and not is_full):
            self._add_to_cells(rows, faded, nearest)
        self.renewed += n_rows
        self.refreshed += n_rows
        self.swapped += n_rows
        self.sample = self.sample.add(rows, faded, rng)
        is_last = self._keep(rows, faded)
        if self.refreshed >= _REFRESH * self.count or len(self.U) < len(self.span):
            self._refresh()
        if is_full and (is_last or self._is_due):
            (self._renew if self.means else self._exchange)(rows, outside, rng)
        if is_last:
            if not self.is_proved:
                self._recompute()
            self.kept, self.kept_weights = None, np.zeros(0)
        return novelty

    def _keep(self, rows: Rows, weights: Floats) -> bool:
        """Keep the first rows of the stream; return True if these are the last of them."""
        if self.kept is None or self.max_rows is None:
            return False
        self.kept = stack((self.kept, rows)) if self.kept.shape[0] else rows
        self.kept_weights = np.append(self.kept_weights, weights)
        return self.seen > max(_KEPT, _KEPT_PER_ROW * self.max_rows)

    def _fade(self, decay: float) -> None:
        if decay == 1:
            return
        self.count *= decay
        self.n *= decay
        self.energy *= decay
        self.s, self.C, self.row_sum = decay * self.s, decay * self.C, decay * self.row_sum
        self.cell_weights, self.kept_weights = decay * self.cell_weights, decay * self.kept_weights
        if self.cell_sums is not None and self.cell_counts is not None:
            self.cell_sums, self.cell_counts = decay * self.cell_sums, decay * self.cell_counts
        self.sample = self.sample.fade(np.log(decay))

    def scorer(self, fraction: float | None) -> MomentState:
        """Return the state after all rows, with components of all of them, for ``scores``.

        With a fraction, they are as many as explain this fraction of the variance.
        """
        state = replace(self.current)
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

    def _novelty(self, Z: Floats, diagonal: Floats) -> Floats:
        number = self.n_components
        if not self.n:
            return np.full(len(diagonal), np.nan)
        if number >= len(self.span):
            return np.maximum(diagonal - np.einsum("ij,ij->j", Z, Z), 0)
        mean, U = self.s / self.n, self.U[:, :number]
        y = U.T @ Z - (U.T @ mean)[:, None]
        lengths = diagonal - 2 * (mean @ Z) + mean @ mean
        return np.maximum(lengths - np.einsum("ij,ij->j", y, y), 0)

    # Basis and cells.

    def _grow(
        self,
        rows: Rows,
        weights: Floats,
        diagonal: Floats,
        outside: Floats,
        rng: np.random.Generator,
    ) -> bool:
        """Add independent rows of the block to the basis; return True if there were any.

        As long as all rows lie in V, their coordinates on the new directions are zero.
        """
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
        factor = np.zeros((size + len(chosen),) * 2, order="F")
        factor[:size, :size], factor[size:, :size] = self.span.factor, Y[:, chosen].T
        factor[size:, size:] = corner
        basis = rows[new[chosen]]
        if size:
            basis = stack((self.span.rows, basis))
        # Earlier rows outside of V have unknown coordinates on the new directions.
        self.is_proved &= self.energy_outside <= len(factor) * tol * max(self.n, 1e-300)
        self._set_span(
            Span(self.kernel, basis, factor),
            np.append(self.cell_weights, weights[new[chosen]]),
        )
        pad = 0, len(chosen)
        self.s, self.C = np.pad(self.s, pad), np.pad(self.C, pad)
        self.U = np.pad(self.U, (pad, (0, 0)))
        return True

    def _add_to_cells(self, rows: Floats, weights: Floats, nearest: Indices) -> None:
        shape = len(weights), len(self.span)
        member = sparse.csr_array((weights, nearest, np.arange(len(weights) + 1)), shape=shape).T
        if self.cell_sums is None or self.cell_counts is None:
            self.cell_sums, self.cell_counts = (
                np.zeros((shape[1], rows.shape[1])),
                np.zeros(shape[1]),
            )
        self.cell_sums = self.cell_sums + member.astype(rows.dtype) @ rows
        self.cell_counts = self.cell_counts + member.sum(axis=1)

    @property
    def _cell_totals(self) -> Floats:
        return (
            self.cell_weights if self.cell_counts is None else self.cell_weights + self.cell_counts
        )

    def _set_span(self, span: Span, cell_weights: Floats) -> None:
        self.span, self.cell_weights = span, cell_weights
        self.cell_sums = self.cell_counts = None
        self.level, self.level_rows, self.excess, self.run, self.retry = 0.0, 0, 0.0, 0, 0

    @property
    def energy_outside(self) -> float:
        """T = Σ w (k(x, x) − ‖z‖²)."""
        return max(self.energy - float(np.trace(self.C)), 0.0)

    @property
    def _last_eigenvalue(self) -> float:
        """The r-th eigenvalue, not much smaller than the sum."""
        number = min(self.n_components, len(self.eigenvalues))
        if not number:
            return 0.0
        return max(float(self.eigenvalues[number - 1]), 1e-3 * float(self.eigenvalues.sum()))

    @property
    def _is_due(self) -> bool:
        """True if the basis should be renewed."""
        size, rows = len(self.span), min(self.count, self.swapped)
        least = min(3 * size, self.count / 2) if self.means else size / 2
        return self.renewed >= max(_RENEWAL * rows, self._block_rows, least)

    @property
    def _is_good_enough(self) -> bool:
        """True if the energy outside of V is too small to change a component."""
        return self.energy_outside <= _NEGLIGIBLE * self._last_eigenvalue

    def _renew(self, rows: Floats, outside: Floats, rng: np.random.Generator) -> None:
        """Move basis rows to the means of their cells; if the stream forgets, replace dead ones."""
        self.renewed = 0
        self._refresh()
        if self._is_good_enough or self.cell_sums is None or self.cell_counts is None:
            return
        totals, used = self._cell_totals, self.cell_counts > 0
        B = self.span.rows.astype(np.float64)
        B[used] *= self.cell_weights[used, None]
        B[used] += self.cell_sums[used]
        B[used] /= totals[used, None]
        dead = np.flatnonzero(totals < _DEAD * self.n / len(totals))
        number = min(len(dead), int(np.count_nonzero(outside)))
        if self.decay < 1 and number:
            dead = np.argsort(totals)[:number]
            seeds = rng.choice(len(rows), number, replace=False, p=outside / outside.sum())
            others = np.delete(B, dead, axis=0)
            B[dead], counts = local_means(self.kernel, rows, others, rows[seeds])
            totals[dead] = counts * self.n / max(self.count, 1e-300)
        self._move_to(B.astype(rows.dtype), totals)

    def _exchange(self, rows: Rows, outside: Floats, rng: np.random.Generator) -> None:
        """Exchange some basis rows for rows of the block if the sample then loses less."""
        self.renewed = 0
        self._refresh()
        number = min(max(1, int(_SWAP * len(self.span))), int(np.count_nonzero(outside)))
        if not number or self._is_good_enough:
            return
        chosen = rng.choice(len(outside), number, replace=False, p=outside / outside.sum())
        proposal = self._proposal(rows, rows[chosen])
        new, _ = Span.of(self.kernel, proposal[0])
        if self._sample_outside(new) < self._sample_outside(self.span):
            swapped = self.swapped
            self._move_to(*proposal)
            self.swapped = swapped

    def _drifts(self, outside: Floats) -> bool:
        """Update the CUSUM; return True if the energy outside of V has risen."""
        n_rows, total = len(outside), float(outside.sum())
        if not self.level_rows:
            # The rows so far have shaped the basis; new ones lie farther outside.
            share = (1 + len(self.span) / self.count) / max(self.n, 1e-300)
            self.level, self.level_rows = share * self.energy_outside, self._block_rows
        self.excess = max(0.0, self.excess + total - (1 + _SLACK) * self.level * n_rows)
        self.run = self.run + n_rows if self.excess > 0 else 0
        self.retry = self.retry if self.run else 0
        change = min(total / n_rows, (1 + 2 * _SLACK) * self.level) - self.level
        self.level += change * n_rows / (self.level_rows + n_rows)
        self.level_rows = min(self.level_rows + n_rows, _LEVEL_BLOCKS * self._block_rows)
        recent = self.renewed + n_rows < min(len(self.span), self.count) / 2
        if recent or self.run < self.retry:
            return False
        least = _DRIFT * self._last_eigenvalue * self.count / max(self.n, 1e-300)
        return self.excess > max(least, _DRIFT_STD * float(outside.std()) * np.sqrt(n_rows))

    @property
    def _block_rows(self) -> int:
        """Rows of a block in the long run."""
        return _BLOCK if self.decay == 1 else int(np.clip(_MAX_FADE / (1 - self.decay), 1, _BLOCK))

    def _swap(self, rows: Rows, outside: Floats, rng: np.random.Generator) -> bool:
        """Exchange basis rows for rows of the block if recent rows gain more than others lose."""
        chances = np.maximum(outside - self.level, 0)
        largest = min(max(1, int(_SWAP * len(self.span))), int(np.count_nonzero(chances)))
        before = self._sample_outside(self.span)
        for number in (largest, largest // 4):
            others = np.ones(len(outside), dtype=bool)
            if number:
                seeds = rng.choice(len(outside), number, replace=False, p=chances / chances.sum())
                others[seeds] = False
            if not number or not others.any():
                break
            proposal = self._proposal(rows, rows[seeds])
            new, _ = Span.of(self.kernel, proposal[0])
            rest = rows[others]
            gain = float((outside[others] - new.features(rest, self.span.diagonal(rest))[1]).mean())
            loss = self._sample_outside(new) - before
            if gain * min(self.run, self.count) > loss * self.count:
                self._move_to(*proposal)
                self.swapped = 0
                return True
        self.retry = 2 * self.run
        return False

    def _proposal(self, rows: Rows, seeds: Rows) -> tuple[Rows, Floats]:
        """Return basis rows, with their weights, in which seeds replace those that matter least."""
        number, per_row = seeds.shape[0], self.n / max(self.count, 1e-300)
        if not self.means:
            self._refresh()
            vectors = np.column_stack([self.U, self.s / self.n])
            coefficients = blas.dtrsm(1.0, self.span.factor, vectors, lower=1, trans_a=1).T
            weights = np.sqrt(np.append(np.maximum(self.eigenvalues, 0), self.n))
            values = self.span.factor @ self.span.factor.T
            kept = eliminate(values, coefficients, weights, len(values) - number)
            basis = stack((self.span.rows[kept], seeds))
            return basis, np.append(self.cell_weights[kept], np.full(number, per_row))
        basis, totals = merge_cells(
            self.span.rows, self.span.factor @ self.span.factor.T, self._cell_totals, number
        )
        means, counts = local_means(self.kernel, rows, basis, seeds)
        basis = np.concatenate([basis, means]).astype(rows.dtype)
        return basis, np.append(totals, counts * per_row)

    def _sample_outside(self, span: Span) -> float:
        """Return the mean energy of the sample outside of a span."""
        rows, weights = self.sample.rows, self.sample.scaled_weights(1.0)
        return float(weights @ span.features(rows, span.diagonal(rows))[1])

    # Moments.

    def _move_to(self, basis: Rows, cell_weights: Floats, kernel: Kernel | None = None) -> None:
        """Change the basis, or the origin of a kernel; recompute, or transfer the moments."""
        old = self.span
        span, chosen = Span.of(kernel or old.kernel, basis)
        self.energy += self._energy_change(span.kernel)
        M, shift = self._map_to(span)
        moved = M @ self.U
        self.U = _aligned(linalg.qr(moved, mode="economic")[0], moved)
        if self.kept is not None:
            self._set_span(span, cell_weights[chosen])
            self._recompute()
            self.level = (1 + len(span) / self.count) * self.energy_outside / self.n
        else:
            rows, weights = self.sample.rows, self.sample.scaled_weights(self.n)
            diagonal = span.diagonal(rows)
            before = M @ old.features(rows, old.diagonal(rows))[0] + shift[:, None]
            after, outside, _ = span.features(rows, diagonal)
            parts = [_moments(each, weights) for each in (after, before)]
            # Unbiased: the sample estimates what the transfer loses.
            s, C = M @ self.s, M @ self.C @ M.T
            mixed = np.outer(shift, s)
            C = C + mixed + mixed.T + self.n * np.outer(shift, shift) + parts[0][1] - parts[1][1]
            s = s + self.n * shift + parts[0][0] - parts[1][0]
            self.s, self.C = s, _clip(C, s, self.n, self.energy)
            self.is_proved = False
            self._set_span(span, cell_weights[chosen])
            self.level = (1 + len(span) / self.count) * float(weights @ outside) / self.n
        self.level_rows = self._block_rows
        self.renewed = 0

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

    def _recompute(self) -> None:
        """Compute the moments of the kept rows, which are all rows so far."""
        assert self.kept is not None
        size = len(self.span)
        self.s, self.C, self.is_proved = np.zeros(size), np.zeros((size, size)), True
        for start in range(0, self.kept.shape[0], _BLOCK):
            rows = self.kept[start : start + _BLOCK]
            Z, *_ = self.span.features(rows, self.span.diagonal(rows))
            s, C = _moments(Z, self.kept_weights[start : start + _BLOCK])
            self.s, self.C = self.s + s, self.C + C
        self._refresh()

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
        U = self.U
        CU = self._times(U)
        W = linalg.qr(CU - U @ (U.T @ CU), mode="economic", check_finite=False)[0]
        V = np.hstack([U, W])
        V = linalg.qr(V, mode="economic", check_finite=False)[0]
        values, vectors = linalg.eigh(V.T @ self._times(V), check_finite=False)
        self.eigenvalues = values[::-1][:number].copy()
        self.U = _aligned(V @ vectors[:, ::-1][:, :number], U)

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
    state = replace(
        empty, span=span, kept=None, is_proved=False, seen=n, count=float(n), n=float(n)
    )
    vectors = span.wide_features(rows) @ subspace.coefficients.astype(np.float64).T
    U, mean = vectors[:, :-1], vectors[:, -1]
    state.s, state.C = n * mean, (U * eigenvalues) @ U.T + n * np.outer(mean, mean)
    state.energy = total_variance + n * float(mean @ mean)
    state.cell_weights = np.full(len(chosen), n / len(chosen))
    rng = np.random.default_rng(empty.seed)
    state.sample = empty.sample.add(rows, np.full(rows.shape[0], n / rows.shape[0]), rng)
    state.U, state.eigenvalues = U, eigenvalues
    if state.max_rows is not None and len(span) > state.max_rows:
        state._move_to(*_reduced_basis(span, state.cell_weights, state))
    return state


def merge(first: MomentState, second: MomentState) -> MomentState:
    """Return the state of the rows of both streams, exact if the bases are equal or unlimited."""
    a, b = replace(first.current), replace(second.current)
    same_shape = a.span.rows.shape == b.span.rows.shape
    same_origin = np.array_equal(origin_of(a.kernel), origin_of(b.kernel))
    if not (same_shape and same_origin and not (a.span.rows != b.span.rows).sum()):
        basis, weights = _joint_basis(a, b)
        a._move_to(basis, weights)
        b._move_to(basis, weights, a.kernel)
    a.is_proved &= b.is_proved
    # Rows since the last renewal are counted again in the next one.
    a.cell_weights, b.cell_weights = a._cell_totals, b._cell_totals
    a.cell_sums = a.cell_counts = None
    for name in ("seen", "count", "n", "s", "C", "energy", "row_sum", "cell_weights"):
        setattr(a, name, getattr(a, name) + getattr(b, name))
    a.sample = a.sample.join(b.sample)
    a.kept = None
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
    signs = deterministic_signs(U.T)
    if earlier.size and len(earlier) == len(U):
        overlaps = earlier.T @ U
        nearest = overlaps[np.abs(overlaps).argmax(axis=0), np.arange(U.shape[1])]
        signs = np.where(np.square(nearest) > 0.5, np.sign(nearest), signs)
    return U * signs


def _joint_basis(a: MomentState, b: MomentState) -> tuple[Rows, Floats]:
    """Return the rows of both bases with their weights, reduced to the limit."""
    parts, weights = [a.span.rows, b.span.rows], np.append(a._cell_totals, b._cell_totals)
    origin = origin_of(b.kernel)
    if len(origin):
        # Features of the second stream are relative to its origin.
        parts.append(origin[None].astype(a.span.rows.dtype))
        weights = np.append(weights, 1.0)
    span, chosen = Span.of(a.kernel, stack(parts))
    return _reduced_basis(span, weights[chosen], a)


def _reduced_basis(span: Span, weights: Floats, state: MomentState) -> tuple[Rows, Floats]:
    """Return the rows of a span and their weights, reduced to the limit of a state."""
    rows, limit = span.rows, state.max_rows
    if limit is None or len(span) <= limit:
        return rows, weights
    values = span.factor @ span.factor.T
    if state.means:
        merged, weights = merge_cells(rows, values, weights, len(span) - limit)
        return merged.astype(rows.dtype), weights
    kept = eliminate(values, np.eye(len(span)), np.sqrt(weights), limit)
    return rows[kept], weights[kept]
