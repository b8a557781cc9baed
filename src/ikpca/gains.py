"""Gain schedules of the Hebbian solvers.

Gains can be multiplied: ``0.05 * inverse_time() * reciprocal_eigenvalues()``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import invalid_parameter

__all__ = [
    "Constant",
    "Gain",
    "InverseTime",
    "MetaDescent",
    "Product",
    "ReciprocalEigenvalues",
    "constant",
    "inverse_time",
    "meta_descent",
    "reciprocal_eigenvalues",
]

Floats: TypeAlias = NDArray[np.floating[Any]]


@runtime_checkable
class Gain(Protocol):
    """Gain per step and component; gains have no state, adaptation takes place in the sweep.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.gains import Gain, inverse_time
    >>> isinstance(inverse_time(), Gain)
    True
    >>> inverse_time().gains(np.array([0.0, 50.0]), 50, np.ones(3)).shape
    (2, 1)
    """

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return η, of a shape that broadcasts to (steps, components).

        Parameters
        ----------
        times : ndarray of shape (steps,)
            Times t: patterns seen before each step.
        n_samples : int
            Number l of rows.
        eigenvalues : ndarray of shape (components,)
            Estimates λ at the start of the pass.
        """


class _Multipliable:
    """Mixin for products such as ``0.05 * inverse_time() * reciprocal_eigenvalues()``."""

    def __mul__(self, other: object) -> Product:
        return Product((self, _as_gain(other)))  # type: ignore[arg-type]

    def __rmul__(self, other: object) -> Product:
        return Product((_as_gain(other), self))  # type: ignore[arg-type]


def _as_gain(value: object) -> Gain:
    if isinstance(value, Gain):
        return value
    if isinstance(value, int | float | np.number):
        return constant(float(value))
    raise TypeError(f"a gain can be multiplied by a number or a gain, not by {value!r}")


@dataclass(frozen=True)
class Constant(_Multipliable):
    """Gain η0 for every component and step, as in KHA (Kim 2003).

    Parameters
    ----------
    value : float
        η0.

    Examples
    --------
    >>> from ikpca.gains import Constant, constant
    >>> constant(0.05) == Constant(0.05)
    True
    """

    value: float

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return η0."""
        return np.full((1, 1), self.value)


@dataclass(frozen=True)
class InverseTime(_Multipliable):
    """Decay τ/(t + τ), with τ = l by default as in the papers.

    Parameters
    ----------
    tau : float, optional
        τ, in patterns; the number of samples by default.

    Examples
    --------
    >>> from ikpca.gains import InverseTime, inverse_time
    >>> inverse_time(20.0) == InverseTime(20.0)
    True
    """

    tau: float | None = None

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return τ/(t + τ), the same for every component."""
        tau = n_samples if self.tau is None else self.tau
        return (tau / (times + tau))[:, None]


