"""Description of a model file without instantiating its objects."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ikpca.errors import UnreadableFile
from ikpca.model_files.codec import Array, Tree
from ikpca.model_files.container import read_container

#: Maximum length of a text in the description.
_MAX_LENGTH = 60


def describe_model_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the class, its parameters and the shapes of its attributes, as text.

    Checksums are verified, but no object is created.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict
        "kind", "class", "written_by", "format_version", "checksums", "parameters" and "attributes".
    """
    manifest, arrays = read_container(path)
    match manifest.kind, manifest.content:
        case "model", {"model": [str(name), dict(parameters), dict(attributes)]}:
            pass
        case "model", _:
            raise UnreadableFile(f"{path} cannot be read: it does not contain a model.")
        case kind, _:
            raise UnreadableFile(
                f"{path} cannot be described: it is a {_truncate(kind)}, not a model."
            )
    # Private attributes are of no interest to users.
    fitted = {key: part for key, part in attributes.items() if not key.startswith("_")}
    return {
        "kind": manifest.kind,
        "class": _class_name(name),
        "written_by": f"ikpca {_truncate(manifest.library_version)}",
        "format_version": manifest.format_version,
        "checksums": "valid",
        "parameters": _describe_values(parameters, arrays),
        "attributes": _describe_values(fitted, arrays),
    }


def _describe_values(trees: Mapping[str, Tree], arrays: Mapping[str, Array]) -> dict[str, str]:
    return {_truncate(key): _describe(tree, arrays) for key, tree in trees.items()}


def _describe(tree: Tree, arrays: Mapping[str, Array]) -> str:
    """Return numbers and text as text, and the kind and size of everything else."""
    if isinstance(tree, list):
        return f"list of {len(tree)}"
    if isinstance(tree, dict):
        return _describe_tagged(*next(iter(tree.items())), arrays) if len(tree) == 1 else "unknown"
    return _truncate(tree)


def _describe_tagged(tag: str, content: Tree, arrays: Mapping[str, Array]) -> str:
    match tag, content:
        case "array" | "columns", str() if content in arrays:
            array = arrays[content] if tag == "array" else arrays[content].T
            return f"{array.dtype} of {' × '.join(map(str, array.shape)) or 'one number'}"
        case "scalar", {"array": str(name)} if name in arrays and not arrays[name].ndim:
            return str(arrays[name][()])
        case "choice", [str(kind), str(member)]:
            return f"{_class_name(kind)} {_truncate(member)}"
        case "model" | "object", [str(kind), *_]:
            return _class_name(kind)
        case "float", str(number):
            return _truncate(number)
    return _truncate(tag)


def _truncate(text: object) -> str:
    """Return printable text of limited length."""
    start = str(text)[: _MAX_LENGTH + 1]
    printable = "".join(each if each.isprintable() else "?" for each in start)
    return printable if len(printable) <= _MAX_LENGTH else f"{printable[:_MAX_LENGTH]}…"


def _class_name(name: str) -> str:
    """Return the name of a class without its package."""
    return _truncate(name.rpartition(".")[2])
