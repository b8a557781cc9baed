"""Files of arrays and a JSON manifest with checksums, written atomically; no pickle."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from numpy.typing import NDArray

from ikpca.errors import InvalidInput, UnreadableFile, UnwritableFile

Array: TypeAlias = NDArray[Any]
#: None, bool, int, float, str, a list of trees, or a dict with one key: the tag of its content.
Tree: TypeAlias = Any

#: Format that is written and read; other formats raise an error.
FORMAT_VERSION = 3
#: Limit of the header, which contains the manifest: far above any model, far below memory.
_HEADER_LIMIT = 64 * 2**20
#: safetensors starts with the length of its header.
_LENGTH_BYTES = 8
#: Keys of the metadata.
_MANIFEST, _DIGEST = "ikpca", "sha256"


def check_writable(path: Path) -> None:
    """Raise an error if a path cannot be written to."""
    folder = path.parent
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "there is no folder"
        raise InvalidInput(
            f"{path}: {problem} {str(folder)!r}; create it first, or choose another folder."
        )
    with _unwritable_file_errors(path), tempfile.TemporaryFile(dir=folder):
        pass


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file in the folder of ``path``; at the end, sync it to disk and rename it.

    ``path`` is at all times either the old file or the new one.
    """
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder: pass the path of a file.")
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    with _unwritable_file_errors(path):
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        # Sync the rename to disk, on systems that allow folders to be opened.
        if os.name != "nt":
            handle = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@contextmanager
def _unwritable_file_errors(path: Path) -> Iterator[None]:
    """Convert OSError to UnwritableFile."""
    try:
        yield
    except OSError as error:
        raise UnwritableFile(
            error.errno,
            f"{path} could not be written ({error.strerror or error}); an existing file is "
            "untouched: free some space or choose another folder",
        ) from error


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
            fields: Tree = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UnreadableFile(f"the manifest is not JSON ({error})") from None
        written = fields.get("format_version") if isinstance(fields, dict) else None
        if not isinstance(written, int) or isinstance(written, bool) or written < 1:
            raise UnreadableFile("the manifest names no format version")
        if written > FORMAT_VERSION:
            raise UnreadableFile(
                f"it was written in format version {written}, and this ikpca reads version "
                f"{FORMAT_VERSION}; install a newer ikpca"
            )
        if written < FORMAT_VERSION:
            raise UnreadableFile(
                "it was written by a development version before 0.1; fit the model again and save "
                "it"
            )
        if set(fields) != set(cls.__dataclass_fields__):
            raise UnreadableFile("the manifest has unexpected fields")
        manifest = cls(**fields)
        if not isinstance(manifest.digests, dict) or not isinstance(manifest.kind, str):
            raise UnreadableFile("the manifest has fields of a wrong type")
        return manifest


def digests_of(arrays: Mapping[str, Array]) -> dict[str, str]:
    """Return the SHA-256 of type, shape and bytes of every array, by name."""
    digests = {}
    for name, array in arrays.items():
        sha = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
        # A view of the bytes, without a copy.
        sha.update(array.reshape(-1).view("u1").data)
        digests[name] = sha.hexdigest()
    return digests


def write_container(
    path: str | os.PathLike[str], kind: str, content: Tree, arrays: Mapping[str, Array]
) -> None:
    """Write an encoded object and its arrays to a file, atomically."""
    from safetensors.numpy import save

    manifest = Manifest(kind, content, digests_of(arrays), version("ikpca"))
    text = json.dumps(vars(manifest), allow_nan=False, separators=(",", ":"))
    if len(text) > _HEADER_LIMIT // 2:
        raise InvalidInput(f"the manifest of {path} would be {len(text)} bytes: shorten history_.")
    data = save(dict(arrays), {_MANIFEST: text, _DIGEST: hashlib.sha256(text.encode()).hexdigest()})
    with atomic_write(Path(path)) as file:
        file.write(data)


def read_container(path: str | os.PathLike[str]) -> tuple[Manifest, dict[str, Array]]:
    """Read and check the manifest and the arrays of a file; no class is needed."""
    source = Path(path)
    try:
        with _opened(source) as (manifest, file):
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if digests_of(arrays) != manifest.digests:
            raise UnreadableFile("the checksum of an array is wrong, or an array is missing")
        return manifest, arrays
    except FileNotFoundError:
        raise InvalidInput(f"{source} does not exist: pass the path of a saved model.") from None
    except UnreadableFile as error:
        raise UnreadableFile(f"{source} cannot be read: {error}.") from error
    except OSError as error:
        raise UnreadableFile(f"{source} cannot be read ({error.strerror or error}).") from error


@contextmanager
def _opened(source: Path) -> Iterator[tuple[Manifest, Any]]:
    """Open a file whose header and manifest are valid and whose length is right."""
    from safetensors import SafetensorError, safe_open

    if source.is_dir():
        raise UnreadableFile("it is a folder")
    # The length of the header is checked before memory is allocated for it.
    with source.open("rb") as binary:
        start = binary.read(_LENGTH_BYTES)
    length = int.from_bytes(start, "little")
    if len(start) < _LENGTH_BYTES or length > source.stat().st_size - _LENGTH_BYTES:
        raise UnreadableFile("it is truncated, or not a model file")
    if length > _HEADER_LIMIT:
        raise UnreadableFile(f"its header claims {length} bytes, more than {_HEADER_LIMIT}")
    try:
        with safe_open(source, framework="np") as file:
            metadata = file.metadata() or {}
            if _MANIFEST not in metadata:
                raise UnreadableFile("it has no manifest of ikpca")
            text = metadata[_MANIFEST]
            # The version is checked first, because other versions may use other checksums.
            manifest = Manifest.from_json(text)
            if hashlib.sha256(text.encode()).hexdigest() != metadata.get(_DIGEST):
                raise UnreadableFile("the checksum of the manifest is wrong")
            yield manifest, file
    except (SafetensorError, TypeError, AttributeError) as error:
        raise UnreadableFile(f"its arrays are damaged ({error})") from None
