"""Downloads of the registry, each into one file of the cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ikpca.datasets.archives import check_shapes, write_archive
from ikpca.datasets.dataset import Arrays
from ikpca.datasets.downloads import fetch_file, offline_error, silent
from ikpca.datasets.entry import Entry, Progress
from ikpca.datasets.folders import cache_folder, is_offline, is_there
from ikpca.datasets.locks import locked, unwritable
from ikpca.datasets.openml import fetch_mnist, fetch_olivetti, fetch_usps
from ikpca.datasets.recorded import recorded_walk
from ikpca.datasets.table import find
from ikpca.errors import DataUnavailable, refuse

__all__ = ["BUILDERS", "fetch"]

#: How the arrays come about in the cache folder, once the remote files are there.
BUILDERS: dict[str, Callable[[Path], Arrays]] = {
    "usps": fetch_usps,
    "mnist": fetch_mnist,
    "olivetti": fetch_olivetti,
    "cmu_walk_35_01": partial(recorded_walk, subject="35", trial="01"),
    "cmu_walk_07_01": partial(recorded_walk, subject="07", trial="01"),
}


def fetch(
    name: str,
    *,
    cache: str | Path | None = None,
    offline: bool | None = None,
    progress: Progress | None = None,
) -> Path:
    """Download a data set into the cache, unless it is there.

    The cache has the form of a data folder: what was fetched can be copied from one to the other.

    Parameters
    ----------
    name : str
    cache : str or Path, optional
        By default the folder that IKPCA_CACHE names, or the platform's.
    offline : bool, optional
        Never use the network; by default as IKPCA_OFFLINE says.
    progress : callable, optional
        Called with a file's name, bytes there, and bytes in total, if known.

    Returns
    -------
    Path
        Of the ``.npz`` file.

    Raises
    ------
    DataUnavailable
        In one sentence, what went wrong and what to do.

    Examples
    --------
    >>> from ikpca.datasets import fetch
    >>> fetch("digits")
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: name='digits': is embedded, there is nothing to fetch; call load.
    """
    entry = find(name)
    if entry.way == "embedded":
        raise refuse("name", name, "is embedded, there is nothing to fetch", "call load")
    path = cache_folder(cache) / entry.file
    if is_there(path):
        return path
    if entry.way == "local":
        raise DataUnavailable(
            f"{name}: has no address to be fetched from; put {entry.file} into a folder and name "
            f"that in IKPCA_DATA (it comes from: {entry.source})."
        )
    if is_offline(offline):
        raise offline_error(entry.file)
    with locked(path):
        if not is_there(path):
            _build(entry, path, progress or silent)
    return path


def _build(entry: Entry, path: Path, progress: Progress) -> None:
    cache = path.parent
    for remote in entry.remotes:
        fetch_file(
            remote.address,
            cache / remote.path,
            remote.sha256,
            any_line_ends=remote.any_line_ends,
            offline=False,
            progress=progress,
        )
    if not entry.remotes:
        progress(entry.file, 0, None)
    arrays = BUILDERS[entry.name](cache)
    check_shapes(entry.name, arrays, entry.shapes)
    try:
        write_archive(path, arrays)
    except OSError as error:
        raise unwritable(cache, error) from error
    size = path.stat().st_size
    progress(entry.file, size, size)
