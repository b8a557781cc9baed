"""Loading of data sets from whichever source is available."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from ikpca.errors import DataUnavailable, invalid_parameter
from ikpca_papers.data.download import (
    cache_folder,
    check_shapes,
    data_folder,
    fetch,
    is_offline,
    is_there,
    read_archive,
)
from ikpca_papers.data.photographs import (
    PHOTOGRAPHS,
    photograph,
    photograph_patches,
    square_photograph,
)
from ikpca_papers.data.registry import Arrays, DataSet, Entry, Origin, Progress, checksum_of, find
from ikpca_papers.data.synthetic import (
    drifting_parabola,
    parabola,
    perforated_swiss_roll,
    synthetic_faces,
)
from ikpca_papers.mocap.files import motion_arrays
from ikpca_papers.mocap.walker import synthetic_walker


def _digits() -> Arrays:
    from sklearn.datasets import load_digits

    found = load_digits()
    # Powers of two: the division is exact, so the checksum is the same everywhere.
    return {"X": found.data / 16, "y": found.target.astype(np.uint8)}


#: By name in the registry.
MAKERS: dict[str, Callable[[], Arrays]] = {
    "digits": _digits,
    "photographs": lambda: {name: photograph(name) for name in PHOTOGRAPHS},
    "flower_256": lambda: {"image": square_photograph("flower", 256)},
    "china_patches": lambda: {"X": photograph_patches("china", 40_000)},
    "parabola": lambda: {"X": parabola()},
    "drifting_parabola": lambda: drifting_parabola()._asdict(),
    "perforated_swiss_roll": lambda: perforated_swiss_roll()._asdict(),
    "walker": lambda: motion_arrays(synthetic_walker()),
    "synthetic_faces": lambda: synthetic_faces()._asdict(),
}


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
    >>> from ikpca_papers.data import load
    >>> roll = load("perforated_swiss_roll")
    >>> roll["X"].shape, roll.origin
    ((800, 3), 'embedded')
    """
    entry = find(name)
    if source not in get_args(Source):
        raise invalid_parameter(
            "source", source, "must be auto, embedded, local or download", "pass 'auto'"
        )
    if source == "auto":
        source = _best(entry, folder)
    if (source == "embedded") != (entry.way == "embedded"):
        ways = "embedded" if entry.way == "embedded" else "not embedded"
        raise invalid_parameter("source", source, f"{name} is {ways}", "pass source='auto'")
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
    >>> from ikpca_papers.data import where
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
    >>> from ikpca_papers.data import ways
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
