"""One file of tensors with its manifest: written whole or not at all, read with suspicion."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ikpca.errors import InvalidInput, UnreadableFile
from ikpca.storage.encoding import Array
from ikpca.storage.manifest import Manifest
from ikpca.storage.whole import written_whole

__all__ = ["looks_whole", "read", "write"]

#: Of the header, which lists arrays and holds the manifest: far above any model, far below memory.
_HEADER_LIMIT = 64 * 2**20
#: safetensors begins with the length of its header.
_LENGTH_BYTES = 8
_MANIFEST, _DIGEST = "ikpca", "sha256"


def write(path: str | os.PathLike[str], manifest: Manifest, arrays: Mapping[str, Array]) -> None:
    """Write to a temporary file beside ``path``, force it to disk, and rename it.

    Whatever happens, ``path`` holds the old file or the new one.
    """
    from safetensors.numpy import save

    target = Path(path)
    text = manifest.to_json()
    if len(text) > _HEADER_LIMIT // 2:
        raise InvalidInput(
            f"the manifest of {target} would be {len(text)} bytes: shorten history_."
        )
    data = save(dict(arrays), {_MANIFEST: text, _DIGEST: _sha256(text)})
    with written_whole(target) as file:
        file.write(data)


def read(path: str | os.PathLike[str]) -> tuple[Manifest, dict[str, Array]]:
    """Manifest and arrays of a file, after every check that needs no class."""
    source = Path(path)
    try:
        _check_header(source)
        return _read(source)
    except FileNotFoundError:
        raise InvalidInput(f"{source} does not exist: pass the path of a saved model.") from None
    except UnreadableFile as error:
        raise UnreadableFile(f"{source} cannot be read: {error}.") from error
    except OSError as error:
        raise UnreadableFile(f"{source} cannot be read ({error.strerror or error}).") from error


def looks_whole(path: Path) -> bool:
    """Whether a file is of the length that it should be, under a manifest that is; arrays unread.

    Enough to tell a file that was cut off, at no cost.
    """
    from safetensors import SafetensorError, safe_open

    try:
        _check_header(path)
        with safe_open(path, framework="np") as file:
            _manifest(file.metadata())
    except (OSError, UnreadableFile, SafetensorError):
        return False
    return True


def _check_header(source: Path) -> None:
    """Before anything is allocated: the header must fit into the file, and be modest."""
    if source.is_dir():
        raise UnreadableFile("it is a folder")
    size = source.stat().st_size
    with source.open("rb") as file:
        start = file.read(_LENGTH_BYTES)
    length = int.from_bytes(start, "little")
    if len(start) < _LENGTH_BYTES or length > size - _LENGTH_BYTES:
        raise UnreadableFile("it is cut off, or not a model file")
    if length > _HEADER_LIMIT:
        raise UnreadableFile(f"its header claims {length} bytes, more than {_HEADER_LIMIT}")


def _read(source: Path) -> tuple[Manifest, dict[str, Array]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(source, framework="np") as file:
            manifest = _manifest(file.metadata())
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, TypeError, AttributeError) as error:
        raise UnreadableFile(f"its arrays are damaged ({error})") from None
    manifest.check(arrays)
    return manifest, arrays


def _manifest(metadata: Any) -> Manifest:
    text = (metadata or {}).get(_MANIFEST)
    if text is None:
        raise UnreadableFile("it has no manifest of ikpca")
    # A version from the future may do its checksums otherwise, so that question comes first.
    manifest = Manifest.from_json(text)
    if _sha256(text) != metadata.get(_DIGEST):
        raise UnreadableFile("the checksum of the manifest is wrong")
    return manifest


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
