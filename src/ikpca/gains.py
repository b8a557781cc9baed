"""Gains of the Hebbian solvers.

Gains multiply: ``0.05 * inverse_time() * reciprocal_eigenvalues()``.
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
    """A gain per step and component. Gains hold no state; what adapts lives in the sweep.

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
            t as the clock shows it: patterns seen before each step.
        n_samples : int
            The number l of rows.
        eigenvalues : ndarray of shape (components,)
            λ as estimated at the start of the pass.
        """


class _Factor:
    """Products of gains, written ``0.05 * inverse_time() * reciprocal_eigenvalues()``."""

    def __mul__(self, other: object) -> Product:
        return Product((self, _as_gain(other)))  # type: ignore[arg-type]

    def __rmul__(self, other: object) -> Product:
        return Product((_as_gain(other), self))  # type: ignore[arg-type]


def _as_gain(value: object) -> Gain:
    if isinstance(value, Gain):
        return value
    if isinstance(value, int | float | np.number):
        return constant(float(value))
    raise TypeError(f"a gain multiplies with a number or a gain, not with {value!r}")


@dataclass(frozen=True)
class Constant(_Factor):
    """η0 for every component and step: KHA (Kim 2003).

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
class InverseTime(_Factor):
    """τ/(t + τ); the papers take τ = l, which is what ``tau=None`` means.

    Parameters
    ----------
    tau : float, optional
        τ, in patterns seen; the number of samples by default.

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
class ReciprocalEigenvalues(_Factor):
    """‖λ‖/λ_i (Günter 2006, eq. 12), or 1/λ_i without the norm.

    Parameters
    ----------
    with_norm : bool, default=True
        Whether to multiply by ‖λ‖.

    Examples
    --------
    >>> from ikpca.gains import ReciprocalEigenvalues, reciprocal_eigenvalues
    >>> reciprocal_eigenvalues() == ReciprocalEigenvalues()
    True
    """

    with_norm: bool = True

    def gains(self, times: Floats, n_samples: int, eigenvalues: Floats) -> Floats:
        """Return the reciprocals, the same for every step.

        A component without variance would step infinitely far; its λ is held at the rounding
        level of the largest.
        """
        largest = float(np.max(eigenvalues, initial=0.0)) or 1.0
        smallest = max(np.finfo(np.float64).eps * largest, np.finfo(np.float64).tiny)
        floored = np.maximum(eigenvalues, smallest)
        norm = np.linalg.norm(floored) if self.with_norm else 1.0
        return (norm / floored)[None, :]


@dataclass(frozen=True)
class Product(_Factor):
    """Gains multiplied element by element.

    Parameters
    ----------
    factors : tuple of Gain
        Put together by ``*``; a number on the left becomes a constant gain.

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
    """The same gain throughout: KHA.

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
    """Search then converge: τ/(t + τ), τ = l unless given.

    Parameters
    ----------
    tau : float, optional
        τ, positive, in patterns seen.

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
    """A gain for each component, reciprocal to its eigenvalue: the e of KHA/et.

    ``with_norm=False`` leaves ‖λ‖ out, so that the number in front needs no knowledge of the scale
    of the kernel.

    Parameters
    ----------
    with_norm : bool, default=True
        Whether to multiply by ‖λ‖, as the paper does.

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
    """e^ρ times another gain; ρ steps inside the sweep.

    Parameters
    ----------
    gain : Gain
        The gain that e^ρ multiplies, KHA/et in the paper.
    rate : float
        µ of eq. 16.
    memory : float
        ξ of eq. 19.
    log_gain_init : float
        ρ at the start. The paper has 1.
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
    """KHA-SMD from any gain, with the papers' unbounded log-gains.

    Parameters
    ----------
    gain : Gain
        The gain that e^ρ multiplies, KHA/et in the paper.
    rate : float
        µ of eq. 16; 0 switches it off.
    memory : float, default=0.99
        ξ of eq. 19, from 0 to 1.
    log_gain_init : float, default=0.0
        ρ at the start.

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
            "rate", rate, "must be finite and not negative", "0 switches it off"
        )
    if not 0 <= memory <= 1:
        raise invalid_parameter("memory", memory, "must lie in [0, 1]", "the paper uses 0.99")
    if not np.isfinite(log_gain_init):
        raise invalid_parameter("log_gain_init", log_gain_init, "must be finite", "pass 0.0")
    return MetaDescent(gain, float(rate), float(memory), float(log_gain_init))
