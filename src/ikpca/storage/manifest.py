"""What a file says of itself, and how it is known to be whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ikpca.errors import UnreadableFile
from ikpca.storage.encoding import Array, Tree

__all__ = ["FORMAT_VERSION", "Manifest", "digest", "digests_of"]

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
