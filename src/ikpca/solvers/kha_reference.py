"""Update rules of the papers for one pattern: the oracle of the compiled sweeps."""

from __future__ import annotations

import numpy as np

from ikpca.kernels import Floats


def hebbian_step(A: Floats, k_p: Floats, p: int, h: Floats | float) -> Floats:
    """Update A for one pattern (Günter 2006, eqs. 7–11; Kim 2003, eq. 10).

    A ← A + diag(h)[y e_pᵀ − lt(yyᵀ)A], y = A k'_p.
    """
    return A + np.reshape(h, (-1, 1)) * _gamma(A, A @ k_p, p)


def hebbian_step_with_products(
    A: Floats, AK: Floats, k_p: Floats, p: int, h: Floats | float
) -> tuple[Floats, Floats]:
    """Update A as ``hebbian_step``, and AK' for the estimate of λ (eqs. 13, 17 and 18)."""
    y, h = AK[:, p], np.reshape(h, (-1, 1))
    return A + h * _gamma(A, y, p), AK + h * _gamma_K(AK, y, k_p)


def meta_step(
    A: Floats, B: Floats, AK: Floats, rho: Floats, k_p: Floats, p: int,
    eta: Floats, mu: float, xi: float,
) -> tuple[Floats, Floats, Floats, Floats]:  # fmt: skip
    """Update ρ (eq. 16), B (eq. 21), A (eq. 15) and AK' (eqs. 17, 18) of KHA-SMD."""
    y, z = A @ k_p, B @ k_p
    gamma = _gamma(A, y, p)
    gamma_K = _gamma_K(AK, y, k_p)
    rho = rho + mu * np.einsum("il,il->i", gamma_K, B)
    h = (np.exp(rho) * eta)[:, None]
    d_gamma = _gamma(B, y, p, drive=z) - np.tril(np.outer(z, y) + np.outer(y, z)) @ A
    return A + h * gamma, xi * B + h * (gamma + xi * d_gamma), AK + h * gamma_K, rho


def online_step(
    alpha: Floats, nu: Floats, K: Floats, k_x: Floats, h: Floats | float, weight: float
) -> tuple[Floats, Floats]:
    """Add a pattern x to the expansion (Kim 2003, appendix A): return α and ν, uncentered.

    y = α(k_x − Kν), α ← [α − h(lt(yyᵀ)α + yνᵀ), hy], then ν ← (1 − weight)ν + weight·e_x. These are
    eqs. 15–17 without the initial points in the sums. K and k_x are kernel values of the expansion.
    """
    y, h = alpha @ (k_x - K @ nu), np.reshape(h, (-1, 1))
    updated = alpha - h * (np.tril(np.outer(y, y)) @ alpha + np.outer(y, nu))
    return np.hstack([updated, h * y[:, None]]), np.append((1 - weight) * nu, weight)


def _gamma(A: Floats, y: Floats, p: int, drive: Floats | None = None) -> Floats:
    """Return Γ = y e_pᵀ − lt(yyᵀ)A (eq. 9); ``drive`` replaces the y of the first term."""
    gamma = -np.tril(np.outer(y, y)) @ A
    gamma[:, p] += y if drive is None else drive
    return gamma


def _gamma_K(AK: Floats, y: Floats, k_p: Floats) -> Floats:
    """Return ΓK' = y k'_pᵀ − lt(yyᵀ)AK' (eq. 17)."""
    return np.outer(y, k_p) - np.tril(np.outer(y, y)) @ AK
