"""Exceptions and warnings."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np


class InvalidInput(ValueError):
    """Invalid argument or data, raised before any computation.

    Examples
    --------
    >>> from ikpca import KernelPCA
    >>> KernelPCA(2, kernel="gauss").fit([[0.0], [1.0]])
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: kernel='gauss': is unknown; choose one of linear, poly, ...
    """


class UnreadableFile(InvalidInput):
    """File that is damaged, of another version, or of another kind; nothing was loaded.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import ikpca
    >>> path = Path(tempfile.mkdtemp(), "model.npz")
    >>> path.write_bytes(b"no model")
    8
    >>> ikpca.load(path)
    Traceback (most recent call last):
        ...
    ikpca.errors.UnreadableFile: ...
    """


class UnwritableFile(OSError):
    """File that could not be written, for lack of space or permission; an old one is unchanged.

    Examples
    --------
    >>> from ikpca.errors import UnwritableFile
    >>> issubclass(UnwritableFile, OSError)
    True
    """


class ClusterLost(ConnectionError):
    """Lost connection to the scheduler of a cluster; the fit can resume from a checkpoint.

    Examples
    --------
    >>> from ikpca.errors import ClusterLost
    >>> issubclass(ClusterLost, ConnectionError)
    True
    """


class OutOfMemory(MemoryError):
    """Insufficient memory; the message suggests a remedy.

    Examples
    --------
    >>> from ikpca.errors import OutOfMemory
    >>> issubclass(OutOfMemory, MemoryError)
    True
    """


class DivergenceWarning(UserWarning):
    """Divergence because of a large gain; the pass was repeated with a smaller one.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> from ikpca.solvers import KHA
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = KernelPCA(2, kernel="rbf", eigen_solver=KHA("kha", gain=1e3), max_iter=3)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = model.fit(X)
    >>> caught[0].category.__name__
    'DivergenceWarning'
    """


class RecoveryWarning(UserWarning):
    """A numerical problem was detected and corrected; the result is as accurate as without it.

    Examples
    --------
    >>> import warnings
    >>> from ikpca.errors import RecoveryWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", RecoveryWarning)  # raise instead of warn
    """


class RankWarning(UserWarning):
    """Fewer components with variance than requested.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> line = np.arange(8.0)[:, None]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = KernelPCA(2, kernel="linear").fit(line)
    >>> caught[0].category.__name__
    'RankWarning'
    """


def invalid_parameter(name: str, value: object, rule: str, remedy: str) -> InvalidInput:
    """Return the error for an invalid argument: value, rule, remedy.

    Parameters
    ----------
    name : str
        Name of the argument.
    value : object
        Value that was passed.
    rule : str
        Rule that the value violates.
    remedy : str
        Suggested value or action.

    Returns
    -------
    InvalidInput

    Examples
    --------
    >>> from ikpca.errors import invalid_parameter
    >>> raise invalid_parameter("gain", -1.0, "must be positive", "pass gain='auto'")
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: gain=-1.0: must be positive; pass gain='auto'.
    """
    return InvalidInput(f"{name}={value!r}: {rule}; {remedy}.")


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
    """Raise an error unless the value is a number of the right type in its interval."""
    kind = Integral if integer else Real
    if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
        raise invalid_parameter(name, value, rule, remedy)
    try:
        number = float(value)
    except OverflowError:
        number = np.inf
    if not np.isfinite(number) or number < low or number > high or (open_low and number == low):
        raise invalid_parameter(name, value, rule, remedy)


def check_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    """Raise an error unless the value is one of the choices."""
    if not isinstance(value, str | bool | np.bool_ | None) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise invalid_parameter(name, value, "is unknown", f"choose one of {listed}")


def is_auto(value: Any) -> bool:
    """Return True for "auto"; an array must not be compared with a string."""
    return isinstance(value, str) and value == "auto"
