"""From the constructor arguments of ``OnlineKernelPCA`` to the settings of a stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from ikpca.errors import refuse
from ikpca.estimators.checkpoints import check_checkpoint
from ikpca.estimators.parameters import (
    check_choice,
    check_gain,
    check_init,
    check_kernel_parameters,
    check_number,
    check_preimage_name,
    check_running,
    is_auto,
)
from ikpca.estimators.training import is_precomputed
from ikpca.gains import Gain, constant, inverse_time, reciprocal_eigenvalues
from ikpca.hebbian import START_NAMES, OnlineSettings, Start, safety_for
from ikpca.kernels import Kernel
from ikpca.preimages import METHOD_NAMES
from ikpca.reduced_sets import (
    AlikeMerged,
    ChosenSamples,
    JointPreimages,
    LeastDropped,
    Reduction,
)

__all__ = ["check_online", "memory_of", "online_settings", "online_start"]

_REDUCTIONS: dict[str, Reduction] = {
    "drop": LeastDropped(),
    "merge": AlikeMerged(),
    "samples": ChosenSamples(),
    "preimages": JointPreimages(),
}
#: h_i λ_i/l at t = 0, over 20: from the components of the first rows, and from points.
_STEP_FROM_ROWS, _STEP_FROM_POINTS = 2.0, 7.0
#: Patterns over which the gain stays near its first value.
_HORIZON = 20
#: Rows of an expansion, at least and per component.
_BUDGET, _PER_COMPONENT = 512, 8
#: Share of the budget that an expansion is brought down to, so that it seldom has to be.
_KEPT = 0.75


def check_online(model: Any) -> None:
    """Every constructor argument that does not depend on the data."""
    check_number("n_components", model.n_components, "must be a positive integer",
                 "pass how many components you want", low=1, integer=True)  # fmt: skip
    if is_precomputed(model):
        raise refuse("kernel", model.kernel, "a stream needs kernel values of rows still to come",
                     "pass rows and a kernel, or use KernelPCA for a kernel matrix")  # fmt: skip
    check_kernel_parameters(model)
    check_preimage_name(model.preimage, [name for name in METHOD_NAMES if name != "ridge"])
    check_gain(model.gain)
    check_number("forgetting", model.forgetting, "must lie in (0, 1]",
                 "pass 1.0 to forget nothing", low=0, high=1, open_low=True)  # fmt: skip
    if isinstance(model.init, str):
        check_choice("init", model.init, START_NAMES)
    _check_budget(model)
    for flag in ("rayleigh_ritz", "whiten"):
        check_choice(flag, getattr(model, flag), (True, False))
    check_number("n_passes", model.n_passes, "must be a positive integer", "pass 1",
                 low=1, integer=True)  # fmt: skip
    check_running(model)
    check_checkpoint(model)


def _check_budget(model: Any) -> None:
    least = 4 * (int(model.n_components) + 1)
    if model.budget is not None and not is_auto(model.budget):
        check_number(
            "budget", model.budget, f"must be 'auto', None or an integer of at least {least}, "
            "four rows for each component and the mean", "pass 'auto'", low=least, integer=True,
        )  # fmt: skip
    if not isinstance(model.reduction, Reduction):
        check_choice("reduction", model.reduction, tuple(_REDUCTIONS))


def budget_of(model: Any) -> int | None:
    """Rows of the expansion, at most."""
    if is_auto(model.budget):
        return max(_BUDGET, _PER_COMPONENT * int(model.n_components))
    return None if model.budget is None else int(model.budget)


def room_of(model: Any) -> int:
    """Rows that an expansion begins with, at most."""
    budget = budget_of(model)
    return 10**9 if budget is None else int(_KEPT * budget)


def memory_of(model: Any) -> float:
    """Rows that are remembered: the sum of their weights, f² less with every row."""
    lost = 1 - float(model.forgetting) ** 2
    return 1 / lost if lost > 0 else np.inf


def online_settings(model: Any, kernel: Kernel) -> OnlineSettings:
    """Gain, memory and budget."""
    budget, size = budget_of(model), room_of(model)
    reduction = _reduction(model.reduction, kernel)
    return OnlineSettings(
        kernel=kernel,
        gain=_gain(model),
        safety=safety_for(automatic=isinstance(model.gain, str)),
        horizon=_HORIZON,
        memory=memory_of(model),
        budget=budget,
        shrink=lambda expansion, weights: reduction.reduce(expansion, size, weights),
    )


def _reduction(reduction: Any, kernel: Kernel) -> Reduction:
    chosen: Reduction = _REDUCTIONS[reduction] if isinstance(reduction, str) else reduction
    if not chosen.serves(kernel):
        raise refuse("reduction", reduction, f"does not serve {kernel!r}", "pass 'samples'")
    return chosen


def _gain(model: Any) -> Gain:
    if isinstance(model.gain, Gain):
        return model.gain
    if not isinstance(model.gain, str):
        return constant(float(model.gain))
    from_rows = isinstance(model.init, str) and model.init == "rows"
    step = _STEP_FROM_ROWS if from_rows else _STEP_FROM_POINTS
    return step * inverse_time() * reciprocal_eigenvalues(with_norm=False)


def online_start(model: Any, n_features: int, seed: int) -> Start:
    """Where components begin; points are checked now that their width is known."""
    shape = (int(model.n_components), n_features)
    init = check_init(model.init, START_NAMES, shape)
    # At least one step must fit in before the expansion is full.
    return Start(init, shape[0], seed, max(room_of(model) - shape[0], 1))
