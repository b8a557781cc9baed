"""Downloads with checksums into a cache."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import ssl
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException, HTTPResponse
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import DataUnavailable, invalid_parameter
from ikpca.tables import check_npz_member
from ikpca_papers.data.registry import Arrays, Entry, Progress, find
from ikpca_papers.mocap.files import recorded_walk

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
    """The folder given, or the one that IKPCA_CACHE names, or the platform's; it need not exist.

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
    >>> from ikpca_papers.data import is_offline
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


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Make the folder of ``path`` and wait until nobody else is at that file.

    The system lets go of the lock of a process that dies. Its empty file stays, since taking it
    away could take it from under somebody who waits.
    """
    filelock = needed("filelock")
    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise unwritable(path.parent, error) from error
    try:
        yield
    finally:
        lock.release()


def unwritable(folder: Path, error: OSError) -> DataUnavailable:
    """The sentence for a folder that is read-only, absent or full."""
    reason = (error.strerror or str(error)).lower()
    return DataUnavailable(
        f"{folder}: cannot be written to ({reason}); make room or name another in IKPCA_CACHE."
    )


def read_archive(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file that ``shapes`` names; pickled objects are refused.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rows.npz")
    >>> write_archive(path, {"X": np.ones((4, 2)), "other": np.zeros(3)})
    >>> read_archive(path, {"X": (4, 2)})["X"].shape
    (4, 2)
    """
    try:
        # numpy would take anything else for a bare array or for a pickle.
        if path.is_file() and not zipfile.is_zipfile(path):
            raise zipfile.BadZipFile("it is not a zip file, or cut short")
        with np.load(path, allow_pickle=False) as archive:
            _check_names(path, archive.files, shapes)
            for name in shapes:
                check_npz_member(path, name)
            arrays = {name: archive[name] for name in shapes}
    except DataUnavailable:
        raise
    except FileNotFoundError as error:
        raise DataUnavailable(f"{path}: there is no such file; check the folder.") from error
    except PermissionError as error:
        raise DataUnavailable(f"{path}: may not be read; ask for permission.") from error
    except Exception as error:
        # Parsers of headers and of compressed data complain of damage in a dozen ways.
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
    """Refuse arrays that are not what the registry says."""
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise DataUnavailable(
                f"{where}: its array {name!r} has shape {arrays[name].shape} instead of {shape}; "
                "get the classic version of the data set."
            )


