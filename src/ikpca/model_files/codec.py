"""Encoding of objects as JSON trees and arrays; decoding executes nothing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ikpca.errors import InvalidInput, UnreadableFile

Array: TypeAlias = NDArray[Any]
#: None, bool, int, float, str, a list of trees, or a dict with one key: the tag of its content.
Tree: TypeAlias = Any

#: Kinds of arrays that a file stores as bytes: booleans, integers, floating-point numbers.
NUMERIC_KINDS = "biuf"
#: Numbers that JSON does not have.
_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
#: Largest ratio of the size of an array of text to that of the text; beyond it, Python objects.
_MAX_PADDING = 16


def is_ikpca_class(kind: type) -> bool:
    """Return True if a class is defined in this package."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def class_name(kind: type) -> str:
    """Return sub-package and name, as in "kernels.Gaussian"; independent of the module."""
    return f"{kind.__module__.split('.')[1]}.{kind.__name__}"


class Encoder:
    """Converter of objects to trees that collects their arrays; each array is stored once.

    Attributes
    ----------
    arrays : dict of str to ndarray
        C-contiguous arrays by the names that the tree refers to.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._names: dict[int, str] = {}
        self._references: list[Any] = []

    def encode(self, value: Any, where: str = "value") -> Tree:
        """Return the tree of a value; ``where`` names the value in an error."""
        if value is None or isinstance(value, bool | int | str):
            return value
        for kind, write in self._writers:
            if isinstance(value, kind):
                return write(self, value, where)
        if is_ikpca_class(type(value)):
            return self._ikpca_object(value, where)
        raise InvalidInput(
            f"{where} is a {type(value).__name__}, which a model file cannot store; replace it by "
            "a number, a name, an array or an object of ikpca before saving, or use joblib."
        )

    def _list(self, value: Sequence[Any], where: str) -> Tree:
        return [self.encode(part, f"{where}[{i}]") for i, part in enumerate(value)]

    def _dict(self, value: Mapping[Any, Any], where: str) -> Tree:
        items = value.items()
        return {"dict": [[self.encode(k), self.encode(v, f"{where}[{k!r}]")] for k, v in items]}

    def _array(self, value: Array, where: str) -> Tree:
        if value.dtype.kind in "UO":
            return self._strings(value, where)
        if value.dtype.kind not in NUMERIC_KINDS:
            raise InvalidInput(
                f"{where} is an array of {value.dtype}: a model file stores real numbers and text; "
                "convert it before saving."
            )
        # The memory order affects the order of summation in BLAS, and so the last bits.
        by_columns = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        name = self._add_array(value, value.T if by_columns else value)
        return {"columns": name} if by_columns else {"array": name}

    def _add_array(self, value: Array, stored: Array) -> str:
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"array{len(self.arrays)}"
            # An id is unique only while its object exists.
            self._references.append(value)
            little = stored.dtype.newbyteorder("<")
            self.arrays[name] = np.asarray(stored, dtype=little, order="C")
        return name

    def _strings(self, value: Array, where: str) -> Tree:
        if not all(isinstance(part, str) for part in value.ravel()):
            raise InvalidInput(
                f"{where} is an array of objects: a model file stores numbers and text; convert it."
            )
        text = [str(part) for part in value.ravel()]
        return {"strings": [text, list(value.shape), value.dtype.kind == "O"]}

    def _csr(self, value: Any, where: str) -> Tree:
        rows = value.tocsr()
        parts = [self.encode(getattr(rows, name)) for name in ("data", "indices", "indptr")]
        return {"csr": [*parts, list(rows.shape), isinstance(value, sparse.sparray)]}

    def _ikpca_object(self, value: Any, where: str) -> Tree:
        name = class_name(type(value))
        if dataclasses.is_dataclass(value):
            fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
            return {"object": [name, self._attributes(fields, where)]}
        if hasattr(value, "get_params"):
            parameters = value.get_params(deep=False)
            state = {key: part for key, part in vars(value).items() if key not in parameters}
            trees = (self._attributes(each, where) for each in (parameters, state))
            return {"model": [name, *trees]}
        raise InvalidInput(f"{where} is a {type(value).__name__}, which a model file cannot store.")

    def _attributes(self, values: Mapping[str, Any], where: str) -> Tree:
        return {name: self.encode(part, f"{where}.{name}") for name, part in values.items()}

    _writers: tuple[tuple[Any, Callable[[Encoder, Any, str], Tree]], ...] = (
        # Before float, because np.float64 is also a Python float and must keep its type.
        (np.generic, lambda self, value, at: {"scalar": self._array(np.asarray(value), at)}),
        # JSON has no NaN and no infinities.
        (float, lambda _, value, at: value if math.isfinite(value) else {"float": repr(value)}),
        (list, _list),
        (tuple, lambda self, value, at: {"tuple": self._list(value, at)}),
        (np.ndarray, _array),
        (
            np.random.RandomState,
            lambda self, value, at: {"random_state": self.encode(value.get_state(legacy=True))},
        ),
        ((sparse.sparray, sparse.spmatrix), _csr),
        (Enum, lambda _, value, at: {"choice": [class_name(type(value)), value.name]}),
        (Path, lambda _, value, at: {"path": str(value)}),
        (Mapping, _dict),
    )


class Decoder:
    """Converter of trees to objects of permitted classes.

    Parameters
    ----------
    arrays : mapping of str to ndarray
    find_class : callable
        Returns the class of a name, or None if the class is not permitted.
    """

    def __init__(
        self, arrays: Mapping[str, Array], find_class: Callable[[str], type | None]
    ) -> None:
        self._arrays = arrays
        self._find_class = find_class

    def decode(self, tree: Tree) -> Any:
        """Return the value of a tree."""
        try:
            return self._decode(tree)
        except UnreadableFile:
            raise
        except RecursionError:
            raise _unreadable("values are nested too deeply") from None
        except Exception as error:
            # Errors of the classes are caused by an invalid manifest.
            raise _unreadable(f"{type(error).__name__}: {error}") from error

    def _decode(self, tree: Tree) -> Any:
        if tree is None or isinstance(tree, bool | int | float | str):
            return tree
        if isinstance(tree, list):
            return [self._decode(part) for part in tree]
        if not isinstance(tree, dict) or len(tree) != 1:
            raise _unreadable("a value has no single tag")
        ((tag, content),) = tree.items()
        read = self._readers.get(tag)
        if read is None:
            raise _unreadable(f"the tag {tag!r} is unknown")
        return read(self, content)

    def _tuple(self, content: Tree) -> tuple[Any, ...]:
        return tuple(self._decode(part) for part in _list(content))

    def _dict(self, content: Tree) -> dict[Any, Any]:
        return {self._decode(key): self._decode(part) for key, part in _list(content)}

    def _array(self, content: Tree) -> Array:
        if content not in self._arrays:
            raise _unreadable(f"there is no array {content!r}")
        return self._arrays[content]

    def _scalar(self, content: Tree) -> Any:
        value = self._decode(content)
        if not isinstance(value, np.ndarray) or value.ndim:
            raise _unreadable("a scalar is not a number")
        return value[()]

    def _strings(self, content: Tree) -> Array:
        text, shape, objects = content
        if not all(isinstance(part, str) for part in _list(text)):
            raise _unreadable("an array of text has other values")
        # Each text of an array takes the memory of the longest.
        padded, size = len(text) * max(map(len, text), default=0), len(text) + sum(map(len, text))
        dtype = object if objects or padded > _MAX_PADDING * size else str
        return np.array(text, dtype=dtype).reshape(shape)

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

    def _choice(self, content: Tree) -> Enum:
        name, member = content
        kind = self._class(name)
        if not issubclass(kind, Enum):
            raise _unreadable(f"{name} has no members")
        return kind[member]

    def _object(self, content: Tree) -> Any:
        name, fields = content
        kind = self._class(name)
        if not dataclasses.is_dataclass(kind):
            raise _unreadable(f"{name} has no fields")
        return kind(**self._known(fields, {field.name for field in dataclasses.fields(kind)}, name))

    def _model(self, content: Tree) -> Any:
        name, parameters, state = content
        kind: Any = self._class(name)
        if not hasattr(kind, "get_params"):
            raise _unreadable(f"{name} is not a model")
        known = set(kind().get_params(deep=False))
        model = kind(**self._known(parameters, known, name))
        for key, part in state.items():
            if not _is_state(key) or key in known:
                raise _unreadable(f"{key!r} is not an attribute of {name}")
            vars(model)[key] = self._decode(part)
        return model

    def _known(self, trees: Mapping[str, Tree], known: set[str], name: str) -> dict[str, Any]:
        """Return the values of trees; raise an error for names that the class does not have."""
        unknown = set(trees) - known
        if unknown:
            raise _unreadable(f"{name} has no {sorted(unknown)[0]!r}")
        return {key: self._decode(tree) for key, tree in trees.items()}

    def _class(self, name: Tree) -> type:
        kind = self._find_class(name) if isinstance(name, str) else None
        if kind is None:
            raise _unreadable(f"{name!r} is not a class that files may contain")
        return kind

    _readers: Mapping[str, Callable[..., Any]] = {
        "float": lambda _, content: _FLOATS[content],
        "tuple": _tuple,
        "dict": _dict,
        "array": _array,
        "columns": lambda self, content: self._array(content).T,
        "scalar": _scalar,
        "strings": _strings,
        "csr": _csr,
        "random_state": _random_state,
        "choice": _choice,
        "path": lambda _, content: Path(content),
        "object": _object,
        "model": _model,
    }


def _unreadable(problem: str) -> UnreadableFile:
    return UnreadableFile(f"the manifest is not valid ({problem})")


def _list(content: Tree) -> list[Any]:
    if not isinstance(content, list):
        raise _unreadable("a list is missing")
    return content


def _is_state(name: str) -> bool:
    """Return True for names of fitted or private attributes, but not for dunder names."""
    return name.isidentifier() and not name.startswith("__") and "_" in (name[0], name[-1])
