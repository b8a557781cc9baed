"""A data set in memory: named arrays, a checksum over them, and where they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arrays", "DataSet", "Origin", "checksum_of"]

Arrays = Mapping[str, NDArray[Any]]
Origin = Literal["embedded", "local", "download"]


def checksum_of(arrays: Arrays) -> str:
    """SHA-256 over names, kinds of numbers, shapes and values, in hexadecimal.

    The order of the names does not count, nor do byte order, layout in memory, or how a file of
    the arrays was compressed.

    Parameters
    ----------
    arrays : mapping of str to array

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.datasets import checksum_of
    >>> rows = np.arange(6.0).reshape(2, 3)
    >>> checksum_of({"X": rows}) == checksum_of({"X": np.asfortranarray(rows)})
    True
    >>> checksum_of({"X": rows}) == checksum_of({"X": rows.ravel()})
    False
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{name}\0{plain.dtype.str}\0{array.shape}\0".encode())
        # An array without dimensions has no buffer of bytes to view; its copy in one has.
        digest.update(plain.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class DataSet:
    """Arrays by name, which nobody can write to.

    Parameters
    ----------
    name : str
        Its name in the registry.
    arrays : mapping of str to array
    description : str
    origin : {"embedded", "local", "download"}
        Which of the three ways it came.
    path : Path or None
        The file it was read from.
    checksum : str
        Of the arrays, see :func:`checksum_of`; for results to record.
    as_recorded : bool or None
        Whether the checksum is the registry's; None where the registry has none, because last
        digits of generated numbers differ between machines.

    Examples
    --------
    >>> from ikpca.datasets import load
    >>> digits = load("digits")
    >>> digits["X"].shape, digits.origin, digits.as_recorded
    ((1797, 64), 'embedded', True)
    """

    name: str
    arrays: Arrays
    description: str
    origin: Origin
    path: Path | None
    checksum: str
    as_recorded: bool | None

    def __post_init__(self) -> None:
        arrays = {name: _read_only(array) for name, array in self.arrays.items()}
        object.__setattr__(self, "arrays", MappingProxyType(arrays))

    def __getitem__(self, name: str) -> NDArray[Any]:
        """One of the arrays."""
        return self.arrays[name]


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
