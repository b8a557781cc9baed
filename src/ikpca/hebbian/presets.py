"""The four methods of the papers as gains, with the papers' constants or with automatic ones."""

from __future__ import annotations

from ikpca.gains import Gain, MetaDescent, constant, inverse_time, reciprocal_eigenvalues

__all__ = ["METHODS", "automatic_gain", "automatic_meta_rate", "paper_gain"]

METHODS = ("kha", "kha/t", "kha/et", "kha-smd")

#: h_i λ_i at t = 0 for KHA/et, from an orthonormal random start and from landmarks.
_ET_STEP, _ET_STEP_LANDMARKS = 7.0, 5.0
#: η0 κ for KHA and KHA/t, and for KHA/t from landmarks.
_CONSTANT_STEP, _INVERSE_TIME_STEP, _INVERSE_TIME_STEP_LANDMARKS = 0.05, 0.5, 0.1
#: µ κ, and bounds on |Δρ| and |ρ|, for KHA-SMD.
_META_RATE, _MAX_LOG_STEP, _MAX_LOG_GAIN = 0.05, 0.1, 3.0


def paper_gain(method: str, eta0: float, rate: float, memory: float, log_gain_init: float) -> Gain:
    """The papers' gain with the user's η0, and µ, ξ, ρ0 for KHA-SMD."""
    if method == "kha":
        return constant(eta0)
    if method == "kha/t":
        return eta0 * inverse_time()
    kha_et = eta0 * inverse_time() * reciprocal_eigenvalues()
    if method == "kha/et":
        return kha_et
    return MetaDescent(kha_et, rate, memory, log_gain_init)


def automatic_gain(
    method: str,
    mean_diagonal: float,
    rate: float,
    memory: float,
    log_gain_init: float,
    *,
    from_landmarks: bool = False,
) -> Gain:
    """A gain that needs no tuning, from κ = mean k'(x, x) and from λ as the run goes.

    A start from landmarks is close already, and wants shorter steps.
    """
    if method == "kha":
        return constant(_CONSTANT_STEP / mean_diagonal)
    if method == "kha/t":
        step = _INVERSE_TIME_STEP_LANDMARKS if from_landmarks else _INVERSE_TIME_STEP
        return step / mean_diagonal * inverse_time()
    step = _ET_STEP_LANDMARKS if from_landmarks else _ET_STEP
    kha_et = step * inverse_time() * reciprocal_eigenvalues(with_norm=False)
    if method == "kha/et":
        return kha_et
    return MetaDescent(kha_et, rate, memory, log_gain_init, _MAX_LOG_STEP, _MAX_LOG_GAIN)


def automatic_meta_rate(mean_diagonal: float) -> float:
    """µ, scaled by κ: the inner product it multiplies grows with the kernel."""
    return _META_RATE / mean_diagonal
