"""From a tree of JSON values back to objects; nothing in a file is ever executed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ikpca.errors import UnreadableFile
from ikpca.storage.encoding import Array, Tree

__all__ = ["Decoder"]

_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


class Decoder:
    """Builds what a tree describes, out of classes that it is given.

    Parameters
    ----------
    arrays : mapping of str to ndarray
    find : callable
        From the name of a class to the class; whatever it does not know is refused.
    """

    def __init__(self, arrays: Mapping[str, Array], find: Callable[[str], type | None]) -> None:
        self._arrays = arrays
        self._find = find

    def decode(self, tree: Tree) -> Any:
        """The value of a tree."""
        try:
            return self._decode(tree)
        except UnreadableFile:
            raise
        except RecursionError:
            raise _wrong("values are nested too deeply") from None
        except Exception as error:
            # Whatever a forged manifest makes the classes complain of, it is the file's fault.
            raise _wrong(f"{type(error).__name__}: {error}") from error

    def _decode(self, tree: Tree) -> Any:
        if tree is None or isinstance(tree, bool | int | float | str):
            return tree
        if isinstance(tree, list):
            return [self._decode(part) for part in tree]
        if not isinstance(tree, dict) or len(tree) != 1:
            raise _wrong("a value has no single tag")
        ((tag, content),) = tree.items()
        read = self._readers.get(tag)
        if read is None:
            raise _wrong(f"the tag {tag!r} is unknown")
        return read(self, content)

    def _float(self, content: Tree) -> float:
        return _FLOATS[content]

    def _tuple(self, content: Tree) -> tuple[Any, ...]:
        return tuple(self._decode(part) for part in _list(content))

    def _dict(self, content: Tree) -> dict[Any, Any]:
        return {self._decode(key): self._decode(part) for key, part in _list(content)}

    def _array(self, content: Tree) -> Array:
        if content not in self._arrays:
            raise _wrong(f"there is no array {content!r}")
        return self._arrays[content]

    def _columns(self, content: Tree) -> Array:
        return self._array(content).T

    def _scalar(self, content: Tree) -> Any:
        value = self._decode(content)
        if not isinstance(value, np.ndarray) or value.ndim:
            raise _wrong("a number is not one")
        return value[()]

    def _strings(self, content: Tree) -> Array:
        text, shape, objects = content
        if not all(isinstance(part, str) for part in _list(text)):
            raise _wrong("text is not text")
        return np.array(text, dtype=object if objects else str).reshape(shape)

    def _csr(self, content: Tree) -> Any:
        *parts, shape, is_array = content
        data, indices, indptr = (self._decode(part) for part in parts)
        kind = sparse.csr_array if is_array else sparse.csr_matrix
        rows = kind((data, indices, indptr), shape=tuple(shape))
        rows.check_format(full_check=True)
        return rows

    def _random_state(self, content: Tree) -> np.random.RandomState:
        state = np.random.RandomState(0)
        state.set_state(self._decode(content))
        return state

    def _path(self, content: Tree) -> Path:
        return Path(content)

    def _choice(self, content: Tree) -> Enum:
        name, member = content
        kind = self._class(name)
        if not issubclass(kind, Enum):
            raise _wrong(f"{name} has no members")
        return kind[member]

    def _object(self, content: Tree) -> Any:
        name, fields = content
        kind = self._class(name)
        if not dataclasses.is_dataclass(kind):
            raise _wrong(f"{name} has no fields")
        known = {field.name for field in dataclasses.fields(kind)}
        return kind(**{key: self._decode(part) for key, part in _only(known, fields, name)})

    def _model(self, content: Tree) -> Any:
        name, parameters, state = content
        kind: Any = self._class(name)
        if not hasattr(kind, "get_params"):
            raise _wrong(f"{name} is not a model")
        known = set(kind().get_params(deep=False))
        model = kind(**{key: self._decode(part) for key, part in _only(known, parameters, name)})
        for key, part in state.items():
            if not _is_state(key) or key in known:
                raise _wrong(f"{key!r} is not an attribute of {name}")
            vars(model)[key] = self._decode(part)
        return model

    def _class(self, name: Tree) -> type:
        kind = self._find(name) if isinstance(name, str) else None
        if kind is None:
            raise _wrong(f"{name!r} is not a class that files may hold")
        return kind

    _readers: Mapping[str, Callable[..., Any]] = {
        "float": _float,
        "tuple": _tuple,
        "dict": _dict,
        "array": _array,
        "columns": _columns,
        "scalar": _scalar,
        "strings": _strings,
        "csr": _csr,
        "random_state": _random_state,
        "choice": _choice,
        "path": _path,
        "object": _object,
        "model": _model,
    }


def _wrong(what: str) -> UnreadableFile:
    return UnreadableFile(f"the manifest is not valid ({what})")


def _list(content: Tree) -> list[Any]:
    if not isinstance(content, list):
        raise _wrong("a list is missing")
    return content


def _only(known: set[str], given: Tree, name: str) -> Any:
    """Items of a JSON object, if a class knows them all; what is missing takes its default."""
    unknown = set(given) - known
    if unknown:
        raise _wrong(f"{name} has no {sorted(unknown)[0]!r}")
    return given.items()


def _is_state(name: str) -> bool:
    """A fitted attribute or a private one; never a name that Python itself gives a meaning to."""
    return name.isidentifier() and not name.startswith("__") and "_" in (name[0], name[-1])
