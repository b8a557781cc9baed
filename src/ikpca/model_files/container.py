"""Container of a model file: arrays, manifest, checksums, previous generation."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ikpca.errors import InvalidInput, UnreadableFile
from ikpca.model_files.atomic import atomic_write, unwritable_file_errors
from ikpca.model_files.codec import Array, Tree

#: Format that is written and read; other formats raise an error.
FORMAT_VERSION = 2
#: Limit of the header, which contains the manifest: far above any model, far below memory.
_HEADER_LIMIT = 64 * 2**20
#: safetensors starts with the length of its header.
_LENGTH_BYTES = 8
#: Keys of the metadata.
_MANIFEST, _DIGEST = "ikpca", "sha256"


@dataclass(frozen=True)
class Manifest:
    """The JSON part of a file."""

    #: "model" or "checkpoint".
    kind: str
    #: The object, encoded by :class:`Encoder`.
    content: Tree
    #: Digests of the arrays, including type and shape.
    digests: Mapping[str, str]
    #: Version of ikpca that wrote the file; for information only.
    library_version: str
    format_version: int = FORMAT_VERSION

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Read a manifest; raise an error for another format version."""
        try:
            fields: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UnreadableFile(f"the manifest is not JSON ({error})") from None
        _check_version(fields)
        if set(fields) != set(cls.__dataclass_fields__):
            raise UnreadableFile("the manifest has other fields than expected")
        manifest = cls(**fields)
        if not isinstance(manifest.digests, dict) or not isinstance(manifest.kind, str):
            raise UnreadableFile("the manifest has fields of a wrong type")
        return manifest


def _check_version(fields: Any) -> None:
    version = fields.get("format_version") if isinstance(fields, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise UnreadableFile("the manifest names no format version")
    if version > FORMAT_VERSION:
        raise UnreadableFile(
            f"it was written in format version {version}, and this ikpca reads version "
            f"{FORMAT_VERSION}; install a newer ikpca"
        )
    if version < FORMAT_VERSION:
        raise UnreadableFile(
            "it was written by a development version before 0.1; fit the model again and save it"
        )


def _digest(array: Array) -> str:
    sha = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    # A view of the bytes, without a copy.
    sha.update(array.reshape(-1).view("u1").data)
    return sha.hexdigest()


def digests_of(arrays: Mapping[str, Array]) -> dict[str, str]:
    """Return the SHA-256 of type, shape and bytes of every array, by name."""
    return {name: _digest(array) for name, array in arrays.items()}


def write_container(
    path: str | os.PathLike[str], manifest: Manifest, arrays: Mapping[str, Array]
) -> None:
    """Write a file atomically: ``path`` is at all times either the old file or the new one."""
    from safetensors.numpy import save

    target = Path(path)
    text = json.dumps(vars(manifest), allow_nan=False, separators=(",", ":"))
    if len(text) > _HEADER_LIMIT // 2:
        raise InvalidInput(
            f"the manifest of {target} would be {len(text)} bytes: shorten history_."
        )
    data = save(dict(arrays), {_MANIFEST: text, _DIGEST: _sha256(text)})
    with atomic_write(target) as file:
        file.write(data)


def read_container(path: str | os.PathLike[str]) -> tuple[Manifest, dict[str, Array]]:
    """Read and check the manifest and the arrays of a file; no class is needed."""
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


def is_complete(path: Path) -> bool:
    """Return True if a file has a valid manifest and the right length, without reading arrays.

    This detects truncated files.
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
    """Check the length of the header before memory is allocated for it."""
    if source.is_dir():
        raise UnreadableFile("it is a folder")
    size = source.stat().st_size
    with source.open("rb") as file:
        start = file.read(_LENGTH_BYTES)
    length = int.from_bytes(start, "little")
    if len(start) < _LENGTH_BYTES or length > size - _LENGTH_BYTES:
        raise UnreadableFile("it is truncated, or not a model file")
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
    if digests_of(arrays) != manifest.digests:
        raise UnreadableFile("the checksum of an array is wrong, or an array is missing")
    return manifest, arrays


def _manifest(metadata: Any) -> Manifest:
    text = (metadata or {}).get(_MANIFEST)
    if text is None:
        raise UnreadableFile("it has no manifest of ikpca")
    # The version is checked first, because other versions may use other checksums.
    manifest = Manifest.from_json(text)
    if _sha256(text) != metadata.get(_DIGEST):
        raise UnreadableFile("the checksum of the manifest is wrong")
    return manifest


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def previous_generation(path: Path) -> Path:
    """Return the path of the generation before the newest one."""
    return path.with_name(f"{path.name}.previous")


def write_generation(path: Path, manifest: Manifest, arrays: Mapping[str, Array]) -> None:
    """Write a new generation and keep the last one as the previous one.

    A damaged file does not replace the previous generation, which may be the only valid one.
    """
    if path.exists() and is_complete(path):
        with unwritable_file_errors(path):
            _link(path, previous_generation(path))
    write_container(path, manifest, arrays)


def _link(path: Path, name: Path) -> None:
    """Give the file a second name atomically; ``path`` always exists."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.link")
    try:
        os.link(path, temporary)
    except OSError:
        # Without hard links, ``path`` does not exist until the new file is written.
        os.replace(path, name)
        return
    try:
        os.replace(temporary, name)
    finally:
        # After a failed write both names already refer to one file, and renaming does nothing.
        temporary.unlink(missing_ok=True)


def read_newest(path: Path) -> tuple[Manifest, dict[str, Array], Path] | None:
    """Read the newest valid generation; return it and its path, or None if there is no file."""
    existing = [each for each in (path, previous_generation(path)) if each.exists()]
    for each in existing:
        try:
            return *read_container(each), each
        except UnreadableFile:
            if each == existing[-1]:
                raise
    return None
