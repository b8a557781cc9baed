"""Registry of data sets: descriptions, sources, checksums."""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput


@dataclass(frozen=True)
class Remote:
    """File that can be downloaded.

    Parameters
    ----------
    address : str
    path : str
        Relative to the cache folder.
    sha256 : str
        In hexadecimal, of the file without carriage returns.

    Examples
    --------
    >>> from ikpca_papers.data import Remote
    >>> Remote("https://example.org/rows.csv", "example/rows.csv", "0" * 64).path
    'example/rows.csv'
    """

    address: str
    path: str
    sha256: str


@dataclass(frozen=True)
class Entry:
    """Description of a data set, and its sources.

    Parameters
    ----------
    name : str
    way : {"embedded", "local", "download"}
        A data set that can be downloaded may also be in a local folder.
    description, source, terms : str
        Contents, origin and license.
    shapes : mapping of str to tuple of int
        Of every array.
    megabytes : float
        Of the file; of the arrays in memory if there is no file.
    experiments : tuple of str
        Experiments that use it.
    checksums : tuple of str
        Of the arrays, not of the file; empty if they differ between machines.
    remotes : tuple of Remote
        The files to download.
    untried : str
        Untested steps of the download, or empty.

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
        """File name in a data folder and in the cache."""
        return f"{self.name}.npz"


Arrays = Mapping[str, NDArray[Any]]
Origin = Literal["embedded", "local", "download"]


def checksum_of(arrays: Arrays) -> str:
    """SHA-256 over names, dtypes, shapes and values, in hexadecimal.

    It does not depend on the order of names, byte order, memory layout or compression.

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
        # A 0-d array cannot be viewed as bytes.
        digest.update(plain.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class DataSet:
    """Read-only arrays by name.

    Parameters
    ----------
    name : str
        Its name in the registry.
    arrays : mapping of str to array
    description : str
    origin : {"embedded", "local", "download"}
        The source.
    path : Path or None
        The file.
    checksum : str
        Of the arrays, see :func:`checksum_of`.
    as_recorded : bool or None
        True if the checksum is that of the registry; None if the registry has none, because last
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
        """Return an array."""
        return self.arrays[name]


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


@cache
def registry() -> MappingProxyType[str, Entry]:
    """Return all data sets by name.

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
    """Return the data set of that name; the error for an unknown one suggests the nearest.

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
    entries = registry()
    if name in entries:
        return entries[name]
    near = difflib.get_close_matches(name.lower(), entries, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(entries)}."
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
