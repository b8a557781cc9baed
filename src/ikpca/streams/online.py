"""Online KHA (Kim 2003, appendix A): each pattern is used once and added to the expansion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.gram import cross_gram, tile_slices
from ikpca.gram.centering import NOT_FINITE
from ikpca.kernels import Floats, Kernel
from ikpca.solvers.rayleigh_ritz import deterministic_signs, rayleigh_ritz
from ikpca.subspace import Subspace

#: Patterns per sweep.
_BLOCK = 32
#: Eigenvalues below this fraction of l max k(x, x) are rounding noise.
_DROP = 1e-10
#: Squared length, of components of unit length at the start, that shows that the rule diverges.
_MAX_SQUARE = 100.0


@dataclass(frozen=True, eq=False)
class OnlineState:
    """State of online KHA between two patterns; all but the rows is in double precision."""

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

    @classmethod
    def from_points(cls, kernel: Kernel, points: Floats, weights: Floats) -> OnlineState:
        """Return components of unit length on points, which are not in the mean (appendix A.2).

        λ is still unknown; the mean of k(x, x), an upper bound, makes the first steps short.
        """
        K = _finite_gram(kernel, points, points)
        scales = np.sqrt(np.abs(np.einsum("ij,jk,ik->i", weights, K, weights, optimize=True)))
        coefficients = weights / np.where(scales > 0, scales, 1)[:, None]
        lengths = coefficients @ K @ coefficients.T
        variance = float(np.abs(np.diagonal(K)).mean()) or 1.0
        zeros = np.zeros(len(weights))
        return cls(
            points, coefficients, np.zeros(len(points)), (lengths + lengths.T) / 2, zeros, 0.0,
            variance * np.diag(np.diagonal(lengths)), variance,
        )  # fmt: skip

    @classmethod
    def from_rows(cls, kernel: Kernel, rows: Floats, points: Floats) -> OnlineState:
        """Return a kernel PCA of rows, with points in place of components without variance."""
        n, r = len(rows), len(points)
        K = _finite_gram(kernel, rows, rows)
        means = K.mean(axis=0)
        centered = K - means - means[:, None] + means.mean()
        eigenvalues, vectors = linalg.eigh((centered + centered.T) / 2)
        eigenvalues, vectors = eigenvalues[::-1][:r], vectors[:, ::-1][:, :r]
        positive = eigenvalues > _DROP * max(float(np.abs(np.diagonal(K)).max()), 1e-300) * n
        eigenvalues, vectors = eigenvalues[positive], vectors[:, positive].T
        vectors = vectors * deterministic_signs(vectors)[:, None]
        points = points[len(vectors) :]
        basis = np.vstack([rows, points])
        weights = linalg.block_diag(vectors, np.eye(len(points)))
        state = cls.from_points(kernel, basis, weights)
        total = max(float(np.trace(centered)) / n, 0.0) or state.total_variance
        variances = np.append(eigenvalues / n, np.full(len(points), total))
        mean = np.append(np.full(n, 1 / n), np.zeros(len(points)))
        with_mean = state.coefficients @ (_finite_gram(kernel, basis, rows) @ mean[:n])
        return replace(
            state, mean=mean, with_mean=with_mean, mean_length=float(means.mean()),
            moments=np.diag(variances * np.diagonal(state.lengths)), total_variance=total, seen=n,
        )  # fmt: skip

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def subspace(self, kernel: Kernel, *, ritz: bool) -> tuple[Subspace, Floats]:
        """Return components and mean in the precision of the rows, and the variances λ/l.

        With ``ritz`` the components are orthonormalized and ordered within their span, by the
        running moments.
        """
        r = len(self.lengths)
        T: Floats = np.eye(r)
        if ritz:
            variances, T = rayleigh_ritz(self.lengths, self.moments)
        else:
            lengths = np.diagonal(self.lengths)
            variances = np.diagonal(self.moments) / np.where(lengths > 0, lengths, 1)
        offsets, mean_length = (T @ self.with_mean)[:, None], np.array([[self.mean_length]])
        gram = np.block([[T @ self.lengths @ T.T, offsets], [offsets.T, mean_length]])
        vectors = np.vstack([T @ self.coefficients, self.mean])
        dtype = self.basis.dtype
        subspace = Subspace(kernel, self.basis, vectors.astype(dtype), None, gram.astype(dtype))
        return subspace, np.maximum(variances, 0)

    def learn(
        self,
        kernel: Kernel,
        rows: Floats,
        gain: Callable[[Floats], Floats],
        *,
        automatic: bool,
        memory: float = np.inf,
    ) -> tuple[OnlineState, Floats]:
        """Return the state after rows, in order, and ‖Φ(x) − µ − P(Φ(x) − µ)‖² of each before it.

        Parameters
        ----------
        gain : function of the number of patterns seen before each step
            η; λη/l if it is automatic.
        automatic : bool
            Divide gains by λ/l, and bound them so that no step overshoots.
        memory : float
            Time constant of the mean, λ and the clock of the gains, in patterns.
        """
        state, errors = self, [np.zeros(0)]
        for block in tile_slices(len(rows), _BLOCK):
            times = np.arange(state.seen, state.seen + block.stop - block.start, dtype=np.float64)
            eta = gain(np.minimum(times, memory))
            state, novelty = state._learn_block(kernel, rows[block], times, eta, automatic, memory)
            errors.append(novelty)
        return state, np.concatenate(errors)

    def _learn_block(
        self,
        kernel: Kernel,
        rows: Floats,
        times: Floats,
        eta: Floats,
        automatic: bool,
        memory: float,
    ) -> tuple[OnlineState, Floats]:
        # Imported here because importing it starts the compiler.
        from ikpca.streams.online_sweep import online_sweep

        # Weights of y² grow linearly in time, so that initial transients decay as 1/t².
        weights = np.maximum(2 / (times + 3), min(1.0, 2 / memory))
        # The first pattern only sets the mean.
        weights[times == 0], eta[times == 0] = 0, 0
        vectors = np.vstack([self.coefficients, self.mean])
        lengths, with_mean, moments = (
            self.lengths.copy(),
            self.with_mean.copy(),
            self.moments.copy(),
        )
        T, C, s, d, errors, mean_length, total = online_sweep(
            vectors @ _finite_gram(kernel, self.basis, rows), _finite_gram(kernel, rows, rows),
            lengths, with_mean, self.mean_length, eta, automatic,
            np.maximum(1 / (times + 1), 1 / memory), moments, self.total_variance, weights,
        )  # fmt: skip
        if not np.diagonal(lengths).max() < (np.inf if automatic else _MAX_SQUARE):
            raise InvalidInput(
                NOT_FINITE
                if automatic
                else "rule: the gain is too large and the components "
                "diverged; pass 'kha/et' or a smaller gain; nothing was learned."
            )
        state = OnlineState(
            np.vstack([self.basis, rows]), np.hstack([T @ vectors, C]),
            np.append(s * self.mean, d), lengths, with_mean, mean_length, moments, total,
            self.seen + len(rows),
        )  # fmt: skip
        return state, errors


def random_points(rows: Floats, number: int, seed: int) -> Floats:
    """Draw points with the mean and standard deviation of the rows; for one row, of its size."""
    mean, std = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    if not std.any():
        std = np.full_like(mean, float(np.sqrt(np.mean(np.square(mean)))) or 1.0)
    noise = np.random.default_rng([seed, 4]).normal(size=(number, rows.shape[1]))
    return (mean + std * noise).astype(rows.dtype)


def _finite_gram(kernel: Kernel, X: Floats, Y: Floats) -> Floats:
    """Return kernel values in double precision."""
    values = cross_gram(kernel, X, Y).astype(np.float64)
    if not np.isfinite(values).all():
        raise invalid_parameter(
            "kernel",
            kernel,
            "returned NaN or values that overflow for these rows",
            "scale the rows or correct the kernel; nothing was learned",
        )
    return values
