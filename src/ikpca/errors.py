"""Exceptions and warnings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from numbers import Integral, Real
from typing import Literal, NamedTuple, TypeAlias, TypeGuard

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


class RankWarning(UserWarning):
    """Fewer nonzero components than requested.

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
    """Return the error for an invalid argument: value, rule, remedy."""
    return InvalidInput(f"{name}={value!r}: {rule}; {remedy}.")


class Number(NamedTuple):
    """Rule of a numeric parameter, and the remedy in its error message.

    ``allowed`` are other values, such as None and "auto", and types, such as bool; with
    ``open_low``, ``low`` itself is not allowed.
    """

    rule: str
    remedy: str
    low: float = -np.inf
    high: float = np.inf
    open_low: bool = False
    integer: bool = False
    allowed: tuple[object, ...] = ()

    def check(self, name: str, value: object) -> None:
        """Raise an error unless the value is allowed, or a number of the right type and size."""
        if any(_matches(value, allowed) for allowed in self.allowed):
            return
        number_type = Integral if self.integer else Real
        number = np.nan
        if isinstance(value, number_type) and not isinstance(value, bool | np.bool_):
            try:
                number = float(value)
            except OverflowError:
                number = np.inf
        valid = np.isfinite(number) and self.low <= number <= self.high
        if not valid or (self.open_low and number == self.low):
            raise invalid_parameter(name, value, self.rule, self.remedy)


def _matches(value: object, allowed: object) -> bool:
    """Compare with a constant or a type; an array must not be compared with a string."""
    if isinstance(allowed, type):
        return isinstance(value, allowed)
    return value is allowed or (isinstance(value, str) and value == allowed)


class Choice(NamedTuple):
    """Rule of a parameter with a few names or flags, or objects of a type, as values."""

    choices: Collection[object]
    objects: type | tuple[()] = ()

    def check(self, name: str, value: object) -> None:
        """Raise an error unless the value is one of the choices."""
        if isinstance(value, self.objects):
            return
        if not isinstance(value, str | bool | np.bool_ | None) or value not in self.choices:
            listed = ", ".join(repr(choice) for choice in self.choices)
            raise invalid_parameter(name, value, "is unknown", f"choose one of {listed}")


#: Parameters of an object by name, with their rules.
ParameterRules: TypeAlias = Mapping[str, Number | Choice]
FLAG = Choice((True, False))


def check_parameters(owner: object, rules: ParameterRules) -> None:
    """Raise an error for the first parameter of an object that violates its rule."""
    for name, rule in rules.items():
        rule.check(name, getattr(owner, name))


def is_auto(value: object) -> TypeGuard[Literal["auto"]]:
    """Return True for "auto"; an array must not be compared with a string."""
    return isinstance(value, str) and value == "auto"
