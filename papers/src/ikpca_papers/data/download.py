"""Folders, archives, and downloads with checksums."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import ssl
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
import platformdirs
from filelock import FileLock
from numpy.typing import NDArray

from ikpca.errors import invalid_parameter
from ikpca_papers.data.entries import Arrays, Progress
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
    return Path(platformdirs.user_cache_dir("ikpca", appauthor=False))


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


def exists(path: Path) -> bool:
    """Return True if a file exists and its folder may be read."""
    # Path.exists raises in a folder without permission.
    return os.path.exists(path)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Create the folder of ``path`` and hold a lock for that file.

    The system releases the lock of a process that dies. The empty lock file stays, because another
    process may wait for it.
    """
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise unwritable_error(path.parent, error) from error
    try:
        yield
    finally:
        lock.release()


def unwritable_error(folder: Path, error: OSError) -> DataUnavailable:
    """Build the error for a folder that is read-only, absent or full."""
    reason = (error.strerror or str(error)).lower()
    return DataUnavailable(
        f"{folder}: cannot be written to ({reason}); make room or name another in IKPCA_CACHE."
    )


def read_archive(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """Read the arrays of an ``.npz`` file that ``shapes`` names; pickled objects are rejected.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rows.npz")
    >>> write_archive(path, {"X": np.ones((4, 2)), "other": np.zeros(3)})
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


def write_archive(path: Path, arrays: Arrays) -> None:
    """Write arrays to an ``.npz`` file atomically."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


_CHUNK = 1 << 16
_PARTIAL, _BEYOND = 206, 416


class ConnectionLost(ConnectionError):
    """A file ended early; the download can be resumed."""


def transfer(address: str, partial: Path, progress: Progress, name: str, timeout: float) -> None:
    """Download into ``partial``, from where it ends; it is complete when this returns.

    Raises any error of network and disk, and ConnectionLost for a truncated file.
    """
    have = partial.stat().st_size if partial.exists() else 0
    # A compressed transfer could not be resumed.
    headers = {"User-Agent": "ikpca", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        with urlopen(Request(address, headers=headers), timeout=timeout) as response:
            _receive(response, partial, have, progress, name)
    except HTTPError as error:
        # The part is complete, or of another version; its checksum decides.
        if error.code != _BEYOND or not have:
            raise


def _receive(
    response: HTTPResponse, partial: Path, have: int, progress: Progress, name: str
) -> None:
    start = 0
    # A server without ranges sends the whole file again.
    if response.status == _PARTIAL:
        start = _range_start(response.headers.get("Content-Range", ""))
        if start != have:
            partial.unlink(missing_ok=True)
            raise ConnectionLost("the server sent another range than requested")
    length = response.length
    total = None if length is None else start + length
    _check_space(partial.parent, length or 0)
    done = start
    progress(name, done, total)
    with partial.open("ab" if start else "wb") as file:
        while chunk := response.read1(_CHUNK):
            file.write(chunk)
            done += len(chunk)
            progress(name, done, total)
        file.flush()
        os.fsync(file.fileno())
    if total is not None and done < total:
        raise ConnectionLost(f"it ended after {done} of {total} bytes")


def _check_space(folder: Path, length: int) -> None:
    if shutil.disk_usage(folder).free < length:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _range_start(content_range: str) -> int:
    found = re.match(r"bytes (\d+)-", content_range)
    return int(found[1]) if found else -1


#: Status codes that are retried, beside all from 500 on.
_BUSY = {408, 425, 429}
_NETWORK = (URLError, ConnectionError, TimeoutError, HTTPException, ssl.SSLError)


def no_progress(name: str, done: int, total: int | None) -> None:
    """Ignore progress."""


def fetch_file(
    address: str,
    path: str | Path,
    sha256: str,
    *,
    any_line_ends: bool = False,
    offline: bool | None = None,
    progress: Progress | None = None,
    pauses: Sequence[float] = (0.5, 2.0),
    timeout: float = 30.0,
) -> Path:
    """Download a file unless it exists.

    An interrupted transfer is resumed, in this call and in later ones. The file appears under its
    name only when it is complete and its checksum matches; concurrent processes share one transfer.

    Parameters
    ----------
    address : str
        HTTP or HTTPS.
    path : str or Path
    sha256 : str
        In hexadecimal.
    any_line_ends : bool, default=False
        Ignore carriage returns in the checksum, for texts that exist with both line ends.
    offline : bool, optional
        Never use the network; by default the value of IKPCA_OFFLINE.
    progress : callable, optional
        Called with the file's name, bytes received, and bytes in total, if known.
    pauses : sequence of float, default=(0.5, 2.0)
        Seconds before the second try, the third, and so on; restarted when bytes were received.
    timeout : float, default=30.0
        Seconds without data before a connection counts as lost.

    Returns
    -------
    Path

    Raises
    ------
    DataUnavailable
        The file cannot be downloaded.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ikpca_papers.data import fetch_file
    >>> path = Path(tempfile.mkdtemp(), "walk.amc")
    >>> fetch_file("https://example.org/walk.amc", path, "0" * 64, offline=True)
    Traceback (most recent call last):
        ...
    ikpca_papers.errors.DataUnavailable: walk.amc: is not in the cache, and offline mode is on; ...
    """
    path = Path(path)
    if exists(path):
        return path
    if urlsplit(address).scheme not in {"http", "https"}:
        raise invalid_parameter(
            "address", address, "must begin with http:// or https://", "pass such an address"
        )
    if is_offline(offline):
        raise offline_error(path.name)
    download = _Download(
        address, path, sha256.lower(), any_line_ends, progress or no_progress, pauses, timeout
    )
    with file_lock(path):
        # Another process may have downloaded it meanwhile.
        if not exists(path):
            download.run()
    return path


def offline_error(name: str) -> DataUnavailable:
    """Build the error for a file that would have to be downloaded."""
    return DataUnavailable(
        f"{name}: is not in the cache, and offline mode is on; unset IKPCA_OFFLINE and fetch it, "
        "or name a folder that has it in IKPCA_DATA."
    )


@dataclass(frozen=True)
class _Download:
    address: str
    path: Path
    sha256: str
    any_line_ends: bool
    progress: Progress
    pauses: Sequence[float]
    timeout: float

    @property
    def partial(self) -> Path:
        return self.path.with_name(f"{self.path.name}.part")

    def run(self) -> None:
        resumed = self.partial.exists()
        found = self._transfer_all()
        if found != self.sha256 and resumed:
            # The earlier part may be of another version: start again without it.
            self.partial.unlink()
            found = self._transfer_all()
        if found != self.sha256:
            self.partial.unlink()
            raise DataUnavailable(
                f"{self.address}: has SHA-256 {found} instead of {self.sha256}; "
                "it was deleted: try again, or get the file elsewhere."
            )
        self.partial.replace(self.path)

    def _transfer_all(self) -> str:
        """Try until the file is complete; return its checksum."""
        failed, most = 0, self._size()
        while (lost := self._try_once()) is not None:
            # Tries are counted again after progress, for large files on unstable connections.
            failed = 1 if self._size() > most else failed + 1
            most = max(most, self._size())
            if failed > len(self.pauses):
                raise lost
            time.sleep(self.pauses[failed - 1])
        return _sha256(self.partial, self.any_line_ends)

    def _size(self) -> int:
        return self.partial.stat().st_size if self.partial.exists() else 0

    def _try_once(self) -> DataUnavailable | None:
        """Return None, or an error after which a retry may succeed; raise all others."""
        try:
            transfer(self.address, self.partial, self.progress, self.path.name, self.timeout)
        except HTTPError as error:
            failure = _unreachable_error(self.address, f"{error.code} {error.reason}")
            if error.code < 500 and error.code not in _BUSY:
                raise failure from error
            return failure
        except _NETWORK as error:
            return _unreachable_error(self.address, _reason(error))
        except OSError as error:
            # A partial file must not fill the disk.
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                self.partial.unlink(missing_ok=True)
            raise unwritable_error(self.path.parent, error) from error
        return None


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, OSError) and reason.strerror and not isinstance(reason, ConnectionLost):
        reason = reason.strerror
    return " ".join(str(reason).split()) or type(error).__name__


def _unreachable_error(address: str, reason: str) -> DataUnavailable:
    return DataUnavailable(
        f"{address}: could not be fetched ({reason}); try again later, the received part is kept."
    )


def _sha256(path: Path, any_line_ends: bool) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk.replace(b"\r", b"") if any_line_ends else chunk)
    return digest.hexdigest()
