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
    #: α, one component per row, and ν last.
    vectors: Floats
    #: Inner products of the components w_i and the mean.
    gram: Floats
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
        vectors = np.vstack([weights / np.where(scales > 0, scales, 1)[:, None], np.zeros(len(K))])
        gram = vectors @ K @ vectors.T
        variance = float(np.abs(np.diagonal(K)).mean()) or 1.0
        moments = variance * np.diag(np.diagonal(gram)[:-1])
        return cls(points, vectors, (gram + gram.T) / 2, moments, variance)

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
        weights = linalg.block_diag(vectors, np.eye(len(points)))
        state = cls.from_points(kernel, np.vstack([rows, points]), weights)
        state.vectors[-1, :n] = 1 / n
        state.gram[:, -1] = state.vectors @ _finite_gram(kernel, state.basis, rows).mean(axis=1)
        state.gram[-1] = state.gram[:, -1]
        total = max(float(np.trace(centered)) / n, 0.0) or state.total_variance
        variances = np.append(eigenvalues / n, np.full(len(points), total))
        moments = np.diag(variances * np.diagonal(state.gram)[:-1])
        return replace(state, moments=moments, total_variance=total, seen=n)

    @property
    def n_components(self) -> int:
        """Number of components r."""
        return len(self.moments)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def subspace(self, kernel: Kernel, *, ritz: bool) -> tuple[Subspace, Floats]:
        """Return components and mean in the precision of the rows, and the variances λ/l.

        With ``ritz`` the components are orthonormalized and ordered within their span, by the
        running moments.
        """
        lengths = self.gram[:-1, :-1]
        if ritz:
            variances, T = rayleigh_ritz(lengths, self.moments)
        else:
            squares = np.diagonal(lengths)
            variances = np.diagonal(self.moments) / np.where(squares > 0, squares, 1)
            T = np.eye(len(variances))
        T, dtype = linalg.block_diag(T, 1.0), self.basis.dtype
        vectors, gram = T @ self.vectors, T @ self.gram @ T.T
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
        # Imported here because importing it starts the compiler.
        from ikpca.streams.online_sweep import online_sweep

        state, errors = self, [np.zeros(0)]
        for block in tile_slices(len(rows), _BLOCK):
            new = rows[block]
            times = state.seen + np.arange(len(new), dtype=np.float64)
            eta = gain(np.minimum(times, memory))
            # Weights of y² grow linearly in time, so that initial transients decay as 1/t².
            weights = np.maximum(2 / (times + 3), min(1.0, 2 / memory))
            # The first pattern only sets the mean.
            weights[times == 0], eta[times == 0] = 0, 0
            products = state.vectors @ _finite_gram(kernel, state.basis, new)
            G = np.block([[state.gram, products], [products.T, _finite_gram(kernel, new, new)]])
            moments, mean_weights = state.moments.copy(), np.maximum(1 / (times + 1), 1 / memory)
            A, novelty, total = online_sweep(
                G, eta, automatic, mean_weights, moments, state.total_variance, weights
            )
            errors.append(novelty)
            gram = A @ G @ A.T
            if not np.diagonal(gram)[:-1].max() < (np.inf if automatic else _MAX_SQUARE):
                raise InvalidInput(
                    NOT_FINITE
                    if automatic
                    else "rule: the gain is too large and the components "
                    "diverged; pass 'kha/et' or a smaller gain; nothing was learned."
                )
            old, coordinates = np.split(A, [len(gram)], axis=1)
            state = OnlineState(
                np.vstack([state.basis, new]), np.hstack([old @ state.vectors, coordinates]),
                (gram + gram.T) / 2, moments, total, state.seen + len(new),
            )  # fmt: skip
        return state, np.concatenate(errors)


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
