"""Exact block form of the Hebbian update, compiled.

A step multiplies A from the left by an r×r matrix and adds to one column. So over a block P

    A ← T A + C E_P,        AK' ← T AK' + C K'[P, :],

and T, C follow from Y = (AK')[:, P] and G = K'[P, P] alone. The notation is that of the papers;
``kha_reference`` is the oracle. Importing this module starts the compiler, so import it on use.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Returned by a sweep in place of the step at which it stopped.
OK = -1
#: Sums may be reordered for vector instructions; infinities and NaN keep their meaning.
_MATH = {"reassoc", "contract", "nsz"}
_compiled = njit(cache=True, fastmath=_MATH, nogil=True)
#: Inlined because a called function may be compiled in two ways, depending on whether its caller
#: was compiled or read from the cache, and their last bits differ.
_inlined = njit(cache=True, fastmath=_MATH, nogil=True, forceinline=True)


@_inlined
def _descend(X, y, h, columns, total):
    """Set X ← X − diag(h) lt(yyᵀ) X on the first columns by a running sum over rows."""
    total[:columns] = 0.0
    for i in range(len(y)):
        step = h[i] * y[i]
        for j in range(columns):
            total[j] += y[i] * X[i, j]
            X[i, j] -= step * total[j]


@_inlined
def _project(T, Y_s, C, G_s, s, y):
    """Set y = T Y_s + C G_s, the projections of pattern s before step s."""
    for i in range(len(y)):
        value = 0.0
        for k in range(T.shape[1]):
            value += T[i, k] * Y_s[k]
        for j in range(s):
            value += C[i, j] * G_s[j]
        y[i] = value


@_inlined
def _squared_length(y):
    total = 0.0
    for i in range(len(y)):
        total += y[i] * y[i]
    return total


@_inlined
def _cap(h, y, diagonal):
    """Set h_i ← min(h_i, 1/max(k'(p,p), Σ_{k≤i} y_k²)), so that no row overshoots."""
    q = 0.0
    for i in range(len(y)):
        q += y[i] * y[i]
        bound = max(diagonal, q)
        if h[i] * bound > 1.0:
            h[i] = 1.0 / bound


@_compiled
def plain_sweep(Y, G, eta, capped, limits):
    """Run KHA, KHA/t or KHA/et over a block.

    Parameters
    ----------
    Y : (r, m) projections at the block's start.  G : (m, m) K'[P, P].
    eta : (m, r) gains.  capped : cap them if True.
    limits : (m,) upper bounds on ‖y‖² of each pattern.

    Returns
    -------
    T : (r, r), C : (r, m), and the step at which ‖y‖² exceeded its limit (or OK).
    """
    r, m = Y.shape
    T, C = np.eye(r), np.zeros((r, m))
    y, h, total = np.empty(r), np.empty(r), np.empty(max(r, m))
    by_pattern = np.ascontiguousarray(Y.T)
    for s in range(m):
        _project(T, by_pattern[s], C, G[s], s, y)
        if not _squared_length(y) <= limits[s]:
            return T, C, s
        h[:] = eta[s]
        if capped:
            _cap(h, y, G[s, s])
        _descend(T, y, h, r, total)
        _descend(C, y, h, s, total)
        for i in range(r):
            C[i, s] = h[i] * y[i]
    return T, C, OK


@_inlined
def _advance_log_gains(rho, y, z, M, mu, max_step, max_rho):
    """Set ρ ← ρ + µ diag(ΓK'Bᵀ) (eq. 16).

    With M = AK'Bᵀ, the i-th entry of the diagonal is y_i(z_i − Σ_{k≤i} y_k M_ki).
    """
    for i in range(len(y)):
        pull = z[i]
        for k in range(i + 1):
            pull -= y[k] * M[k, i]
        change = mu * y[i] * pull
        change = min(max(change, -max_step), max_step)
        rho[i] = min(max(rho[i] + change, -max_rho), max_rho)


@_inlined
def _differentiate(A, B, y, z, h, xi, columns, sums):
    """Apply the parts of eqs. 15 and 21 that multiply from the left.

    (A, B) ← (UA, ξUB + VA), U = I − D lt(yyᵀ), V = −D[lt(yyᵀ) + ξ lt(zyᵀ + yzᵀ)], D = diag(h), by
    running sums of yA, zA and yB.
    """
    yA, zA, yB = sums
    yA[:columns] = 0.0
    zA[:columns] = 0.0
    yB[:columns] = 0.0
    for i in range(len(y)):
        step_y, step_z = h[i] * y[i], xi * h[i] * z[i]
        for j in range(columns):
            a, b = A[i, j], B[i, j]
            yA[j] += y[i] * a
            zA[j] += z[i] * a
            yB[j] += y[i] * b
            A[i, j] = a - step_y * yA[j]
            B[i, j] = xi * b - step_y * (yA[j] + xi * yB[j]) - step_z * yA[j] - xi * step_y * zA[j]


@_inlined
def _transpose(source, target, r):
    for i in range(r):
        for j in range(r):
            target[j, i] = source[i, j]


@_inlined
def _advance_products(N, M, yz, h, xi, diagonal, work, sums):
    """Update N = AK'Aᵀ and M = AK'Bᵀ.

    A ← UA + u e_pᵀ, B ← VA + ξUB + v e_pᵀ with u = h∘y, v = h∘(y + ξz). Transposed, the map on the
    right factor is the same running sum; the new column adds A k'_p = y and B k'_p = z.
    """
    r = len(h)
    y, z = yz[:r], yz[r:]
    right_N, right_M, moved = work
    total, _, _ = sums
    _transpose(N, right_N, r)
    _transpose(M, right_M, r)
    _differentiate(right_N, right_M, y, z, h, xi, r, sums)
    _transpose(right_N, N, r)
    _transpose(right_M, M, r)
    _descend(N, y, h, r, total)
    _descend(M, y, h, r, total)
    moved[:] = yz
    _differentiate(moved[:r].reshape(r, 1), moved[r:].reshape(r, 1), y, z, h, xi, 1, sums)
    for i in range(r):
        u_i, Uy_i = h[i] * y[i], moved[i]
        for j in range(r):
            u_j, v_j = h[j] * y[j], h[j] * (y[j] + xi * z[j])
            N[i, j] += Uy_i * u_j + u_i * moved[j] + diagonal * u_i * u_j
            M[i, j] += Uy_i * v_j + u_i * moved[r + j] + diagonal * u_i * v_j


@_compiled
def meta_sweep(YZ, G, eta, capped, limits, N, M, rho, mu, xi, max_step, max_rho):
    """Run KHA-SMD over a block; A and B are stacked, in the basis [A0; B0; E_P].

    Parameters
    ----------
    YZ : (2r, m) projections of A and B.  G, eta, capped, limits : as in ``plain_sweep``.
    N, M : (r, r) AK'Aᵀ and AK'Bᵀ, updated in place.
    rho : (r,) log-gains.
    mu, xi, max_step, max_rho : rate, memory, bounds on |Δρ| and |ρ|.

    Returns
    -------
    T : (2r, 2r), C : (2r, m), the step that diverged (or OK), and the new ρ.
    """
    r, m = YZ.shape[0] // 2, YZ.shape[1]
    T, C = np.eye(2 * r), np.zeros((2 * r, m))
    rho = rho.copy()
    yz, h = np.empty(2 * r), np.empty(r)
    size = max(len(T), m)
    sums = (np.empty(size), np.empty(size), np.empty(size))
    work = (np.empty_like(N), np.empty_like(N), np.empty_like(yz))
    by_pattern = np.ascontiguousarray(YZ.T)
    y, z = yz[:r], yz[r:]
    for s in range(m):
        _project(T, by_pattern[s], C, G[s], s, yz)
        if not (_squared_length(y) <= limits[s] and np.isfinite(_squared_length(z))):
            return T, C, s, rho
        _advance_log_gains(rho, y, z, M, mu, max_step, max_rho)
        for i in range(r):
            h[i] = eta[s, i] * np.exp(rho[i])
        if capped:
            _cap(h, y, G[s, s])
        _differentiate(T[:r], T[r:], y, z, h, xi, 2 * r, sums)
        _differentiate(C[:r], C[r:], y, z, h, xi, s, sums)
        for i in range(r):
            C[i, s] = h[i] * y[i]
            C[r + i, s] = h[i] * (y[i] + xi * z[i])
        _advance_products(N, M, yz, h, xi, G[s, s], work, sums)
    return T, C, OK, rho
