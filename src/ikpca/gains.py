"""Gain schedules of the Hebbian solvers.

Gains can be multiplied: ``0.05 * InverseTime() * ReciprocalEigenvalues()``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import Number, check_parameters

__all__ = [
    "Constant",
    "Gain",
    "InverseTime",
    "MetaDescent",
    "Product",
    "ReciprocalEigenvalues",
]

Floats: TypeAlias = NDArray[np.floating[Any]]


@runtime_checkable
class Gain(Protocol):
    """Gain per step and component; gains have no state, adaptation takes place in the sweep.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.gains import Gain, InverseTime
    >>> isinstance(InverseTime(), Gain)
    True
    >>> InverseTime().gains(np.array([0.0, 50.0]), 50, np.ones(3)).shape
    (2, 1)
    """

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return η, of a shape that broadcasts to (steps, components).

        Parameters
        ----------
        times : ndarray of shape (steps,)
            Times t: rows seen before each step.
        n_samples : int
            Number l of rows.
        eigenvalues : ndarray of shape (components,)
            Estimates λ at the start of the pass.
        """


class _Multipliable:
    """Mixin for products such as ``0.05 * InverseTime() * ReciprocalEigenvalues()``."""

    def __mul__(self, other: object) -> Product:
        return Product((self, _as_gain(other)))  # type: ignore[arg-type]

    def __rmul__(self, other: object) -> Product:
        return Product((_as_gain(other), self))  # type: ignore[arg-type]


def _as_gain(value: object) -> Gain:
    if isinstance(value, Gain):
        return value
    if isinstance(value, int | float | np.number):
        return Constant(float(value))
    raise TypeError(f"a gain can be multiplied by a number or a gain, not by {value!r}")


@dataclass(frozen=True)
class Constant(_Multipliable):
    """Gain η0 for every component and step, as in KHA (Kim 2003).

    Parameters
    ----------
    value : float
        η0, positive.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.gains import Constant, InverseTime, ReciprocalEigenvalues
    >>> kha_et = Constant(0.05) * InverseTime() * ReciprocalEigenvalues()
    >>> kha_et.gains(np.array([0.0, 10.0]), 10, np.array([4.0, 3.0]))
    array([[0.0625    , 0.08333333],
           [0.03125   , 0.04166667]])
    """

    value: float

    def __post_init__(self) -> None:
        rule, remedy = "must be positive and finite", "pass gain='auto' if unsure"
        Number(rule, remedy, low=0, open_low=True).check("gain", self.value)

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return η0."""
        return np.full((1, 1), self.value, dtype=np.float64)


@dataclass(frozen=True)
class InverseTime(_Multipliable):
    """Search-then-converge schedule τ/(t + τ), with τ = l by default as in the papers.

    Parameters
    ----------
    tau : float, optional
        τ, positive, in rows; the number of samples by default.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.gains import InverseTime
    >>> InverseTime().gains(np.array([0.0, 100.0]), 100, np.ones(1)).ravel()
    array([1. , 0.5])
    """

    tau: float | None = None

    def __post_init__(self) -> None:
        if self.tau is not None:
            rule = "must be positive and finite"
            Number(rule, "pass None for l", low=0, open_low=True).check("tau", self.tau)

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return τ/(t + τ), the same for every component."""
        tau = n_samples if self.tau is None else self.tau
        return (tau / (times + tau))[:, None]


@dataclass(frozen=True)
class ReciprocalEigenvalues(_Multipliable):
    """Gains ‖λ‖/λ_i (Günter 2006, eq. 12), the "e" of KHA/et, or 1/λ_i without the norm.

    Without ‖λ‖, the factor that multiplies them does not depend on the scale of the kernel.

    Parameters
    ----------
    with_norm : bool, default=True
        Multiply by ‖λ‖, as in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.gains import ReciprocalEigenvalues
    >>> ReciprocalEigenvalues(with_norm=False).gains(np.zeros(1), 10, np.array([4.0, 2.0]))
    array([[0.25, 0.5 ]])
    """

    with_norm: bool = field(default=True, kw_only=True)

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return the reciprocals, the same for every step.

        Eigenvalues are clipped below at the rounding error of the largest, as the gain of a
        component without variance would be infinite.
        """
        largest = float(np.max(eigenvalues, initial=0.0)) or 1.0
        smallest = max(np.finfo(np.float64).eps * largest, np.finfo(np.float64).tiny)
        clipped = np.maximum(eigenvalues, smallest)
        norm = np.linalg.norm(clipped) if self.with_norm else 1.0
        return (norm / clipped)[None, :]


@dataclass(frozen=True)
class Product(_Multipliable):
    """Product of gains, element by element; ``*`` converts numbers to constant gains."""

    factors: tuple[Gain, ...]

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return the product of all factors."""
        values = (factor.gains(times, n_samples, eigenvalues) for factor in self.factors)
        return reduce(np.multiply, values)


_META_RULES = {
    "rate": Number("must be finite and nonnegative", "pass 0 to disable it", low=0),
    "decay": Number("must lie in [0, 1]", "the paper uses 0.99", low=0, high=1),
    "log_gain_init": Number("must be finite", "pass 0.0"),
}


@dataclass(frozen=True)
class MetaDescent:
    """Gain of KHA-SMD: another gain times e^ρ, with log-gains ρ adapted in the sweep.

    Parameters
    ----------
    gain : Gain
        The gain that e^ρ multiplies, KHA/et in the paper.
    rate : float
        µ of eq. 16; 0 disables the adaptation.
    decay : float, default=0.99
        ξ of eq. 19, from 0 to 1.
    log_gain_init : float, default=0.0
        Initial ρ; 1 in the paper.
    max_log_step, max_log_gain : float, default=inf
        Bounds on the magnitudes of Δρ per step and of ρ; infinite in the paper.

    Examples
    --------
    >>> from ikpca.gains import InverseTime, MetaDescent, ReciprocalEigenvalues
    >>> kha_smd = MetaDescent(0.05 * InverseTime() * ReciprocalEigenvalues(), rate=0.4)
    >>> kha_smd.decay
    0.99
    """

    gain: Gain
    rate: float
    decay: float = 0.99
    log_gain_init: float = 0.0
    max_log_step: float = np.inf
    max_log_gain: float = np.inf

    def __post_init__(self) -> None:
        check_parameters(self, _META_RULES)
        for name in ("rate", "decay", "log_gain_init"):
            # The compiled sweep would be compiled again for other types.
            object.__setattr__(self, name, float(getattr(self, name)))

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return the inner gain, to which the sweep applies e^ρ."""
        return self.gain.gains(times, n_samples, eigenvalues)
