"""Getting a data set by whichever way it can be had."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from ikpca.datasets.archives import check_shapes, read_archive
from ikpca.datasets.dataset import Arrays, DataSet, Origin, checksum_of
from ikpca.datasets.embedded import MAKERS
from ikpca.datasets.entry import Entry, Progress
from ikpca.datasets.fetching import fetch
from ikpca.datasets.folders import cache_folder, data_folder, is_offline, is_there
from ikpca.datasets.table import find
from ikpca.errors import DataUnavailable, refuse

__all__ = ["Source", "load", "ways", "where"]

Source = Literal["auto", "embedded", "local", "download"]


def load(
    name: str,
    folder: str | Path | None = None,
    source: Source = "auto",
    *,
    offline: bool | None = None,
    progress: Progress | None = None,
) -> DataSet:
    """Load a data set of the registry.

    Parameters
    ----------
    name : str
        One of :func:`registry`; an unknown one is answered with the nearest.
    folder : str or Path, optional
        Where ``NAME.npz`` may be; by default the folder that IKPCA_DATA names.
    source : {"auto", "embedded", "local", "download"}, default="auto"
        "auto" takes what is embedded, else what is in the folder, else what is in the cache, else
        downloads it into the cache.
    offline : bool, optional
        Never use the network; by default as IKPCA_OFFLINE says.
    progress : callable, optional
        Of a download: called with a file's name, bytes there, and bytes in total, if known.

    Returns
    -------
    DataSet

    Raises
    ------
    InvalidInput
        Where the name or the source is unknown, or the data set has no such source.
    DataUnavailable
        Where it is absent, damaged or out of reach.

    Examples
    --------
    >>> from ikpca.datasets import load
    >>> roll = load("perforated_swiss_roll")
    >>> roll["X"].shape, roll.origin
    ((800, 3), 'embedded')
    """
    entry = find(name)
    if source not in get_args(Source):
        raise refuse("source", source, "must be auto, embedded, local or download", "pass 'auto'")
    if source == "auto":
        source = _best(entry, folder)
    if (source == "embedded") != (entry.way == "embedded"):
        ways = "embedded" if entry.way == "embedded" else "not embedded"
        raise refuse("source", source, f"{name} is {ways}", "pass source='auto'")
    if source == "embedded":
        arrays = MAKERS[name]()
        check_shapes(name, arrays, entry.shapes)
        return _data_set(entry, arrays, "embedded", None)
    if source == "local":
        path = _local(entry, folder)
    else:
        path = fetch(name, offline=offline, progress=progress)
    origin: Origin = "local" if source == "local" else "download"
    return _data_set(entry, read_archive(path, entry.shapes), origin, path)


def where(name: str, folder: str | Path | None = None) -> Path | None:
    """The file that :func:`load` would read, or None: embedded, or not there yet.

    Parameters
    ----------
    name : str
        One of :func:`registry`.
    folder : str or Path, optional
        As for :func:`load`.

    Returns
    -------
    Path or None

    Examples
    --------
    >>> from ikpca.datasets import where
    >>> where("digits") is None
    True
    """
    entry = find(name)
    return None if entry.way == "embedded" else _in_folder(entry, folder) or _in_cache(entry)


def ways(
    name: str, folder: str | Path | None = None, *, offline: bool | None = None
) -> tuple[str, ...]:
    """How a data set can be had here and now, the way that :func:`load` takes first.

    Parameters
    ----------
    name : str
        One of :func:`registry`.
    folder : str or Path, optional
    offline : bool, optional
        Both as for :func:`load`.

    Returns
    -------
    tuple of {"embedded", "local", "cached", "download"}
        Empty where there is none.

    Examples
    --------
    >>> from ikpca.datasets import ways
    >>> ways("parabola")
    ('embedded',)
    """
    entry = find(name)
    if entry.way == "embedded":
        return ("embedded",)
    open_ways = {
        "local": _in_folder(entry, folder) is not None,
        "cached": _in_cache(entry) is not None,
        "download": entry.way == "download" and not is_offline(offline),
    }
    return tuple(way for way, is_open in open_ways.items() if is_open)


def _in_folder(entry: Entry, folder: str | Path | None) -> Path | None:
    data = data_folder(folder)
    path = None if data is None else data / entry.file
    return path if path is not None and is_there(path) else None


def _in_cache(entry: Entry) -> Path | None:
    try:
        path = cache_folder() / entry.file
    except DataUnavailable:
        # Without the package that knows the platform's folder nothing was ever fetched into it.
        return None
    return path if is_there(path) else None


def _best(entry: Entry, folder: str | Path | None) -> Source:
    if entry.way == "embedded":
        return "embedded"
    return "local" if _in_folder(entry, folder) else "download"


def _local(entry: Entry, folder: str | Path | None) -> Path:
    data = data_folder(folder)
    if data is None:
        raise DataUnavailable(
            f"{entry.name}: no data folder is named; name the one that has {entry.file} "
            "in IKPCA_DATA."
        )
    path = data / entry.file
    if not is_there(path):
        raise DataUnavailable(
            f"{path}: there is no such file; put it there, or fetch it where it can be fetched."
        )
    return path


def _data_set(entry: Entry, arrays: Arrays, origin: Origin, path: Path | None) -> DataSet:
    checksum = checksum_of(arrays)
    known = checksum in entry.checksums if entry.checksums else None
    return DataSet(entry.name, arrays, entry.description, origin, path, checksum, known)
