"""What ikpca raises and warns of; every message names the value, the rule and the remedy."""

from __future__ import annotations

__all__ = [
    "ClusterLost",
    "DataChanged",
    "DataUnavailable",
    "DivergenceWarning",
    "InvalidInput",
    "OutOfMemory",
    "RankWarning",
    "RecoveryWarning",
    "UnreadableFile",
    "UnwritableFile",
    "refuse",
]


class InvalidInput(ValueError):
    """An argument breaks a rule; raised before any work is done."""


class UnreadableFile(InvalidInput):
    """A file is damaged, of a newer version, or not what it should be; nothing was loaded."""


class UnwritableFile(OSError):
    """A file could not be written, for want of space or of permission; the old one is untouched."""


class ClusterLost(ConnectionError):
    """The scheduler of a cluster answers no more; what a checkpoint has can be gone on from."""


class DataUnavailable(RuntimeError):
    """A data set cannot be had: absent, damaged, out of reach; says what to do about it."""


class DataChanged(RuntimeError):
    """Rows on disk are not what they were when the fit began; what it found is of no use."""


class OutOfMemory(MemoryError):
    """There was not enough memory, also not for the smallest pieces; says what takes less."""


class DivergenceWarning(UserWarning):
    """A gain was too large; the pass was undone and repeated with a smaller one."""


class RecoveryWarning(UserWarning):
    """Something gave way during a fit and was mended; what came out is as good as without it."""


class RankWarning(UserWarning):
    """Fewer components carry variance than were asked for."""


def refuse(name: str, value: object, rule: str, remedy: str) -> InvalidInput:
    """Build the error for a bad argument: value, rule, remedy.

    Examples
    --------
    >>> raise refuse("gain", -1.0, "must be positive", "pass gain='auto'")
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: gain=-1.0: must be positive; pass gain='auto'.
    """
    return InvalidInput(f"{name}={value!r}: {rule}; {remedy}.")
