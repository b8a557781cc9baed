"""Exact block form of the online update, compiled.

A step of Kim 2003, appendix A, stays in the span of the components w_i, the mean µ and the new
images. So over a block P of patterns that are not yet in the expansion

    W ← T W + t µ + C Φ_P,        µ ← s µ + d Φ_P,

and T, t, C, s, d follow from ⟨w_i, Φ_p⟩, ⟨µ, Φ_p⟩, k(x_p, x_q) and the inner products of W and µ
alone. ``kha_reference.online_step`` is the oracle.
Importing this module starts the compiler.
"""

from __future__ import annotations

import numpy as np

from ikpca.solvers.kha_sweep import (
    _cap,
    _compiled,
    _descend,
    _inlined,
    _project,
    _transpose,
)

_EPS, _TINY = np.finfo(np.float64).eps, np.finfo(np.float64).tiny
#: Squared length of a direction of W, relative to its component, below which it is rounding noise.
_DROP = 1e-12


@_inlined
def _captured(N, y, L, v):
    """Return yᵀN⁻¹y, the squared length of the projection of φ' on the components, by Cholesky."""
    total = 0.0
    for i in range(len(y)):
        rest = y[i]
        for j in range(i):
            entry = N[i, j]
            for k in range(j):
                entry -= L[i, k] * L[j, k]
            L[i, j] = entry / L[j, j] if L[j, j] > 0.0 else 0.0
            rest -= L[i, j] * v[j]
        pivot = N[i, i]
        for k in range(i):
            pivot -= L[i, k] * L[i, k]
        L[i, i] = np.sqrt(pivot) if pivot > _DROP * N[i, i] else 0.0
        v[i] = rest / L[i, i] if L[i, i] > 0.0 else 0.0
        total += v[i] * v[i]
    return total


@_inlined
def _advance_lengths(N, y, h, kappa, work, sums):
    """Update N = ⟨w_i, w_j⟩ for w ← Uw + uφ', U = I − diag(h) lt(yyᵀ), u = h∘y."""
    r = len(y)
    _descend(N, y, h, r, sums)
    _transpose(N, work, r)
    _descend(work, y, h, r, sums)
    q = 0.0
    for i in range(r):
        q += y[i] * y[i]
        sums[i] = y[i] * (1.0 - h[i] * q)
    for i in range(r):
        u_i = h[i] * y[i]
        for j in range(r):
            u_j = h[j] * y[j]
            N[i, j] = work[i, j] + sums[i] * u_j + u_i * sums[j] + kappa * u_i * u_j


@_inlined
def _divide_by_variances(h, S, N):
    """Divide gains by the variances S_ii/N_ii, which are bounded below by rounding errors."""
    largest = 0.0
    for i in range(len(h)):
        if N[i, i] > 0.0:
            largest = max(largest, S[i, i] / N[i, i])
    smallest = max(_EPS * (largest if largest > 0.0 else 1.0), _TINY)
    for i in range(len(h)):
        h[i] /= max(S[i, i] / N[i, i] if N[i, i] > 0.0 else 0.0, smallest)


@_inlined
def _add_image(T, C, s, d, p, y, h, with_mean, with_image):
    """Add uφ', φ' = Φ_p − µ, to every row; update the products with µ and Φ_p (last columns)."""
    R = len(y)
    for i in range(R):
        u = h[i] * y[i]
        C[i, p] = u
        for j in range(p):
            C[i, j] -= u * d[j]
        T[i, R] -= u * s
        T[i, R + 1] += u * with_mean
        T[i, R + 2] += u * with_image


@_inlined
def _move_mean(T, s, d, p, a, along, mean_length, own):
    """Set µ ← (1 − a)µ + aΦ_p; return its squared length."""
    R = T.shape[1] - 3
    for i in range(len(T)):
        T[i, R + 1] += a * (T[i, R + 2] - T[i, R + 1])
    s[0] *= 1 - a
    for j in range(p):
        d[j] *= 1 - a
    d[p] = a
    return (1 - a) ** 2 * mean_length + 2 * a * (1 - a) * along + a * a * own


@_compiled
def online_sweep(F, G, N, with_mean, mean_length, eta, automatic, mean_weights, S, total, weights):
    """Run a block of online steps.

    Parameters
    ----------
    F : (r + 1, m) ⟨w_i, Φ_p⟩; ⟨µ, Φ_p⟩ last.
    G : (m, m) k(x_p, x_q).
    N : (r, r) ⟨w_i, w_j⟩, updated in place.
    with_mean : (r,) ⟨w_i, µ⟩, updated in place.  mean_length : ⟨µ, µ⟩.
    eta : (m,) gains.  automatic : divide them by the variances, and cap them.
    mean_weights : (m,) the weight of each new image in the mean.
    S, total : running means of y yᵀ (in place) and ‖φ'‖².  weights : (m,) of each pattern in them.

    Returns
    -------
    T : (r, r + 1) with t as its last column.  C : (r, m).  s : float.  d : (m,).
    errors : (m,) ‖φ' − Pφ'‖² before each step.  mean_length, total.
    """
    r, m = F.shape[0] - 1, F.shape[1]
    # Every step also updates two more columns: the current ⟨w_i, µ⟩ and ⟨w_i, Φ_p⟩.
    T, C = np.zeros((r, r + 3)), np.zeros((r, m))
    T[:, :r] = np.eye(r)
    T[:, r + 1] = with_mean
    s, d = np.ones(1), np.zeros(m)
    y, h, errors = np.empty(r), np.empty(r), np.empty(m)
    L, v = np.zeros((r, r)), np.empty(r)
    work, sums = np.empty_like(N), np.empty(max(r + 3, m))
    by_pattern = np.ascontiguousarray(F.T)
    for p in range(m):
        _project(T[:, : r + 1], by_pattern[p], C, G[p], p, T[:, r + 2])
        y[:] = T[:, r + 2] - T[:, r + 1]
        along = s[0] * F[r, p] + d[:p] @ G[p, :p]
        kappa = G[p, p] - 2.0 * along + mean_length
        errors[p] = max(kappa - _captured(N, y, L, v), 0.0)
        total += weights[p] * (kappa - total)
        h[:] = eta[p]
        if automatic:
            _divide_by_variances(h, S, N)
            _cap(h, y, kappa)
        S += weights[p] * (np.outer(y, y) - S)
        _descend(T, y, h, r + 3, sums)
        _descend(C, y, h, p, sums)
        _advance_lengths(N, y, h, kappa, work, sums)
        _add_image(T, C, s[0], d, p, y, h, along - mean_length, G[p, p] - along)
        mean_length = _move_mean(T, s, d, p, mean_weights[p], along, mean_length, G[p, p])
    with_mean[:] = T[:, r + 1]
    return T[:, : r + 1].copy(), C, s[0], d, errors, mean_length, total
