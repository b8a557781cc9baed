"""Settings of pre-image methods, checked when they are made."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from ikpca.errors import refuse

__all__ = ["check_count", "check_iteration"]


def check_count(name: str, value: Any, low: int) -> None:
    """Refuse what is no integer from ``low`` up."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < low:
        raise refuse(name, value, f"must be an integer of at least {low}", f"pass {max(low, 5)}")


def check_iteration(max_iter: Any, tol: Any) -> None:
    """Refuse a limit or a tolerance with which no iteration could run."""
    check_count("max_iter", max_iter, 1)
    number = isinstance(tol, Real) and not isinstance(tol, bool | np.bool_)
    if not number or not 0 <= float(tol) < np.inf:
        raise refuse("tol", tol, "must be a number that is not negative", "pass 1e-5")