def write_archive(path: Path, arrays: Arrays) -> None:
    """Write beside ``path`` and rename: no reader ever finds half a file."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


_CHUNK = 1 << 16
_PARTIAL, _BEYOND = 206, 416


class ConnectionLost(ConnectionError):
    """The file ended early; what there is of it can be gone on from."""


def transfer(address: str, partial: Path, progress: Progress, name: str, timeout: float) -> None:
    """Fetch into ``partial``, from where it ends; it is complete when this returns.

    Raises whatever the network and the disk raise, and ConnectionLost for a file cut short.
    """
    have = partial.stat().st_size if partial.exists() else 0
    # Compressed on the way, bytes could neither be counted nor gone on from.
    headers = {"User-Agent": "ikpca", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        with urlopen(Request(address, headers=headers), timeout=timeout) as response:
            _receive(response, partial, have, progress, name)
    except HTTPError as error:
        # Nothing lies beyond what is there; whether that is the file, its checksum will tell.
        if error.code != _BEYOND or not have:
            raise


def _receive(
    response: HTTPResponse, partial: Path, have: int, progress: Progress, name: str
) -> None:
    start = 0
    # A server that knows no ranges answers with the whole file, which then begins anew.
    if response.status == _PARTIAL:
        start = _first(response.headers.get("Content-Range", ""))
        if start != have:
            partial.unlink(missing_ok=True)
            raise ConnectionLost("the server sent another part than asked for")
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


def _first(content_range: str) -> int:
    found = re.match(r"bytes (\d+)-", content_range)
    return int(found[1]) if found else -1


#: What may be better in a moment, beside everything from 500 on.
_BUSY = {408, 425, 429}
_NETWORK = (URLError, ConnectionError, TimeoutError, HTTPException, ssl.SSLError)


def silent(name: str, done: int, total: int | None) -> None:
    """Report no progress."""


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
    """Download a file once; afterwards it is there.

    A cut connection is resumed, in this call and in later ones. The file appears under its name
    only when it is complete and its checksum right; two processes do not disturb each other.

    Parameters
    ----------
    address : str
        HTTP or HTTPS.
    path : str or Path
    sha256 : str
        In hexadecimal.
    any_line_ends : bool, default=False
        Leave carriage returns out of the checksum, for texts that are passed around with both.
    offline : bool, optional
        Never use the network; by default as IKPCA_OFFLINE says.
    progress : callable, optional
        Called with the file's name, bytes there, and bytes in total, if known.
    pauses : sequence of float, default=(0.5, 2.0)
        Seconds before the second try, the third, and so on; counted anew whenever bytes came.
    timeout : float, default=30.0
        Seconds of silence before a connection counts as cut.

    Returns
    -------
    Path

    Raises
    ------
    DataUnavailable
        In one sentence, what went wrong and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ikpca_papers.data import fetch_file
    >>> path = Path(tempfile.mkdtemp(), "walk.amc")
    >>> fetch_file("https://example.org/walk.amc", path, "0" * 64, offline=True)
    Traceback (most recent call last):
        ...
    ikpca.errors.DataUnavailable: walk.amc: is not in the cache, and offline mode is on; ...
    """
    path = Path(path)
    if is_there(path):
        return path
    if urlsplit(address).scheme not in {"http", "https"}:
        raise invalid_parameter(
            "address", address, "must begin with http:// or https://", "pass such a one"
        )
    if is_offline(offline):
        raise offline_error(path.name)
    download = _Download(
        address, path, sha256.lower(), any_line_ends, progress or silent, pauses, timeout
    )
    with locked(path):
        # Somebody else may have fetched it while this process waited.
        if not is_there(path):
            download.run()
    return path


def offline_error(name: str) -> DataUnavailable:
    """The sentence for what only the network has."""
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
        again = self.partial.exists()
        found = self._complete()
        if found != self.sha256 and again:
            # What was left from before may be of another version: once more, from nothing.
            self.partial.unlink()
            found = self._complete()
        if found != self.sha256:
            self.partial.unlink()
            raise DataUnavailable(
                f"{self.address}: has SHA-256 {found} instead of {self.sha256}; "
                "it was thrown away: try again, or get the file elsewhere."
            )
        self.partial.replace(self.path)

    def _complete(self) -> str:
        """Try until all of the file is there; its checksum."""
        failed, most = 0, self._size()
        while (lost := self._failure()) is not None:
            # A line that is cut every minute still brings a large file, bit by bit.
            failed = 1 if self._size() > most else failed + 1
            most = max(most, self._size())
            if failed > len(self.pauses):
                raise lost
            time.sleep(self.pauses[failed - 1])
        return _sha256(self.partial, self.any_line_ends)

    def _size(self) -> int:
        return self.partial.stat().st_size if self.partial.exists() else 0

    def _failure(self) -> DataUnavailable | None:
        """Try once: None, or what another try may cure; raises what none will."""
        try:
            transfer(self.address, self.partial, self.progress, self.path.name, self.timeout)
        except HTTPError as error:
            refused = _unreachable(self.address, f"{error.code} {error.reason}")
            if error.code < 500 and error.code not in _BUSY:
                raise refused from error
            return refused
        except _NETWORK as error:
            return _unreachable(self.address, _reason(error))
        except OSError as error:
            # Half a file that fills the disk is in everybody's way.
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                self.partial.unlink(missing_ok=True)
            raise unwritable(self.path.parent, error) from error
        return None


def _reason(error: Exception) -> str:
    said = error.reason if isinstance(error, URLError) else error
    if isinstance(said, OSError) and said.strerror and not isinstance(said, ConnectionLost):
        said = said.strerror
    return " ".join(str(said).split()) or type(error).__name__


def _unreachable(address: str, reason: str) -> DataUnavailable:
    return DataUnavailable(
        f"{address}: could not be fetched ({reason}); try again later, what has come is kept."
    )


def _sha256(path: Path, any_line_ends: bool) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk.replace(b"\r", b"") if any_line_ends else chunk)
    return digest.hexdigest()


#: How often every digit comes in the classic training sets: a split elsewhere has other counts.
_USPS_COUNTS = (1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644)
_MNIST_COUNTS = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)


def fetch_usps(cache: Path) -> Arrays:
    """USPS from OpenML, whose labels count from 1."""
    rows, labels = _openml(cache, "usps", 41082)
    # The classic files have three decimals, and so has what this library calls USPS.
    pixels = np.round(rows.astype(np.float64), 3).astype(np.float32)
    return _split("usps", pixels, labels - 1, _USPS_COUNTS)


def fetch_mnist(cache: Path) -> Arrays:
    """MNIST from OpenML."""
    rows, labels = _openml(cache, "mnist", 554)
    return _split("mnist", rows.astype(np.uint8), labels, _MNIST_COUNTS)


def fetch_olivetti(cache: Path) -> Arrays:
    """Olivetti faces, in the order of the people."""
    from sklearn.datasets import fetch_olivetti_faces

    def fetched(home: Path) -> Any:
        return fetch_olivetti_faces(data_home=home)

    found = _through_scikit_learn(cache, "olivetti", fetched)
    images = np.asarray(found.images, dtype=np.float32)
    return {"images": images, "subject": np.asarray(found.target, dtype=np.uint8)}


def _openml(cache: Path, name: str, number: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    from sklearn.datasets import fetch_openml

    def fetched(home: Path) -> Any:
        # The slower of its readers, but it needs no pandas, whose version 3 the other stumbles on.
        return fetch_openml(
            data_id=number, data_home=home, as_frame=False, return_X_y=True, parser="liac-arff"
        )

    rows, labels = _through_scikit_learn(cache, name, fetched)
    return np.asarray(rows), np.asarray(labels).astype(np.int64)


def _through_scikit_learn(cache: Path, name: str, fetched: Callable[[Path], Any]) -> Any:
    """In a folder of its own, which is kept for another try where this one fails."""
    home = cache / f"{name}.scikit-learn"
    try:
        found = fetched(home)
    except (OSError, ValueError, LookupError, TypeError) as error:
        # The network, OpenML's own checksum, and what its readers make of an odd answer.
        reason = " ".join(str(error).split())
        raise DataUnavailable(
            f"{name}: scikit-learn could not fetch it ({reason}); try again later."
        ) from error
    shutil.rmtree(home, ignore_errors=True)
    return found


def _split(
    name: str, rows: NDArray[Any], labels: NDArray[np.int64], counts: tuple[int, ...]
) -> Arrays:
    """Training rows first; refused where the labels say that the order is another."""
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
