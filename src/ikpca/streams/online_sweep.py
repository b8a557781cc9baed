"""Exact block form of the online update, compiled.

A step of Kim 2003, appendix A, stays in the span of the components w_i, the mean µ and the new
images, so a block of patterns needs only the coordinates on Z = [w_1 … w_r, µ, Φ_1 … Φ_m] and the
inner products of these vectors. ``kha_reference.online_step`` is the oracle.
Importing this module starts the compiler.
"""

from __future__ import annotations

import numpy as np

from ikpca.solvers.kha_pass import _cap, _compiled, _descend, _inlined, _transpose

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


@_compiled
def online_sweep(G, eta, automatic, mean_weights, S, total, weights):
    """Run a block of online steps.

    Parameters
    ----------
    G : (r + 1 + m, r + 1 + m) inner products of Z.
    eta : (m,) gains.  automatic : divide them by the variances, and cap them.
    mean_weights : (m,) the weight of each new image in the mean.
    S, total : running means of y yᵀ (in place) and ‖φ'‖².  weights : (m,) of each pattern in them.

    Returns
    -------
    A : (r + 1, r + 1 + m) components and mean on Z.
    errors : (m,) ‖φ' − Pφ'‖² before each step.  total.
    """
    r, n, m = len(S), len(G), len(eta)
    A, N = np.eye(r + 1, n), G[:r, :r].copy()
    W, nu = A[:r], A[r]
    # ⟨µ, Z⟩ and ⟨µ, µ⟩.
    g, mean_length = G[r].copy(), G[r, r]
    y, h, errors = np.empty(r), np.empty(r), np.empty(m)
    L, v = np.zeros((r, r)), np.empty(r)
    work, sums = np.empty_like(N), np.empty(n)
    for p in range(m):
        j = r + 1 + p
        for i in range(r):
            y[i] = 0.0
            for k in range(j):
                y[i] += W[i, k] * (G[j, k] - g[k])
        kappa = G[j, j] - 2.0 * g[j] + mean_length
        errors[p] = max(kappa - _captured(N, y, L, v), 0.0)
        total += weights[p] * (kappa - total)
        h[:] = eta[p]
        if automatic:
            _divide_by_variances(h, S, N)
            _cap(h, y, kappa)
        S += weights[p] * (np.outer(y, y) - S)
        _advance_lengths(N, y, h, kappa, work, sums)
        _descend(W, y, h, j, sums)
        for i in range(r):
            for k in range(j):
                W[i, k] -= h[i] * y[i] * nu[k]
            W[i, j] = h[i] * y[i]
        a = mean_weights[p]
        mean_length = (1 - a) ** 2 * mean_length + 2 * a * (1 - a) * g[j] + a * a * G[j, j]
        nu *= 1 - a
        nu[j] = a
        g += a * (G[j] - g)
    return A, errors, total
