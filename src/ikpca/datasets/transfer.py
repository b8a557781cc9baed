"""One try at a file over HTTP, going on where the last one ended."""

from __future__ import annotations

import errno
import os
import re
import shutil
from http.client import HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ikpca.datasets.entry import Progress

__all__ = ["ConnectionLost", "transfer"]

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
