"""Container of a model file: tensors, manifest, checksums, previous generation."""

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
from ikpca.model_files.atomic import atomic_write, writing_error
from ikpca.model_files.codec import Array, Tree

#: Raised whenever a reader of the last version could not read what is written now.
FORMAT_VERSION = 1
_FIELDS = {"format_version", "library_version", "kind", "content", "digests"}


@dataclass(frozen=True)
class Manifest:
    """The JSON part of a file.

    Parameters
    ----------
    kind : str
        "model" or "checkpoint": what the file is for.
    content : tree
        The object, as :class:`Encoder` describes it.
    digests : dict of str to str
        Of every array, type and shape included.
    library_version : str
        Who wrote it; for a reader's eyes only.
    format_version : int
    """

    kind: str
    content: Tree
    digests: Mapping[str, str]
    library_version: str
    format_version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """One line of text."""
        return json.dumps(vars(self), allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Read what ``to_json`` wrote; a version from the future is refused."""
        try:
            fields: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UnreadableFile(f"the manifest is not JSON ({error})") from None
        if not isinstance(fields, dict) or set(fields) != _FIELDS:
            _refuse_newer(fields)
            raise UnreadableFile("the manifest has other fields than it must have")
        _refuse_newer(fields)
        manifest = cls(**fields)
        if not isinstance(manifest.digests, dict) or not isinstance(manifest.kind, str):
            raise UnreadableFile("the manifest has fields of a wrong type")
        return manifest

    def check(self, arrays: Mapping[str, Array]) -> None:
        """Refuse arrays that are not those which were written."""
        if set(arrays) != set(self.digests):
            raise UnreadableFile("arrays are missing, or there are more than the manifest lists")
        for name, array in arrays.items():
            if digest(array) != self.digests[name]:
                raise UnreadableFile(f"the checksum of {name} is wrong")


def digest(array: Array) -> str:
    """SHA-256 over type, shape and bytes."""
    sha = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    # A view of the bytes, as hashing needs neither a copy nor a type.
    sha.update(array.reshape(-1).view("u1").data)
    return sha.hexdigest()


def digests_of(arrays: Mapping[str, Array]) -> dict[str, str]:
    """Of every array, by name."""
    return {name: digest(array) for name, array in arrays.items()}


def _refuse_newer(fields: Any) -> None:
    version = fields.get("format_version") if isinstance(fields, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise UnreadableFile("the manifest names no format version")
    if version > FORMAT_VERSION:
        raise UnreadableFile(
            f"it was written in format version {version}, and this ikpca reads up to "
            f"{FORMAT_VERSION}; install a newer ikpca"
        )


#: Of the header, which lists arrays and holds the manifest: far above any model, far below memory.
_HEADER_LIMIT = 64 * 2**20
#: safetensors begins with the length of its header.
_LENGTH_BYTES = 8
_MANIFEST, _DIGEST = "ikpca", "sha256"


def write_container(
    path: str | os.PathLike[str], manifest: Manifest, arrays: Mapping[str, Array]
) -> None:
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
    with atomic_write(target) as file:
        file.write(data)


def read_container(path: str | os.PathLike[str]) -> tuple[Manifest, dict[str, Array]]:
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


def is_complete(path: Path) -> bool:
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


def previous_generation(path: Path) -> Path:
    """Where the generation before the newest one is."""
    return path.with_name(f"{path.name}.previous")


def write_generation(path: Path, manifest: Manifest, arrays: Mapping[str, Array]) -> None:
    """Write the newest generation; the one that was newest becomes the previous one.

    One that is damaged does not: the previous one may be all that there is.
    """
    if path.exists() and is_complete(path):
        with writing_error(path):
            _also_as(path, previous_generation(path))
    write_container(path, manifest, arrays)


def _also_as(path: Path, name: Path) -> None:
    """A second name for the same file, put in place at once; ``path`` is never missing."""
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.link")
    try:
        os.link(path, beside)
    except OSError:
        # A file system without links: the newest one is then missing for a moment.
        os.replace(path, name)
        return
    try:
        os.replace(beside, name)
    finally:
        # Where a write failed, both names are of one file already, and renaming does nothing.
        beside.unlink(missing_ok=True)


def read_newest(path: Path) -> tuple[Manifest, dict[str, Array], Path] | None:
    """The newest generation that can be read and where it was; None where there is no file."""
    existing = [each for each in (path, previous_generation(path)) if each.exists()]
    for each in existing:
        try:
            return *read_container(each), each
        except UnreadableFile:
            if each == existing[-1]:
                raise
    return None
