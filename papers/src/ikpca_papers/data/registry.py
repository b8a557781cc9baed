"""Registry of data sets: local folder, embedded or downloaded."""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput, invalid_parameter

#: Called with a file's name, the bytes that are there, and the bytes there will be, if known.
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class Remote:
    """A file to be had by address.

    Parameters
    ----------
    address : str
    path : str
        Where it goes, below the cache folder.
    sha256 : str
        In hexadecimal, of the file.
    any_line_ends : bool, default=False
        The checksum is that of the text without carriage returns.

    Examples
    --------
    >>> from ikpca_papers.data import Remote
    >>> Remote("https://example.org/rows.csv", "example/rows.csv", "0" * 64).path
    'example/rows.csv'
    """

    address: str
    path: str
    sha256: str
    any_line_ends: bool = False

    def __post_init__(self) -> None:
        parts = PurePosixPath(self.path).parts
        if not parts or parts[0] == "/" or ".." in parts or set("\\:") & set(self.path):
            raise invalid_parameter(
                "path", self.path, "must lie below the cache folder", "pass a/name"
            )


@dataclass(frozen=True)
class Entry:
    """What a data set is, and the ways to get it.

    Parameters
    ----------
    name : str
    way : {"embedded", "local", "download"}
        What can be downloaded may also lie in a local folder.
    description, source, terms : str
        What it is, where it comes from, and on what terms.
    shapes : mapping of str to tuple of int
        Of every array.
    megabytes : float
        Of the file; of the arrays in memory where there is no file.
    experiments : tuple of str
        Those that use it.
    checksums : tuple of str
        Of the arrays, not of the file; empty where they differ between machines.
    remotes : tuple of Remote
        The files to download.
    untried : str
        What about a download was never tried, or nothing.

    Examples
    --------
    >>> from ikpca_papers.data import find
    >>> entry = find("usps")
    >>> entry.way, entry.file
    ('download', 'usps.npz')
    """

    name: str
    way: Literal["embedded", "local", "download"]
    description: str
    source: str
    terms: str
    shapes: Mapping[str, tuple[int, ...]]
    megabytes: float
    experiments: tuple[str, ...]
    checksums: tuple[str, ...] = ()
    remotes: tuple[Remote, ...] = ()
    untried: str = ""

    @property
    def file(self) -> str:
        """Its name in a data folder and in the cache."""
        return f"{self.name}.npz"


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
    >>> from ikpca_papers.data import checksum_of
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
    >>> from ikpca_papers.data import load
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


@cache
def registry() -> MappingProxyType[str, Entry]:
    """All data sets by name.

    Returns
    -------
    mapping of str to Entry

    Examples
    --------
    >>> from ikpca_papers.data import registry
    >>> usps = registry()["usps"]
    >>> usps.way, usps.shapes["X_train"], usps.experiments
    ('download', (7291, 256), ('usps-kpca', 'usps-clustering'))
    """
    text = files("ikpca_papers.data").joinpath("registry.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return MappingProxyType({name: _entry(name, fields) for name, fields in table.items()})


def find(name: str) -> Entry:
    """The data set of that name; an unknown one is answered with the nearest.

    Parameters
    ----------
    name : str

    Returns
    -------
    Entry

    Examples
    --------
    >>> from ikpca_papers.data import find
    >>> find("ups")
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: there is no data set 'ups'; did you mean 'usps'?
    """
    known = registry()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
    raise InvalidInput(f"there is no data set {name!r}; {remedy}")


def _entry(name: str, fields: dict[str, Any]) -> Entry:
    shapes = {array: tuple(shape) for array, shape in fields["shapes"].items()}
    ready = {
        **fields,
        "shapes": MappingProxyType(shapes),
        "experiments": tuple(fields["experiments"]),
        "checksums": tuple(fields.get("checksums", ())),
        "remotes": tuple(Remote(**remote) for remote in fields.get("remotes", ())),
    }
    return Entry(name, **ready)
