"""Where A begins."""

from __future__ import annotations

import numpy as np

from ikpca.hebbian.store import Floats

__all__ = ["SPARSE_NONZEROS", "continued_coefficients", "initial_coefficients"]

#: Non-zero coefficients per component of a sparse start.
SPARSE_NONZEROS = 32


def initial_coefficients(kind: str, n_components: int, n_samples: int, seed: int) -> Floats:
    """A ~ N(0, 1/(rl)) (Günter 2006, algorithm 1), or the same with few non-zeros (section 4).

    The variance of the sparse start makes its components as long in feature space as the dense
    one's. The solver divides both by √κ, κ = mean k'(x, x), so that ‖w_i‖² ≈ 1/r for any kernel.
    """
    rng = np.random.default_rng([seed, 0])
    shape = (n_components, n_samples)
    if kind == "random":
        return rng.normal(scale=np.sqrt(1 / (n_components * n_samples)), size=shape)
    A = np.zeros(shape)
    nonzeros = min(SPARSE_NONZEROS, n_samples)
    for row in A:
        chosen = rng.choice(n_samples, size=nonzeros, replace=False)
        row[chosen] = rng.normal(scale=np.sqrt(1 / (n_components * nonzeros)), size=nonzeros)
    return A


def continued_coefficients(projections: Floats, n_components: int, seed: int) -> Floats:
    """A from the projections Y (l, r) of another model: at a solution, A_i = Y_i/λ_i, λ_i = ‖Y_i‖².

    Components that the other model does not have start at random, no longer than its last.
    """
    lengths = np.square(projections).sum(axis=0, dtype=np.float64)
    carrying = lengths > 0
    A = (projections[:, carrying] / lengths[carrying]).T[:n_components]
    fresh = initial_coefficients("random", n_components, len(projections), seed)
    return np.vstack([A, fresh[len(A) :]])
