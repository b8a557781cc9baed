"""A line of the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from ikpca.errors import refuse

__all__ = ["Entry", "Progress", "Remote"]

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
    >>> from ikpca.datasets import Remote
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
            raise refuse("path", self.path, "must lie below the cache folder", "pass a/name")


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
    >>> from ikpca.datasets import find
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
