"""Certificate of Hebbian components, from their projections on the training rows.

The coefficients A of a Hebbian run contain noise, and a part in the null space of K' that changes
nothing in feature space. The vectors (AK')_i lie in the range of K' and are one power of K' closer
to its eigenvectors, so residuals are those of u_i = (AK')_i/‖(AK')_i‖.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ikpca.gram import CenteredGram
from ikpca.kernels import Floats
from ikpca.metrics import relative_residuals
from ikpca.solvers.rayleigh_ritz import Certificate, certify, excess_error, rayleigh_ritz

#: Random vectors that search the complement of the components for larger eigenvalues.
N_PROBES = 16


def certify_projections(
    gram: CenteredGram, coefficients: Floats, projections: Floats, eigenvalues: Floats, seed: int
) -> Certificate:
    """Compute the certificate by two products with K'.

    The first product gives the residuals. A Rayleigh–Ritz step on A, the projections and two power
    iterations of random vectors gives estimates of the exact eigenvalues, and with them E_min: the
    residuals alone would not reveal a leading component that is missing.

    Parameters
    ----------
    gram : CenteredGram
    coefficients, projections : ndarray of shape (r, l)
        A and AK'.
    eigenvalues : ndarray of shape (r,)
    seed : int
        Seed of the random vectors.
    """
    eps = float(np.finfo(gram.dtype).eps)
    A, Y = (np.asarray(part, dtype=np.float64) for part in (coefficients, projections))
    U = unit_rows(Y)
    probes: Floats = np.random.default_rng([seed, 4]).normal(size=(gram.n_samples, N_PROBES))
    KU, probes = np.split(_multiply(gram, np.hstack([U.T, probes])), [len(U)])
    probes = unit_rows(probes - (probes @ U.T) @ U)
    basis = np.vstack([A, U, probes])
    images = np.vstack([Y, KU, _multiply(gram, probes.T)])
    if not np.isfinite(images).all():
        # Kernel values that are not finite: the coefficients still give a bound.
        bound = relative_residuals(A, Y, eigenvalues)
        return certify(eigenvalues, bound, A @ Y.T, gram.squared_norm_estimate, eps=eps)
    N = basis @ images.T
    ritz_values = rayleigh_ritz((N + N.T) / 2, images @ images.T, drop=max(1e-12, 10 * eps))[0]
    leading, following = ritz_values[: len(Y)], float(ritz_values[len(Y)])
    certificate = certify(
        eigenvalues,
        residual_norms(U, KU, eigenvalues),
        A @ Y.T,
        gram.squared_norm_estimate,
        following,
        of_projections=True,
        eps=eps,
    )
    # E² − E²_min = Σμ² − 2 tr(YK'Yᵀ) + ‖YYᵀ‖², less than which is rounding error.
    total = float(np.sum(leading * leading))
    captured = float(np.square(Y).sum(axis=1) @ np.einsum("il,il->i", U, KU))
    increase = total - 2 * captured + float(np.sum(np.square(Y @ Y.T)))
    if increase <= 100 * eps * total:
        return certificate
    estimate = excess_error(increase, total, gram.squared_norm_estimate, eps)
    return replace(certificate, excess_error=max(certificate.excess_error, estimate))


def residual_norms(U: Floats, KU: Floats, eigenvalues: Floats) -> Floats:
    """Return ‖K'u_i − λ_i u_i‖/λ_1 for the rows u_i of U."""
    largest = float(np.abs(eigenvalues).max(initial=0.0))
    norms = np.linalg.norm(KU - eigenvalues[:, None] * U, axis=1)
    return norms / largest if largest > 0 else np.zeros_like(norms)


def unit_rows(Y: Floats) -> Floats:
    """Return the rows scaled to unit length; rows of zeros stay zero."""
    lengths = np.linalg.norm(Y, axis=1, keepdims=True)
    return np.divide(Y, lengths, out=np.zeros_like(Y), where=lengths > 0)


def _multiply(gram: CenteredGram, V: Floats) -> Floats:
    """Return (K'V)ᵀ in double precision."""
    return gram.multiply(V.astype(gram.dtype)).T.astype(np.float64)
