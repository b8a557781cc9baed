"""Folders of data sets, and archives of arrays."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pooch
from numpy.typing import NDArray

from ikpca_papers.data.entries import Arrays
from ikpca_papers.errors import DataUnavailable

_FALSE = {"", "0", "false", "no", "off"}


def data_folder(folder: str | Path | None = None) -> Path | None:
    """Return the given folder, or the one that IKPCA_DATA names, or None.

    Parameters
    ----------
    folder : str or Path, optional

    Returns
    -------
    Path or None

    Examples
    --------
    >>> from ikpca_papers.data import data_folder
    >>> data_folder(".").is_dir()
    True
    """
    named = folder if folder is not None else os.environ.get("IKPCA_DATA") or None
    if named is None:
        return None
    path = Path(named).expanduser()
    if not os.path.isdir(path):
        by = "" if folder is not None else "IKPCA_DATA: "
        raise DataUnavailable(f"{by}{path}: is not a folder; name the one that has the .npz files.")
    return path


def cache_folder(folder: str | Path | None = None) -> Path:
    """Return the given folder, or the one that IKPCA_CACHE names, or the platform's.

    It need not exist.

    Parameters
    ----------
    folder : str or Path, optional

    Returns
    -------
    Path

    Examples
    --------
    >>> from ikpca_papers.data import cache_folder
    >>> cache_folder("downloads").name
    'downloads'
    """
    named = folder if folder is not None else os.environ.get("IKPCA_CACHE") or None
    if named is not None:
        return Path(named).expanduser()
    return Path(pooch.os_cache("ikpca"))


def is_offline(offline: bool | None = None) -> bool:
    """Return ``offline`` if it is given, else True if IKPCA_OFFLINE is set and not false.

    Parameters
    ----------
    offline : bool, optional

    Returns
    -------
    bool

    Examples
    --------
    >>> from ikpca_papers.data import is_offline
    >>> is_offline(True)
    True
    """
    if offline is not None:
        return offline
    return os.environ.get("IKPCA_OFFLINE", "").strip().lower() not in _FALSE


def read_archive(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """Read the arrays of an ``.npz`` file that ``shapes`` names; pickled objects are rejected.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rows.npz")
    >>> np.savez(path, X=np.ones((4, 2)), other=np.zeros(3))
    >>> read_archive(path, {"X": (4, 2)})["X"].shape
    (4, 2)
    """
    try:
        # numpy would read anything else as a bare array or as a pickle.
        if path.is_file() and not zipfile.is_zipfile(path):
            raise zipfile.BadZipFile("it is not a zip file, or truncated")
        with np.load(path, allow_pickle=False) as archive:
            _check_names(path, archive.files, shapes)
            arrays = {name: archive[name] for name in shapes}
    except DataUnavailable:
        raise
    except FileNotFoundError as error:
        raise DataUnavailable(f"{path}: there is no such file; check the folder.") from error
    except PermissionError as error:
        raise DataUnavailable(f"{path}: cannot be read; check its permissions.") from error
    except Exception as error:
        # Parsers of headers and of compressed data raise many kinds of errors.
        reason = " ".join(str(error).split())
        if "allow_pickle" in reason:
            raise DataUnavailable(
                f"{path}: holds pickled objects, which can run code and are not read; "
                "save plain arrays with numpy.savez."
            ) from error
        raise DataUnavailable(
            f"{path}: is damaged or no .npz file ({reason}); delete it and get it again."
        ) from error
    check_shapes(str(path), arrays, shapes)
    return arrays


def _check_names(path: Path, names: list[str], shapes: Mapping[str, tuple[int, ...]]) -> None:
    missing = [name for name in shapes if name not in names]
    if missing:
        raise DataUnavailable(
            f"{path}: lacks the array {missing[0]!r} (it has {', '.join(names) or 'none'}); "
            "get the file again."
        )


def check_shapes(where: str, arrays: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Reject arrays whose shapes differ from the registry."""
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise DataUnavailable(
                f"{where}: its array {name!r} has shape {arrays[name].shape} instead of {shape}; "
                "get the classic version of the data set."
            )
