"""Constructor arguments, checked once at the door of ``fit``."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np

from ikpca.errors import refuse
from ikpca.gains import Gain
from ikpca.gram import read_budget
from ikpca.hebbian import METHODS
from ikpca.kernels import RADIAL_NAMES
from ikpca.preimages import METHOD_NAMES, PreimageMethod

__all__ = [
    "KRYLOV_NAMES",
    "check_choice",
    "check_gain",
    "check_init",
    "check_kernel_parameters",
    "check_kernel_pca",
    "check_number",
    "check_preimage_name",
    "check_running",
    "is_auto",
    "is_fraction",
]

#: scikit-learn's names for iterative solvers mean ours.
KRYLOV_NAMES = ("krylov", "arpack", "randomized")
SOLVERS = ("auto", "dense", *KRYLOV_NAMES, *METHODS)


def check_number(
    name: str,
    value: Any,
    rule: str,
    remedy: str,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    open_low: bool = False,
    integer: bool = False,
) -> None:
    """Refuse what is not a number of the right kind in its interval."""
    kind = Integral if integer else Real
    if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
        raise refuse(name, value, rule, remedy)
    number = float(value)
    if not np.isfinite(number) or number < low or number > high or (open_low and number == low):
        raise refuse(name, value, rule, remedy)


def check_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    """Refuse what is not one of the choices."""
    if not isinstance(value, str | bool | np.bool_ | None) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise refuse(name, value, "is unknown", f"choose one of {listed}")


def check_gain(gain: Any) -> None:
    """A gain is "auto", a positive number or a gain object."""
    if isinstance(gain, Gain) or (isinstance(gain, str) and gain == "auto"):
        return
    check_number(
        "gain", gain, "must be 'auto', a positive number or a gain object", "pass gain='auto'",
        low=0, open_low=True,
    )  # fmt: skip


def check_init(init: Any, names: Collection[str], shape: tuple[int, int]) -> Any:
    """Return a name as it is, and an array checked and copied."""
    if isinstance(init, str):
        check_choice("init", init, names)
        return init
    try:
        array = np.array(init, dtype=np.float64)
    except (TypeError, ValueError):
        raise refuse("init", init, "is no array of numbers", f"choose one of {names}") from None
    if array.shape != shape:
        raise refuse("init", f"array of shape {array.shape}", f"must have shape {shape}",
                     "one row per component")  # fmt: skip
    if not np.isfinite(array).all():
        raise refuse("init", "array", "holds NaN or infinite values", "replace them")
    return array


def is_auto(value: Any) -> bool:
    """Whether the library is to choose; an array is no text."""
    return isinstance(value, str) and value == "auto"


def check_running(model: Any) -> None:
    """How a fit runs, whatever it computes."""
    if model.n_jobs is not None:
        check_number(
            "n_jobs", model.n_jobs, "must be an integer or None", "pass None", integer=True
        )
        if model.n_jobs == 0:
            raise refuse("n_jobs", 0, "has no meaning", "pass None, a count of threads, or -1")
    if not isinstance(model.verbose, bool):
        check_number(
            "verbose", model.verbose, "must be 0, 1 or more", "pass 0 or 1", low=0, integer=True
        )


def is_fraction(n_components: Any) -> bool:
    """Whether ``n_components`` is a share of the variance."""
    return isinstance(n_components, Real) and not isinstance(n_components, Integral)


def check_kernel_pca(model: Any) -> None:
    """Every constructor argument of ``KernelPCA`` that does not depend on the data."""
    _check_components(model)
    check_kernel_parameters(model)
    check_number("alpha", model.alpha, "must not be negative", "pass 1.0", low=0)
    check_preimage_name(model.preimage, METHOD_NAMES)
    _check_stopping(model)
    _check_hebbian(model)
    read_budget(model.max_memory)
    flags = (
        "fit_inverse_transform",
        "remove_zero_eig",
        "copy_X",
        "rayleigh_ritz",
        "whiten",
        "warm_start",
    )
    for flag in flags:
        check_choice(flag, getattr(model, flag), (True, False))
    check_running(model)


def _check_components(model: Any) -> None:
    wanted, solver = model.n_components, model.eigen_solver
    check_choice("eigen_solver", solver, SOLVERS)
    if wanted is not None and not is_fraction(wanted):
        check_number(
            "n_components", wanted, "must be a positive integer, a fraction in (0, 1) or None",
            "pass how many components you want", low=1, integer=True,
        )  # fmt: skip
    if is_fraction(wanted) and not 0 < wanted < 1:
        raise refuse("n_components", wanted, "as a share of the variance must lie in (0, 1)",
                     "pass an integer for a number of components")  # fmt: skip
    if wanted is None and solver == "krylov":
        raise refuse("n_components", wanted, "eigen_solver='krylov' needs a number or a share",
                     "pass an integer, a fraction in (0, 1), or eigen_solver='dense'")  # fmt: skip
    if solver in METHODS and (wanted is None or is_fraction(wanted)):
        raise refuse("n_components", wanted, f"eigen_solver={solver!r} needs a number",
                     "pass an integer, or eigen_solver='dense'")  # fmt: skip


def check_kernel_parameters(model: Any) -> None:
    """What kernels are made with."""
    gamma, kernel = model.gamma, model.kernel
    if isinstance(gamma, str):
        check_choice("gamma", gamma, ("scale", "median"))
        if gamma == "median" and kernel not in RADIAL_NAMES:
            raise refuse("gamma", gamma, f"is for kernels of a distance, and kernel={kernel!r}",
                         "pass a number or 'scale'")  # fmt: skip
    elif gamma is not None:
        check_number(
            "gamma", gamma, "must not be negative", "pass None, 'scale' or 'median'", low=0
        )
    check_number("degree", model.degree, "must not be negative", "pass 2 or 3", low=0)
    check_number("coef0", model.coef0, "must be a finite number", "pass 1")
    params = model.kernel_params
    if params is not None and not isinstance(params, dict):
        raise refuse("kernel_params", params, "must be a dict or None", "pass keyword arguments")


def check_preimage_name(preimage: Any, names: Collection[str]) -> None:
    """A method object, or one of the names."""
    if isinstance(preimage, PreimageMethod) and not isinstance(preimage, type):
        return
    if not isinstance(preimage, str) or preimage not in names:
        raise refuse("preimage", preimage, "is no pre-image method",
                     f"choose one of {', '.join(map(repr, names))}")  # fmt: skip


def _check_stopping(model: Any) -> None:
    check_number("tol", model.tol, "must not be negative", "pass 0 for machine precision", low=0)
    if model.change_tol is not None:
        check_number("change_tol", model.change_tol, "must not be negative", "pass None", low=0)
    if model.max_iter is not None:
        check_number("max_iter", model.max_iter, "must be a positive integer or None", "pass None",
                     low=1, integer=True)  # fmt: skip
    if not is_auto(model.iterated_power):
        check_number("iterated_power", model.iterated_power, "must be 'auto' or an integer",
                     "pass 'auto'", low=0, integer=True)  # fmt: skip


def _check_hebbian(model: Any) -> None:
    check_gain(model.gain)
    if not is_auto(model.meta_gain):
        check_number("meta_gain", model.meta_gain, "must be 'auto' or not negative",
                     "pass meta_gain='auto'", low=0)  # fmt: skip
    check_number("meta_decay", model.meta_decay, "must lie in [0, 1]", "the paper uses 0.99",
                 low=0, high=1)  # fmt: skip
    check_number("log_gain_init", model.log_gain_init, "must be finite", "pass 0.0")
    check_choice("clock", model.clock, ("pattern", "pass"))
    if not is_auto(model.block_size):
        check_number("block_size", model.block_size, "must be 'auto' or a positive integer",
                     "pass 'auto'", low=1, integer=True)  # fmt: skip
