"""Loading of data sets: embedded, from a local folder, from the cache, or downloaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import numpy as np
import pooch
from numpy.typing import NDArray

from ikpca.errors import invalid_parameter
from ikpca.model_files import atomic_write
from ikpca_papers.data.entries import Arrays, DataSet, Entry, Origin, checksum_of, find
from ikpca_papers.data.files import (
    cache_folder,
    check_shapes,
    data_folder,
    is_offline,
    read_archive,
)
from ikpca_papers.data.photographs import (
    PHOTOGRAPHS,
    photograph,
    photograph_patches,
    square_photograph,
)
from ikpca_papers.data.synthetic import (
    drifting_parabola,
    parabola,
    perforated_swiss_roll,
    synthetic_faces,
)
from ikpca_papers.data.walker import synthetic_walker
from ikpca_papers.errors import DataUnavailable
from ikpca_papers.mocap import read_asf_amc


def _digits() -> Arrays:
    from sklearn.datasets import load_digits

    digits = load_digits()
    # Division by a power of two is exact, so the checksum is the same everywhere.
    return {"X": digits.data / 16, "y": digits.target.astype(np.uint8)}


#: Embedded data sets by name.
GENERATORS: dict[str, Callable[[], Arrays]] = {
    "digits": _digits,
    "photographs": lambda: {name: photograph(name) for name in PHOTOGRAPHS},
    "flower_256": lambda: {"image": square_photograph("flower", 256)},
    "china_patches": lambda: {"X": photograph_patches("china", 40_000)},
    "parabola": lambda: {"X": parabola()},
    "drifting_parabola": lambda: drifting_parabola()._asdict(),
    "perforated_swiss_roll": lambda: perforated_swiss_roll()._asdict(),
    "walker": lambda: synthetic_walker().arrays(),
    "synthetic_faces": lambda: synthetic_faces()._asdict(),
}


#: Number of each digit in the classic training sets; other splits have other counts.
_USPS_COUNTS = (1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644)
_MNIST_COUNTS = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)


def fetch_usps(cache: Path) -> Arrays:
    """Download USPS from OpenML, where labels start at 1."""
    rows, labels = _openml(cache, 41082)
    # The original files have three decimals.
    pixels = np.round(rows.astype(np.float64), 3).astype(np.float32)
    return _split("usps", pixels, labels - 1, _USPS_COUNTS)


def fetch_mnist(cache: Path) -> Arrays:
    """Download MNIST from OpenML."""
    rows, labels = _openml(cache, 554)
    return _split("mnist", rows.astype(np.uint8), labels, _MNIST_COUNTS)


def fetch_olivetti(cache: Path) -> Arrays:
    """Download the Olivetti faces, ordered by person."""
    from sklearn.datasets import fetch_olivetti_faces

    with TemporaryDirectory(dir=cache) as home:
        faces = fetch_olivetti_faces(data_home=home)
    images = np.asarray(faces.images, dtype=np.float32)
    return {"images": images, "subject": np.asarray(faces.target, dtype=np.uint8)}


def _openml(cache: Path, number: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    from sklearn.datasets import fetch_openml

    with TemporaryDirectory(dir=cache) as home:
        # The slower parser, but it needs no pandas; the other one fails with pandas 3.
        rows, labels = fetch_openml(
            data_id=number, data_home=home, as_frame=False, return_X_y=True, parser="liac-arff"
        )
    return np.asarray(rows), np.asarray(labels).astype(np.int64)


def _split(
    name: str, rows: NDArray[Any], labels: NDArray[np.int64], counts: tuple[int, ...]
) -> Arrays:
    """Split into training and test rows, after a check of their order by the labels."""
    first = sum(counts)
    if tuple(np.bincount(labels[:first], minlength=10)) != counts:
        raise DataUnavailable(
            f"{name}: its first {first} rows are not the classic training set; "
            f"get {name}.npz elsewhere and name its folder in IKPCA_DATA."
        )
    digits = labels.astype(np.uint8)
    return {
        "X_train": rows[:first],
        "y_train": digits[:first],
        "X_test": rows[first:],
        "y_test": digits[first:],
    }


def _read_walk(folder: Path, subject: str, trial: str) -> Arrays:
    mocap = folder / "mocap"
    return read_asf_amc(mocap / f"{subject}.asf", mocap / f"{subject}_{trial}.amc").arrays()


#: Functions from the cache folder with the remote files to arrays.
BUILDERS: dict[str, Callable[[Path], Arrays]] = {
    "usps": fetch_usps,
    "mnist": fetch_mnist,
    "olivetti": fetch_olivetti,
    "cmu_walk_35_01": partial(_read_walk, subject="35", trial="01"),
    "cmu_walk_07_01": partial(_read_walk, subject="07", trial="01"),
}


def fetch(name: str, *, cache: str | Path | None = None, offline: bool | None = None) -> Path:
    """Download a data set into the cache, unless it exists.

    The cache has the form of a data folder: files can be copied from one to the other.

    Parameters
    ----------
    name : str
    cache : str or Path, optional
        By default the folder that IKPCA_CACHE names, or the platform's.
    offline : bool, optional
        Never use the network; by default the value of IKPCA_OFFLINE.

    Returns
    -------
    Path
        Of the ``.npz`` file.

    Raises
    ------
    DataUnavailable
        The data set cannot be downloaded.

    Examples
    --------
    >>> from ikpca_papers.data import fetch
    >>> fetch("digits")
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: name='digits': is embedded, there is nothing to fetch; call load.
    """
    entry = find(name)
    if entry.way == "embedded":
        raise invalid_parameter("name", name, "is embedded, there is nothing to fetch", "call load")
    path = cache_folder(cache) / entry.file
    if os.path.exists(path):
        return path
    if entry.way == "local":
        raise DataUnavailable(
            f"{name}: has no address to be fetched from; put {entry.file} into a folder and name "
            f"that in IKPCA_DATA (it comes from: {entry.source})."
        )
    if is_offline(offline):
        raise DataUnavailable(
            f"{entry.file}: is not in the cache, and offline mode is on; unset IKPCA_OFFLINE and "
            "fetch it, or name a folder that has it in IKPCA_DATA."
        )
    try:
        _build(entry, path)
    except (OSError, ValueError, LookupError, TypeError) as error:
        # From the network, a checksum, the disk, or the parsers of scikit-learn.
        reason = " ".join(str(error).split()).split(". ")[0].rstrip(".")
        raise DataUnavailable(
            f"{name}: could not be fetched into {path.parent} ({reason}); check the network and "
            "the folder, and try again."
        ) from error
    return path


def _build(entry: Entry, path: Path) -> None:
    """Download the files of a data set, and write its arrays."""
    cache = path.parent
    cache.mkdir(parents=True, exist_ok=True)
    downloads = pooch.create(
        cache,
        base_url="",
        registry={remote.path: remote.sha256 for remote in entry.remotes},
        urls={remote.path: remote.address for remote in entry.remotes},
        retry_if_failed=2,
    )
    for remote in entry.remotes:
        downloads.fetch(remote.path, downloader=_download_text)
    arrays = BUILDERS[entry.name](cache)
    check_shapes(entry.name, arrays, entry.shapes)
    with atomic_write(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def _download_text(address: str, file: str, downloads: pooch.Pooch) -> None:
    """Download a text and remove its carriage returns, in which copies differ."""
    pooch.HTTPDownloader()(address, file, downloads)
    path = Path(file)
    path.write_bytes(path.read_bytes().replace(b"\r", b""))


Source = Literal["auto", "embedded", "local", "download"]


def load(
    name: str,
    folder: str | Path | None = None,
    source: Source = "auto",
    *,
    offline: bool | None = None,
) -> DataSet:
    """Load a data set of the registry.

    Parameters
    ----------
    name : str
        One of :func:`registry`.
    folder : str or Path, optional
        Folder of ``NAME.npz``; by default the one that IKPCA_DATA names.
    source : {"auto", "embedded", "local", "download"}, default="auto"
        "auto" tries embedded data, the folder, the cache, and the download, in this order.
    offline : bool, optional
        Never use the network; by default the value of IKPCA_OFFLINE.

    Returns
    -------
    DataSet

    Raises
    ------
    InvalidInput
        The name or the source is unknown, or the data set has no such source.
    DataUnavailable
        The data set is absent, damaged or out of reach.

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
        source = _auto_source(entry, folder)
    if (source == "embedded") != (entry.way == "embedded"):
        rule = f"{name} is {'embedded' if entry.way == 'embedded' else 'not embedded'}"
        raise invalid_parameter("source", source, rule, "pass source='auto'")
    if source == "embedded":
        arrays = GENERATORS[name]()
        check_shapes(name, arrays, entry.shapes)
        return _data_set(entry, arrays, "embedded", None)
    path = _local_path(entry, folder) if source == "local" else fetch(name, offline=offline)
    origin: Origin = "local" if source == "local" else "download"
    return _data_set(entry, read_archive(path, entry.shapes), origin, path)


