"""Exact block form of the online update, compiled.

A step of Kim 2003, appendix A, stays in the span of the components w_i, the mean µ and the new
images. So over a block P of patterns that are not yet in the expansion

    W ← T W + t µ + C Φ_P,        µ ← s µ + d Φ_P,

and T, t, C, s, d follow from ⟨w_i, Φ_p⟩, ⟨µ, Φ_p⟩, k(x_p, x_q) and the inner products of W and µ
alone. Meta-descent stacks its companions dW below W. ``kha_reference.online_step`` is the oracle.
Importing this module starts the compiler.
"""

from __future__ import annotations

import numpy as np

from ikpca.solvers.kha_sweep import (
    _advance_log_gains,
    _advance_products,
    _cap,
    _compiled,
    _descend,
    _differentiate,
    _inlined,
    _project,
    _transpose,
)

#: h_i Σ_{k≤i} y_k² above which a step makes a component longer; and the fraction of ‖φ'‖² that
#: replaces a smaller sum, so that a step adds no more than a few unit lengths.
_OVERSHOOT, _MIN_FRACTION = 2.0, 1 / 16
_MAX_HALVINGS = 60
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
def _back_off(h, y, kappa):
    """Halve all gains until no component overshoots; return the number of halvings."""
    halvings = 0
    q = 0.0
    for i in range(len(y)):
        q += y[i] * y[i]
        while not h[i] * max(q, _MIN_FRACTION * kappa) <= _OVERSHOOT:
            if halvings == _MAX_HALVINGS:
                h[:] = 0.0
                return halvings
            halvings += 1
            for k in range(len(y)):
                h[k] *= 0.5
    return halvings


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
def _advance_moments(S, y, weight):
    for i in range(len(y)):
        for j in range(len(y)):
            S[i, j] += weight * (y[i] * y[j] - S[i, j])


@_inlined
def _add_image(T, C, s, d, p, yz, h, xi, with_mean, with_image):
    """Add uφ', φ' = Φ_p − µ, to every row; update the products with µ and Φ_p (last columns)."""
    R, r = len(yz), len(h)
    for i in range(R):
        u = h[i] * yz[i] if i < r else h[i - r] * (yz[i - r] + xi * yz[i])
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
def online_sweep(
    F, G, N, M, with_mean, mean_length, eta, scale, capped, mean_weights,
    S, total, weights, rho, mu, xi, max_step, max_rho,
):  # fmt: skip
    """Run a block of online steps.

    Parameters
    ----------
    F : (R + 1, m) ⟨w_i, Φ_p⟩, with dW below W for meta-descent (R = 2r, else r); ⟨µ, Φ_p⟩ last.
    G : (m, m) k(x_p, x_q).
    N, M : (r, r) ⟨w_i, w_j⟩ and, for meta-descent, ⟨w_i, dw_j⟩; updated in place.
    with_mean : (R,) ⟨w_i, µ⟩, updated in place.  mean_length : ⟨µ, µ⟩.
    eta : (m, r) gains.  scale : factor of the gains.  capped : cap them, or back off.
    mean_weights : (m,) the weight of each new image in the mean.
    S, total : running means of y yᵀ (in place) and ‖φ'‖².  weights : (m,) of each pattern in them.
    rho, mu, xi, max_step, max_rho : meta-descent; rho in place.

    Returns
    -------
    T : (R, R + 1) with t as its last column.  C : (R, m).  s : float.  d : (m,).
    errors : (m,) ‖φ' − Pφ'‖² before each step.  mean_length, total.
    halvings : number of times the gains were halved.
    """
    R, m, r = F.shape[0] - 1, F.shape[1], len(N)
    # Every step also updates two more columns: the current ⟨w_i, µ⟩ and ⟨w_i, Φ_p⟩.
    T, C = np.zeros((R, R + 3)), np.zeros((R, m))
    T[:, :R] = np.eye(R)
    T[:, R + 1] = with_mean
    s, d = np.ones(1), np.zeros(m)
    yz, h, errors = np.empty(R), np.empty(r), np.empty(m)
    L, v = np.zeros((r, r)), np.empty(r)
    work = (np.empty_like(N), np.empty_like(N), np.empty_like(yz))
    size = max(R + 3, m)
    sums = (np.empty(size), np.empty(size), np.empty(size))
    by_pattern = np.ascontiguousarray(F.T)
    y, z = yz[:r], yz[r:]
    halvings = 0
    for p in range(m):
        _project(T[:, : R + 1], by_pattern[p], C, G[p], p, T[:, R + 2])
        yz[:] = T[:, R + 2] - T[:, R + 1]
        along = s[0] * F[R, p] + d[:p] @ G[p, :p]
        kappa = G[p, p] - 2.0 * along + mean_length
        errors[p] = max(kappa - _captured(N, y, L, v), 0.0)
        total += weights[p] * (kappa - total)
        _advance_moments(S, y, weights[p])
        h[:] = scale * 0.5**halvings * eta[p]
        if r < R:
            _advance_log_gains(rho, y, z, M, mu, max_step, max_rho)
            h *= np.exp(rho)
        if capped:
            _cap(h, y, kappa)
        else:
            halvings += _back_off(h, y, kappa)
        if r < R:
            _differentiate(T[:r], T[r:], y, z, h, xi, R + 3, sums)
            _differentiate(C[:r], C[r:], y, z, h, xi, p, sums)
            _advance_products(N, M, yz, h, xi, kappa, work, sums)
        else:
            _descend(T, y, h, R + 3, sums[0])
            _descend(C, y, h, p, sums[0])
            _advance_lengths(N, y, h, kappa, work[0], sums[0])
        _add_image(T, C, s[0], d, p, yz, h, xi, along - mean_length, G[p, p] - along)
        mean_length = _move_mean(T, s, d, p, mean_weights[p], along, mean_length, G[p, p])
    with_mean[:] = T[:, R + 1]
    return T[:, : R + 1].copy(), C, s[0], d, errors, mean_length, total, halvings
