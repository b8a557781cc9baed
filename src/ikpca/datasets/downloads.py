"""Files by address and checksum: resumed, locked, verified, and only then under their name."""

from __future__ import annotations

import errno
import hashlib
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from ikpca.datasets.entry import Progress
from ikpca.datasets.folders import is_offline, is_there
from ikpca.datasets.locks import locked, unwritable
from ikpca.datasets.transfer import ConnectionLost, transfer
from ikpca.errors import DataUnavailable, refuse

__all__ = ["fetch_file", "offline_error", "silent"]

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
    >>> from ikpca.datasets import fetch_file
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
        raise refuse("address", address, "must begin with http:// or https://", "pass such a one")
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
