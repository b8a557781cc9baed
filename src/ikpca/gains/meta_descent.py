"""Stochastic meta-descent: log-gains that learn beside the components (Günter 2006, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.errors import refuse
from ikpca.gains.gain import Floats, Gain

__all__ = ["MetaDescent", "meta_descent"]


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
        raise refuse("rate", rate, "must be finite and not negative", "0 switches it off")
    if not 0 <= memory <= 1:
        raise refuse("memory", memory, "must lie in [0, 1]", "the paper uses 0.99")
    if not np.isfinite(log_gain_init):
        raise refuse("log_gain_init", log_gain_init, "must be finite", "pass 0.0")
    return MetaDescent(gain, float(rate), float(memory), float(log_gain_init))
