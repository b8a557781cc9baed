"""Arguments of reductions, checked before any work."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from ikpca.errors import refuse
from ikpca.kernels import Floats
from ikpca.preimages import Expansion

__all__ = ["check_count", "check_size", "check_tol", "check_weights"]


def check_count(name: str, value: Any, low: int) -> int:
    """Refuse what is no integer from ``low`` up."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < low:
        raise refuse(name, value, f"must be an integer of at least {low}", f"pass {max(low, 5)}")
    return int(value)


def check_tol(tol: Any) -> None:
    """Refuse a relative error that is none."""
    number = isinstance(tol, Real) and not isinstance(tol, bool | np.bool_)
    if not number or not 0 <= float(tol) < 1:
        raise refuse("tol", tol, "must be a number from 0 to below 1", "pass 1e-4")


def check_size(expansion: Expansion, size: Any) -> int:
    """Refuse a size that independent vectors have no room on."""
    number = len(expansion.coefficients)
    whole = isinstance(size, Integral) and not isinstance(size, bool | np.bool_)
    if not whole or size < number:
        raise refuse("size", size, f"{number} vectors need at least as many rows",
                     f"pass an integer of {number} or more")  # fmt: skip
    return int(size)


def check_weights(expansion: Expansion, weights: Floats | None) -> Floats:
    """One weight per vector, none of them negative; alike where nothing is said."""
    number = len(expansion.coefficients)
    if weights is None:
        return np.ones(number)
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (number,) or not (np.isfinite(found).all() and (found >= 0).all()):
        raise refuse("weights", weights, f"must be {number} numbers that are not negative",
                     "pass one for every vector")  # fmt: skip
    return found
