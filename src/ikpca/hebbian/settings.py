"""What a run is told, and what it carries from pass to pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ikpca.gains import Gain, MetaDescent
from ikpca.hebbian.store import Floats, Indices
from ikpca.loop import Clock

__all__ = ["AUTOMATIC", "MANUAL", "HebbianState", "Safety", "Settings", "safety_for"]


@dataclass(frozen=True)
class Safety:
    """What to do about steps that are too long.

    Parameters
    ----------
    cap : bool
        Bound every gain by 1/max(k'(p,p), Σ y²) before the step.
    alarm : bool
        Give up on a pass as soon as the components leave the unit ball.
    guard : bool
        Undo a pass after which the components hold less variance than before.
    backoff : float
        What gains are multiplied with after an undone pass.
    repeat : bool
        Whether the undone pass is done again; otherwise it counts and the clock runs on.
    """

    cap: bool
    alarm: bool
    guard: bool
    backoff: float
    repeat: bool


#: Gains chosen by the library.
AUTOMATIC = Safety(cap=True, alarm=False, guard=True, backoff=0.25, repeat=False)
#: A user's own gain: the papers' steps, untouched until they fail.
MANUAL = Safety(cap=False, alarm=True, guard=False, backoff=0.5, repeat=True)


def safety_for(*, automatic: bool) -> Safety:
    """The rules for the library's own gains, or for a user's."""
    return AUTOMATIC if automatic else MANUAL


@dataclass(frozen=True)
class Settings:
    """Fixed for a run.

    Parameters
    ----------
    n_components : int
    gain : Gain
    clock : Clock
    safety : Safety
    seed : int
        Of the permutations.
    mean_diagonal : float
        κ = mean k'(x, x), the squared length of a typical pattern.
    block_size : int
        Patterns per sweep; changes the speed, not the result.
    rayleigh_ritz : bool
        Whether a pass ends with a Rayleigh–Ritz step.
    estimate : {"norms", "quotients"}
        How λ is estimated for the gains: ‖(AK')_i‖/‖A_i‖ (Günter 2006, eq. 13), or the Rayleigh
        quotient in feature space.
    """

    n_components: int
    gain: Gain
    clock: Clock
    safety: Safety
    seed: int
    mean_diagonal: float
    block_size: int
    rayleigh_ritz: bool
    estimate: Literal["norms", "quotients"]

    @property
    def meta(self) -> MetaDescent | None:
        """The meta-descent part of the gain, if it has one."""
        return self.gain if isinstance(self.gain, MetaDescent) else None

    def permutation(self, number: int) -> Indices:
        """The order of the patterns in a pass; the same for a repeated pass and after a resume."""
        rng = np.random.default_rng([self.seed, 1, number])
        return rng.permutation(self.clock.n_samples)


@dataclass(frozen=True)
class HebbianState:
    """What the next pass needs beside the store: small and serialisable.

    Parameters
    ----------
    passes, seen : int
        Passes finished and patterns seen.
    eigenvalues : ndarray of shape (r,)
        λ for the gains of the next pass.
    log_gains : ndarray of shape (r,)
        ρ of meta-descent, zero without it.
    gain_scale : float
        Product of all back-offs so far.
    captured : float
        Σ of the Ritz values: the variance that the components hold.
    length : float
        Squared length of the longest combination of components, the least so far: components that
        have come down to unit length may not grow long again, however slowly.
    """

    passes: int
    seen: int
    eigenvalues: Floats
    log_gains: Floats
    gain_scale: float
    captured: float
    length: float