def data_path(name: str, folder: str | Path | None = None) -> Path | None:
    """Return the file that :func:`load` would read; None if embedded or not downloaded.

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
    >>> from ikpca_papers.data import data_path
    >>> data_path("digits") is None
    True
    """
    entry = find(name)
    return None if entry.way == "embedded" else _in_folder(entry, folder) or _in_cache(entry)


def available_sources(
    name: str, folder: str | Path | None = None, *, offline: bool | None = None
) -> tuple[str, ...]:
    """Return the available sources of a data set, in the order in which :func:`load` tries them.

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
        Empty if the data set is not available.

    Examples
    --------
    >>> from ikpca_papers.data import available_sources
    >>> available_sources("parabola")
    ('embedded',)
    """
    entry = find(name)
    if entry.way == "embedded":
        return ("embedded",)
    available = {
        "local": _in_folder(entry, folder) is not None,
        "cached": _in_cache(entry) is not None,
        "download": entry.way == "download" and not is_offline(offline),
    }
    return tuple(source for source, is_available in available.items() if is_available)


def _in_folder(entry: Entry, folder: str | Path | None) -> Path | None:
    data = data_folder(folder)
    path = None if data is None else data / entry.file
    return path if path is not None and os.path.exists(path) else None


def _in_cache(entry: Entry) -> Path | None:
    path = cache_folder() / entry.file
    return path if os.path.exists(path) else None


def _auto_source(entry: Entry, folder: str | Path | None) -> Source:
    if entry.way == "embedded":
        return "embedded"
    return "local" if _in_folder(entry, folder) else "download"


def _local_path(entry: Entry, folder: str | Path | None) -> Path:
    data = data_folder(folder)
    if data is None:
        raise DataUnavailable(
            f"{entry.name}: no data folder is named; name the one that has {entry.file} "
            "in IKPCA_DATA."
        )
    path = data / entry.file
    if not os.path.exists(path):
        raise DataUnavailable(
            f"{path}: there is no such file; put it there, or download it if it has an address."
        )
    return path


def _data_set(entry: Entry, arrays: Arrays, origin: Origin, path: Path | None) -> DataSet:
    checksum = checksum_of(arrays)
    as_recorded = checksum in entry.checksums if entry.checksums else None
    return DataSet(entry.name, arrays, entry.description, origin, path, checksum, as_recorded)