@dataclass(frozen=True)
class ReciprocalEigenvalues(_Multipliable):
    """Gains ‖λ‖/λ_i (Günter 2006, eq. 12), or 1/λ_i without the norm.

    Parameters
    ----------
    with_norm : bool, default=True
        Multiply by ‖λ‖.

    Examples
    --------
    >>> from ikpca.gains import ReciprocalEigenvalues, reciprocal_eigenvalues
    >>> reciprocal_eigenvalues() == ReciprocalEigenvalues()
    True
    """

    with_norm: bool = True

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
    """Product of gains, element by element.

    Parameters
    ----------
    factors : tuple of Gain
        The gains; the operator ``*`` converts numbers to constant gains.

    Examples
    --------
    >>> from ikpca.gains import inverse_time
    >>> len((0.05 * inverse_time()).factors)
    2
    """

    factors: tuple[Gain, ...]

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return the product of all factors."""
        values = (factor.gains(times, n_samples, eigenvalues) for factor in self.factors)
        return reduce(np.multiply, values)


def constant(value: float) -> Constant:
    """Create a constant gain, as in KHA.

    Parameters
    ----------
    value : float
        η0, positive.

    Returns
    -------
    Constant

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.gains import constant, inverse_time, reciprocal_eigenvalues
    >>> kha_et = constant(0.05) * inverse_time() * reciprocal_eigenvalues()
    >>> kha_et.gains(np.array([0.0, 10.0]), 10, np.array([4.0, 3.0]))
    array([[0.0625    , 0.08333333],
           [0.03125   , 0.04166667]])
    """
    if not (np.isfinite(value) and value > 0):
        raise invalid_parameter(
            "gain", value, "must be positive and finite", "pass gain='auto' if unsure"
        )
    return Constant(float(value))


def inverse_time(tau: float | None = None) -> InverseTime:
    """Create the search-then-converge schedule τ/(t + τ), with τ = l by default.

    Parameters
    ----------
    tau : float, optional
        τ, positive, in patterns.

    Returns
    -------
    InverseTime

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.gains import inverse_time
    >>> inverse_time().gains(np.array([0.0, 100.0]), 100, np.ones(1)).ravel()
    array([1. , 0.5])
    """
    if tau is not None and not (np.isfinite(tau) and tau > 0):
        raise invalid_parameter("tau", tau, "must be positive and finite", "pass None for l")
    return InverseTime(tau)


def reciprocal_eigenvalues(*, with_norm: bool = True) -> ReciprocalEigenvalues:
    """Create gains reciprocal to the eigenvalues, the "e" of KHA/et.

    Without ‖λ‖, the factor that multiplies them does not depend on the scale of the kernel.

    Parameters
    ----------
    with_norm : bool, default=True
        Multiply by ‖λ‖, as in the paper.

    Returns
    -------
    ReciprocalEigenvalues

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.gains import reciprocal_eigenvalues
    >>> reciprocal_eigenvalues(with_norm=False).gains(np.zeros(1), 10, np.array([4.0, 2.0]))
    array([[0.25, 0.5 ]])
    """
    return ReciprocalEigenvalues(with_norm)


@dataclass(frozen=True)
class MetaDescent:
    """Another gain times e^ρ, with log-gains ρ adapted in the sweep (stochastic meta-descent).

    Parameters
    ----------
    gain : Gain
        The gain that e^ρ multiplies, KHA/et in the paper.
    rate : float
        µ of eq. 16.
    memory : float
        ξ of eq. 19.
    log_gain_init : float
        Initial ρ; 1 in the paper.
    max_log_step, max_log_gain : float
        Bounds on the magnitudes of Δρ per step and of ρ; infinite in the paper.

    Examples
    --------
    >>> from ikpca.gains import constant, meta_descent
    >>> meta_descent(constant(0.05), rate=0.4).log_gain_init
    0.0
    """

    gain: Gain
    rate: float
    memory: float = 0.99
    log_gain_init: float = 0.0
    max_log_step: float = np.inf
    max_log_gain: float = np.inf

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return the inner gain, to which the sweep applies e^ρ."""
        return self.gain.gains(times, n_samples, eigenvalues)


def meta_descent(
    gain: Gain, rate: float, memory: float = 0.99, log_gain_init: float = 0.0
) -> MetaDescent:
    """Create the gain of KHA-SMD from another gain, with unbounded log-gains as in the papers.

    Parameters
    ----------
    gain : Gain
        The gain that e^ρ multiplies, KHA/et in the paper.
    rate : float
        µ of eq. 16; 0 disables the adaptation.
    memory : float, default=0.99
        ξ of eq. 19, from 0 to 1.
    log_gain_init : float, default=0.0
        Initial ρ.

    Returns
    -------
    MetaDescent

    Examples
    --------
    >>> from ikpca.gains import inverse_time, meta_descent, reciprocal_eigenvalues
    >>> kha_smd = meta_descent(0.05 * inverse_time() * reciprocal_eigenvalues(), rate=0.4)
    >>> kha_smd.memory
    0.99
    """
    if not (np.isfinite(rate) and rate >= 0):
        raise invalid_parameter(
            "rate", rate, "must be finite and nonnegative", "pass 0 to disable it"
        )
    if not 0 <= memory <= 1:
        raise invalid_parameter("memory", memory, "must lie in [0, 1]", "the paper uses 0.99")
    if not np.isfinite(log_gain_init):
        raise invalid_parameter("log_gain_init", log_gain_init, "must be finite", "pass 0.0")
    return MetaDescent(gain, float(rate), float(memory), float(log_gain_init))
