"""Description of a model file without instantiating its objects."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ikpca.errors import UnreadableFile
from ikpca.model_files.codec import Array, Tree
from ikpca.model_files.container import read_container

#: As much of a text as is shown; a file may hold any amount.
_SHOWN = 60


def describe_model_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The class, its parameters and the shapes of its attributes, as text.

    Checksums are compared, as in loading; no class is looked up and no object built.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict
        "kind", "class", "written_by", "format_version", "parameters" and "attributes".
    """
    manifest, arrays = read_container(path)
    if manifest.kind != "model":
        raise UnreadableFile(
            f"{path} cannot be described: it is a {_cut(manifest.kind)}, not a model."
        )
    name, parameters, attributes = _model(path, manifest.content)
    return {
        "kind": _cut(manifest.kind),
        "class": _cut(_own(name)),
        "written_by": f"ikpca {_cut(manifest.library_version)}",
        "format_version": manifest.format_version,
        "checksums": "right",
        "parameters": {_cut(key): _words(part, arrays) for key, part in parameters.items()},
        "attributes": {
            _cut(key): _words(part, arrays)
            for key, part in attributes.items()
            # What the model needs for itself tells a reader nothing.
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
    raise UnreadableFile(f"{path} cannot be read: it holds no model.")


def _words(tree: Tree, arrays: Mapping[str, Array]) -> str:
    """A number or a text as it is; of everything else its kind and size."""
    if tree is None or isinstance(tree, bool | int | float | str):
        return _cut(str(tree))
    if isinstance(tree, list):
        return f"list of {len(tree)}"
    if not isinstance(tree, dict) or len(tree) != 1:
        return "unknown"
    ((tag, content),) = tree.items()
    return _tagged(tag, content, arrays)


def _tagged(tag: str, content: Tree, arrays: Mapping[str, Array]) -> str:
    match tag, content:
        case "array" | "columns", str() if content in arrays:
            array = arrays[content] if tag == "array" else arrays[content].T
            return f"{array.dtype} of {' × '.join(map(str, array.shape)) or 'one number'}"
        case "scalar", {"array": str(name)} if name in arrays and not arrays[name].ndim:
            return str(arrays[name][()])
        case "choice", [str(kind), str(member)]:
            return f"{_cut(_own(kind))} {_cut(member)}"
        case "model" | "object", [str(kind), *_]:
            return _cut(_own(kind))
        case "float", str(number):
            return _cut(number)
    return _cut(tag)


def _cut(text: object) -> str:
    """One line of printable text, however long the file has it."""
    whole = "".join(sign if sign.isprintable() else "?" for sign in str(text)[: _SHOWN + 1])
    return whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}…"


def _own(name: str) -> str:
    """A class without its room: readers know it by that."""
    return name.rpartition(".")[2]
