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
    if manifest.kind != "model":
        raise UnreadableFile(
            f"{path} cannot be described: it is a {_truncate(manifest.kind)}, not a model."
        )
    name, parameters, attributes = _model(path, manifest.content)
    return {
        "kind": _truncate(manifest.kind),
        "class": _truncate(_short_name(name)),
        "written_by": f"ikpca {_truncate(manifest.library_version)}",
        "format_version": manifest.format_version,
        "checksums": "valid",
        "parameters": {
            _truncate(key): _describe_value(part, arrays) for key, part in parameters.items()
        },
        "attributes": {
            _truncate(key): _describe_value(part, arrays)
            for key, part in attributes.items()
            # Private attributes are of no interest to users.
            if not key.startswith("_")
        },
    }


def _model(path: str | os.PathLike[str], content: Tree) -> tuple[str, Tree, Tree]:
    try:
        name, parameters, attributes = content["model"]
        if isinstance(name, str) and isinstance(parameters, dict) and isinstance(attributes, dict):
            return name, parameters, attributes
    except (TypeError, KeyError, ValueError):
        pass
    raise UnreadableFile(f"{path} cannot be read: it does not contain a model.")


def _describe_value(tree: Tree, arrays: Mapping[str, Array]) -> str:
    """Return numbers and text as text, and the kind and size of everything else."""
    if tree is None or isinstance(tree, bool | int | float | str):
        return _truncate(str(tree))
    if isinstance(tree, list):
        return f"list of {len(tree)}"
    if not isinstance(tree, dict) or len(tree) != 1:
        return "unknown"
    ((tag, content),) = tree.items()
    return _describe_tagged(tag, content, arrays)


def _describe_tagged(tag: str, content: Tree, arrays: Mapping[str, Array]) -> str:
    match tag, content:
        case "array" | "columns", str() if content in arrays:
            array = arrays[content] if tag == "array" else arrays[content].T
            return f"{array.dtype} of {' × '.join(map(str, array.shape)) or 'one number'}"
        case "scalar", {"array": str(name)} if name in arrays and not arrays[name].ndim:
            return str(arrays[name][()])
        case "choice", [str(kind), str(member)]:
            return f"{_truncate(_short_name(kind))} {_truncate(member)}"
        case "model" | "object", [str(kind), *_]:
            return _truncate(_short_name(kind))
        case "float", str(number):
            return _truncate(number)
    return _truncate(tag)


def _truncate(text: object) -> str:
    """Return printable text of limited length."""
    start = str(text)[: _MAX_LENGTH + 1]
    printable = "".join(each if each.isprintable() else "?" for each in start)
    return printable if len(printable) <= _MAX_LENGTH else f"{printable[:_MAX_LENGTH]}…"


def _short_name(name: str) -> str:
    """Return the name of a class without its package."""
    return name.rpartition(".")[2]
