"""The components of a fitted model and their mean as one expansion on the training rows."""

from __future__ import annotations

import numpy as np

from ikpca.kernels import Kernel
from ikpca.preimages import Expansion
from ikpca.spectra import Projector

__all__ = ["expansion_of"]


def expansion_of(projector: Projector, kernel: Kernel) -> Expansion:
    """Uncentred components w_r = Σ_k (a_rk − mean a_r) Φ(x_k), and the mean of the images last."""
    A, means = projector.coefficients, projector.centring.column_means
    zero_sum = A - A.mean(axis=1, keepdims=True)
    with_mean = zero_sum @ means
    uniform = np.full((1, A.shape[1]), 1 / A.shape[1], dtype=A.dtype)
    gram = np.block(
        [
            [projector.component_gram, with_mean[:, None]],
            [with_mean[None, :], np.array([[projector.centring.grand_mean]])],
        ]
    )
    products = None
    if projector.training_projections is not None:
        # ⟨w, Φ(x)⟩ = ⟨w, Φ'(x)⟩ + ⟨w, mean⟩.
        uncentred = projector.training_projections + with_mean[:, None]
        products = np.vstack([uncentred, means[None, :]])
    return Expansion(
        kernel,
        # A plain view of a memory map: what is taken from it should not claim to lie on disk.
        np.asarray(projector.X_fit),
        np.vstack([zero_sum, uniform]),
        products,
        gram.astype(A.dtype),
    )
