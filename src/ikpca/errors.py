"""Exceptions and warnings."""

from __future__ import annotations


class InvalidInput(ValueError):
    """An argument breaks a rule; raised before any work is done.

    Examples
    --------
    >>> from ikpca import KernelPCA
    >>> KernelPCA(2, kernel="gauss").fit([[0.0], [1.0]])
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: kernel='gauss': is unknown; choose one of linear, poly, ...
    """


class UnreadableFile(InvalidInput):
    """A file is damaged, of a newer version, or not what it should be; nothing was loaded.

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
    """A file could not be written, for want of space or of permission; the old one is untouched.

    Examples
    --------
    >>> from ikpca.errors import UnwritableFile
    >>> issubclass(UnwritableFile, OSError)
    True
    """


class ClusterLost(ConnectionError):
    """The scheduler of a cluster answers no more; what a checkpoint has can be gone on from.

    Examples
    --------
    >>> from ikpca.errors import ClusterLost
    >>> issubclass(ClusterLost, ConnectionError)
    True
    """


class DataChanged(RuntimeError):
    """Rows on disk are not what they were when the fit began; what it found is of no use.

    Examples
    --------
    >>> from ikpca.errors import DataChanged
    >>> issubclass(DataChanged, RuntimeError)
    True
    """


class OutOfMemory(MemoryError):
    """There was not enough memory, also not for the smallest pieces; says what takes less.

    Examples
    --------
    >>> from ikpca.errors import OutOfMemory
    >>> issubclass(OutOfMemory, MemoryError)
    True
    """


class DivergenceWarning(UserWarning):
    """A gain was too large; the pass was undone and repeated with a smaller one.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = KernelPCA(2, kernel="rbf", eigen_solver="kha", gain=1e3, max_iter=3)
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     _ = model.fit(X)
    >>> told[0].category.__name__
    'DivergenceWarning'
    """


class RecoveryWarning(UserWarning):
    """Something gave way during a fit and was mended; what came out is as good as without it.

    Examples
    --------
    >>> import warnings
    >>> from ikpca.errors import RecoveryWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", RecoveryWarning)  # to stop instead of going on
    """


class RankWarning(UserWarning):
    """Fewer components carry variance than were asked for.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> line = np.arange(8.0)[:, None]
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     _ = KernelPCA(2, kernel="linear").fit(line)
    >>> told[0].category.__name__
    'RankWarning'
    """


def invalid_parameter(name: str, value: object, rule: str, remedy: str) -> InvalidInput:
    """Build the error for a bad argument: value, rule, remedy.

    Parameters
    ----------
    name : str
        Of the argument.
    value : object
        What was passed.
    rule : str
        What it breaks.
    remedy : str
        What to pass instead.

    Returns
    -------
    InvalidInput
        To be raised.

    Examples
    --------
    >>> from ikpca.errors import invalid_parameter
    >>> raise refuse("gain", -1.0, "must be positive", "pass gain='auto'")
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: gain=-1.0: must be positive; pass gain='auto'.
    """
    return InvalidInput(f"{name}={value!r}: {rule}; {remedy}.")
