"""Tiles in single precision, where a loose tolerance leaves room for their rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ikpca.errors import InvalidInput
from ikpca.estimators.components import Components
from ikpca.estimators.magnitudes import check_kernel_values
from ikpca.gram import Centring, ComputedGram, whole
from ikpca.kernels import Floats, FoldingKernel, Frame, Kernel, Rows

__all__ = ["rounding_share", "widened"]

#: Rows of the sample on which single precision is tried out.
_SAMPLE = 256
#: Of the tolerance, what rounding may take.
_ROOM = 0.05


def rounding_share(kernel: Kernel | None, X: Rows, tol: float, seed: int) -> float | None:
    """‖K − K in single precision‖/λ₁ as a sample shows it; None where that is too much for ``tol``.

    Halving the width halves the time of products and exponentials alike. Rows far from the origin,
    or a kernel of which centring takes most away, lose too much, and keep their precision.
    """
    doubles = isinstance(X, np.ndarray) and not isinstance(X, np.memmap) and X.dtype == np.float64
    if not doubles or not isinstance(kernel, FoldingKernel) or tol <= 0:
        return None
    check_kernel_values(kernel, X)
    if not _holds(kernel, X.astype(np.float32)):
        return None
    n_sample = min(_SAMPLE, len(X))
    chosen = np.random.default_rng([seed, 3]).choice(len(X), n_sample, replace=False)
    rows = X[np.sort(chosen)]
    K = _gram(kernel, rows)
    lost = np.linalg.norm(K - _gram(kernel, rows.astype(np.float32)), 2)
    centred = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    held = np.linalg.norm(centred, 2)
    return float(lost / held) if lost <= _ROOM * tol * held else None


def _holds(kernel: Kernel, X: Rows) -> bool:
    """Whether single precision has room for these rows; a sample may miss the one that is far."""
    try:
        check_kernel_values(kernel, X)
    except InvalidInput:
        return False
    return True


def _gram(kernel: Kernel, rows: Floats) -> Floats:
    """K of a few rows, from operands as they are made for all of them."""
    return whole(ComputedGram(kernel, rows, frame=Frame.of(rows))).astype(np.float64)


def widened(found: Components, share: float) -> Components:
    """In double precision again; what single precision may have cost goes into the certificate."""
    certificate = found.certificate
    if certificate is not None:
        certificate = replace(
            certificate,
            residuals=certificate.residuals + share,
            eigenvalue_bounds=certificate.eigenvalue_bounds + share * found.eigenvalues.max(),
        )
    centring = found.centring
    return replace(
        found,
        coefficients=found.coefficients.astype(np.float64),
        projections=found.projections.astype(np.float64),
        eigenvalues=found.eigenvalues.astype(np.float64),
        eigenvectors=found.eigenvectors.astype(np.float64),
        centring=Centring(centring.column_means.astype(np.float64), centring.grand_mean),
        certificate=certificate,
    )
