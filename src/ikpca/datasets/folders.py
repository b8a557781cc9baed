"""Where data lie: the user's folder, the cache, and whether the network may be used."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from ikpca.errors import DataUnavailable

__all__ = ["cache_folder", "data_folder", "is_offline", "is_there", "needed"]

_NO = {"", "0", "false", "no", "off"}


def data_folder(folder: str | Path | None = None) -> Path | None:
    """The folder given, or the one that IKPCA_DATA names, or None; refused where it is absent.

    Parameters
    ----------
    folder : str or Path, optional

    Returns
    -------
    Path or None

    Examples
    --------
    >>> from ikpca.datasets import data_folder
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
    """The folder given, or the one that IKPCA_CACHE names, or the platform's; it need not exist.

    Parameters
    ----------
    folder : str or Path, optional

    Returns
    -------
    Path

    Examples
    --------
    >>> from ikpca.datasets import cache_folder
    >>> cache_folder("downloads").name
    'downloads'
    """
    named = folder if folder is not None else os.environ.get("IKPCA_CACHE") or None
    if named is not None:
        return Path(named).expanduser()
    return Path(needed("platformdirs").user_cache_dir("ikpca", appauthor=False))


def is_offline(offline: bool | None = None) -> bool:
    """What is asked for, or whether IKPCA_OFFLINE is set to anything but no.

    Parameters
    ----------
    offline : bool, optional

    Returns
    -------
    bool

    Examples
    --------
    >>> from ikpca.datasets import is_offline
    >>> is_offline(True)
    True
    """
    if offline is not None:
        return offline
    return os.environ.get("IKPCA_OFFLINE", "").strip().lower() not in _NO


def is_there(path: Path) -> bool:
    """Whether a file can be seen; in a folder that may not be looked into, none can."""
    # Path.exists raises for such a folder.
    return os.path.exists(path)


def needed(package: str) -> Any:
    """Import what only downloads need."""
    try:
        return import_module(package)
    except ImportError as error:
        raise DataUnavailable(
            f"downloads need {package}; run: pip install 'ikpca[data]'."
        ) from error
