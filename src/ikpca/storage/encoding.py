"""From objects to a tree of JSON values, with the arrays beside it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ikpca.errors import InvalidInput

__all__ = ["NUMERIC_KINDS", "Array", "Encoder", "Tree", "is_ours", "name_of"]

Array: TypeAlias = NDArray[Any]
#: None, bool, int, float, str, a list of trees, or a dict with one key: the tag of what it holds.
Tree: TypeAlias = Any

#: Boolean, integers, floating-point numbers: what a file keeps as bytes.
NUMERIC_KINDS = "biuf"


def is_ours(kind: type) -> bool:
    """Whether a class is defined in this package, and so may be named in a file."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def name_of(kind: type) -> str:
    """Room and name, "kernels.Gaussian": files inside a room may be rearranged."""
    return f"{kind.__module__.split('.')[1]}.{kind.__name__}"


class Encoder:
    """Collects arrays while it turns objects into trees; the same array is kept once.

    Attributes
    ----------
    arrays : dict of str to ndarray
        C-contiguous, by the name that the tree refers to.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []

    def encode(self, value: Any, where: str = "value") -> Tree:
        """The tree of a value; ``where`` names it in an error."""
        if value is None or isinstance(value, bool | int | str):
            return value
        for kind, write in self._writers:
            if isinstance(value, kind):
                return write(self, value, where)
        if is_ours(type(value)):
            return self._ours(value, where)
        raise InvalidInput(
            f"{where} is a {type(value).__name__}, which a model file cannot keep; replace it by "
            "a number, a name, an array or an object of ikpca before saving, or use joblib."
        )

    def _float(self, value: float, where: str) -> Tree:
        # JSON has no word for them.
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}

    def _list(self, value: list[Any], where: str) -> Tree:
        return [self.encode(part, f"{where}[{i}]") for i, part in enumerate(value)]

    def _tuple(self, value: tuple[Any, ...], where: str) -> Tree:
        return {"tuple": self._list(list(value), where)}

    def _dict(self, value: Mapping[Any, Any], where: str) -> Tree:
        pairs = [[self.encode(key), self.encode(part, f"{where}[{key!r}]")]
                 for key, part in value.items()]  # fmt: skip
        return {"dict": pairs}

    def _path(self, value: Path, where: str) -> Tree:
        return {"path": str(value)}

    def _choice(self, value: Enum, where: str) -> Tree:
        return {"choice": [name_of(type(value)), value.name]}

    def _scalar(self, value: np.generic, where: str) -> Tree:
        return {"scalar": self._array(np.asarray(value), where)}

    def _array(self, value: Array, where: str) -> Tree:
        if value.dtype.kind in "UO":
            return self._strings(value, where)
        if value.dtype.kind not in NUMERIC_KINDS:
            raise InvalidInput(
                f"{where} is an array of {value.dtype}: a model file keeps real numbers and text; "
                "convert it before saving."
            )
        # The order in memory decides how BLAS adds, and so the last bits of what is computed.
        by_columns = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        name = self._keep(value, value.T if by_columns else value)
        return {"columns": name} if by_columns else {"array": name}

    def _keep(self, value: Array, stored: Array) -> str:
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"array{len(self.arrays)}"
            # A number is an identity only while its object lives.
            self._kept.append(value)
            little = stored.dtype.newbyteorder("<")
            self.arrays[name] = np.asarray(stored, dtype=little, order="C")
        return name

    def _strings(self, value: Array, where: str) -> Tree:
        if not all(isinstance(part, str) for part in value.ravel()):
            raise InvalidInput(
                f"{where} is an array of objects: a model file keeps numbers and text; convert it."
            )
        text = [str(part) for part in value.ravel()]
        return {"strings": [text, list(value.shape), value.dtype.kind == "O"]}

    def _csr(self, value: Any, where: str) -> Tree:
        rows = value.tocsr()
        parts = [self.encode(getattr(rows, name)) for name in ("data", "indices", "indptr")]
        return {"csr": [*parts, list(rows.shape), isinstance(value, sparse.sparray)]}

    def _random_state(self, value: np.random.RandomState, where: str) -> Tree:
        return {"random_state": self.encode(tuple(value.get_state(legacy=True)))}

    def _ours(self, value: Any, where: str) -> Tree:
        kind = type(value)
        if dataclasses.is_dataclass(value):
            fields = {
                field.name: self.encode(getattr(value, field.name), f"{where}.{field.name}")
                for field in dataclasses.fields(value)
            }
            return {"object": [name_of(kind), fields]}
        if hasattr(value, "get_params"):
            return self._model(value, where)
        raise InvalidInput(f"{where} is a {kind.__name__}, which a model file cannot keep.")

    def _model(self, value: Any, where: str) -> Tree:
        parameters = value.get_params(deep=False)
        state = {name: part for name, part in vars(value).items() if name not in parameters}
        return {
            "model": [
                name_of(type(value)),
                {name: self.encode(part, f"{where}.{name}") for name, part in parameters.items()},
                {name: self.encode(part, f"{where}.{name}") for name, part in state.items()},
            ]
        }

    _writers: tuple[tuple[Any, Callable[..., Tree]], ...] = (
        # NumPy's double is a Python float too, and must come back as what it was.
        (np.generic, _scalar),
        (float, _float),
        (list, _list),
        (tuple, _tuple),
        (np.ndarray, _array),
        (np.random.RandomState, _random_state),
        (sparse.sparray, _csr),
        (sparse.spmatrix, _csr),
        (Enum, _choice),
        (Path, _path),
        (Mapping, _dict),
    )
