"""What can be said of a solution without knowing the exact one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Certificate", "certify"]

_Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Certificate:
    """How far a solution can be from the exact one: bounds and estimates.

    Parameters
    ----------
    residuals : ndarray of shape (r,)
        ‖K'v − λv‖/λ₁ for unit v.
    orthonormality_defect : float
        The largest entry of AK'Aᵀ − I, in magnitude.
    eigenvalue_bounds : ndarray of shape (r,)
        An eigenvalue of K' lies within this distance of each λ, for certain (K' is symmetric).
    excess_error : float
        Estimate of E/E_min − 1 from the residuals and the gaps to the spectrum below.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> certificate = KernelPCA(2, kernel="rbf", eigen_solver="dense").fit(X).certificate_
    >>> bool(certificate.residuals.max() < 1e-10)
    True
    """

    residuals: _Floats
    orthonormality_defect: float
    eigenvalue_bounds: _Floats
    excess_error: float

    def __str__(self) -> str:
        return (
            f"residual {self.residuals.max(initial=0.0):.1e}, eigenvalues within "
            f"{self.eigenvalue_bounds.max(initial=0.0):.1e}, orthonormal to "
            f"{self.orthonormality_defect:.1e}, excess error about {self.excess_error:.1e}"
        )


def certify(
    eigenvalues: _Floats,
    residuals: _Floats,
    component_gram: _Floats,
    squared_norm: float,
    next_eigenvalue: float | None = None,
) -> Certificate:
    """Make the certificate.

    Parameters
    ----------
    eigenvalues, residuals : ndarray of shape (r,)
        λ and ‖K'v − λv‖/λ₁.
    component_gram : ndarray of shape (r, r)
        AK'Aᵀ.
    squared_norm : float
        ‖K'‖²_F.
    next_eigenvalue : float, optional
        An estimate of λ_{r+1}; without one, the spectrum is taken to go on as it ends.
    """
    values = np.asarray(eigenvalues, dtype=np.float64)
    relative = np.asarray(residuals, dtype=np.float64)
    bounds = relative * np.abs(values).max(initial=0.0)
    carrying = values > 0
    identity = np.diag(carrying.astype(np.float64))
    return Certificate(
        residuals=relative,
        orthonormality_defect=float(np.abs(component_gram - identity).max(initial=0.0)),
        eigenvalue_bounds=bounds,
        excess_error=_excess(
            values[carrying],
            bounds[carrying],
            (component_gram - identity)[np.ix_(carrying, carrying)],
            squared_norm,
            next_eigenvalue,
        ),
    )


def _excess(
    values: _Floats,
    bounds: _Floats,
    defects: _Floats,
    squared_norm: float,
    next_eigenvalue: float | None,
) -> float:
    """E² − E²_min from what the Ritz values miss, and from what is not orthonormal.

    What a component lacks lies in directions j > r. Coefficients hold λ_i/λ_j times as much of them
    as the component itself, so of the ‖residual‖²/gap by which λ_i would be missed at most the part
    λ_{r+1}/λ_i is; and never more than the residual, whatever the gap. Each miss counts 2λ_i times,
    and a defect D of AK'Aᵀ adds ‖Λ^½ D Λ^½‖².
    """
    if not len(values):
        return 0.0
    below = _continued(values) if next_eigenvalue is None else next_eigenvalue
    gaps = np.maximum(values - below, bounds)
    misses = np.divide(bounds * bounds, gaps, out=np.zeros_like(bounds), where=gaps > 0)
    misses *= np.minimum(max(below, 0.0) / values, 1.0)
    roots = np.sqrt(values)
    more = 2 * float(values @ misses)
    more += float(np.sum(np.square(roots[:, None] * defects * roots)))
    # Rounding may leave less of ‖K'‖² than the components hold of it.
    squared_norm = max(squared_norm, float(np.sum(values * values)))
    left = squared_norm - float(np.sum(values * values))
    if squared_norm == 0:
        return 0.0
    if left <= 1e-20 * squared_norm:
        return float(np.sqrt(more / squared_norm))
    return float(np.sqrt(1 + more / left) - 1)


def _continued(values: _Floats) -> float:
    """λ_{r+1}, were the last ratio to repeat itself."""
    if len(values) < 2:
        return 0.0
    return float(values[-1] * min(values[-1] / values[-2], 1 - 1e-3))
