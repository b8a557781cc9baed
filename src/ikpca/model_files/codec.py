"""Encoding of models as JSON trees and arrays; decoding executes nothing."""

from __future__ import annotations

import dataclasses
import math
import os
import warnings
from collections.abc import Iterable, Mapping
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput, UnreadableFile
from ikpca.kernels import Rows
from ikpca.model_files.container import Array, Tree, read_container

#: Classes that a file may instantiate, by sub-package; only the packages needed are imported.
_CLASSES = {
    "columns": ("ColumnEncoder",),
    "estimators": (
        "Checkpoint", "DriftSignal", "HebbianPCA", "IncrementalKernelPCA", "KernelPCA",
        "KernelSpectralClustering", "NoveltyDetector", "OnlineKernelPCA",
    ),
    "gains": ("Constant", "InverseTime", "MetaDescent", "Product", "ReciprocalEigenvalues"),
    "gram": ("Centering", "GramMeans"),
    "kernels": ("Cosine", "Gaussian", "Laplacian", "Linear", "Polynomial", "Sigmoid"),
    "preimages": ("FixedPoint", "Gradient", "MDS", "NeighborMean"),
    "reduced_sets": ("IteratedPreimages", "SelectedRows"),
    "solvers": (
        "KHA", "Certificate", "Dense", "HebbianProgress", "HebbianState", "Krylov",
        "KrylovState", "Nystrom", "Outcome", "PassRecord", "Plan",
        "SampledResiduals",
    ),
    "streams": (
        "MomentState", "OnlineState", "PreimageState",
        "Sample", "Span",
    ),
    "subspace": ("MeanResidual", "Subspace"),
}  # fmt: skip
#: Largest number of features for which a model of CSR rows is applied to a row.
_MAX_SPARSE_WIDTH = 2**20


class Encoder:
    """Converter of objects to trees that collects their arrays; each array is stored once.

    Attributes
    ----------
    arrays : dict of str to ndarray
        C-contiguous arrays by the names that the tree refers to.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        #: Names of arrays by id, with the arrays: an id is unique only while its object exists.
        self._names: dict[int, tuple[str, Array]] = {}

    def encode(self, value: object, where: str = "value") -> Tree:  # noqa: C901, PLR0911
        """Return the tree of a value; ``where`` names the value in an error."""
        # Numbers of NumPy first: np.float64 is also a Python float and must keep its type.
        if isinstance(value, np.generic) and not isinstance(value, str):
            return {"scalar": self._array(np.asarray(value), where)}
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            # JSON has no NaN and no infinities.
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, list):
            return self._list(value, where)
        if isinstance(value, tuple):
            return {"tuple": self._list(value, where)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, np.random.RandomState):
            return {"random_state": self.encode(value.get_state(legacy=True))}
        if isinstance(value, sparse.sparray | sparse.spmatrix):
            rows = value.tocsr()
            parts = self._list([rows.data, rows.indices, rows.indptr], where)
            return {"csr": [*parts, list(rows.shape), isinstance(value, sparse.sparray)]}
        if isinstance(value, Enum):
            return {"choice": [_class_name(type(value)), value.name]}
        if isinstance(value, Path):
            return {"path": str(value)}
        if isinstance(value, Mapping):
            items = value.items()
            return {"dict": [[self.encode(k), self.encode(v, f"{where}[{k!r}]")] for k, v in items]}
        return self._object(value, where)

    def _list(self, values: Iterable[object], where: str) -> list[Tree]:
        return [self.encode(part, f"{where}[{i}]") for i, part in enumerate(values)]

    def _array(self, value: Array, where: str) -> Tree:
        if value.dtype.kind in "UO" and all(isinstance(part, str) for part in value.ravel()):
            return {"strings": [[str(part) for part in value.ravel()], list(value.shape)]}
        if value.dtype.kind not in "biuf":
            raise InvalidInput(
                f"{where} is an array of {value.dtype}: a model file stores real numbers and text; "
                "convert it before saving."
            )
        # The memory order affects the order of summation in BLAS, and so the last bits.
        by_columns = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        name, _ = self._names.setdefault(id(value), (f"array{len(self.arrays)}", value))
        if name not in self.arrays:
            stored = value.T if by_columns else value
            self.arrays[name] = np.asarray(stored, dtype=stored.dtype.newbyteorder("<"), order="C")
        return {"columns": name} if by_columns else {"array": name}

    def _object(self, value: Any, where: str) -> Tree:
        kind = type(value)
        if kind.__module__.partition(".")[0] == "ikpca":
            if dataclasses.is_dataclass(value):
                fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
                return {"object": [_class_name(kind), self._attributes(fields, where)]}
            if hasattr(value, "get_params"):
                parameters = value.get_params(deep=False)
                state = {key: part for key, part in vars(value).items() if key not in parameters}
                trees = (self._attributes(part, where) for part in (parameters, state))
                return {"model": [_class_name(kind), *trees]}
        raise InvalidInput(
            f"{where} is a {kind.__name__}, which a model file cannot store; replace it by "
            "a number, a name, an array or an object of ikpca before saving, or use joblib."
        )

    def _attributes(self, values: Mapping[str, object], where: str) -> dict[str, Tree]:
        return {name: self.encode(part, f"{where}.{name}") for name, part in values.items()}


class Decoder:
    """Converter of trees to objects of the classes that files may contain."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = arrays

    def decode(self, tree: Tree) -> Any:
        """Return the value of a tree."""
        try:
            return self._decode(tree)
        except UnreadableFile:
            raise
        except RecursionError:
            raise _invalid("values are nested too deeply") from None
        except Exception as error:
            # Errors of the classes are caused by an invalid manifest.
            raise _invalid(f"{type(error).__name__}: {error}") from error

    def _decode(self, tree: Tree) -> Any:  # noqa: C901, PLR0911, PLR0912
        if tree is None or isinstance(tree, bool | int | float | str):
            return tree
        if isinstance(tree, list):
            return [self._decode(part) for part in tree]
        if not isinstance(tree, dict) or len(tree) != 1:
            raise _invalid("a value has no single tag")
        match next(iter(tree.items())):
            case "float", str(text):
                return float(text)
            case "tuple", list(parts):
                return tuple(self._decode(part) for part in parts)
            case "dict", list(items):
                return {self._decode(key): self._decode(part) for key, part in items}
            case "array", str(name) if name in self._arrays:
                return self._arrays[name]
            case "columns", str(name) if name in self._arrays:
                return self._arrays[name].T
            case "scalar", {"array": str(name)} if name in self._arrays:
                return self._arrays[name].reshape(())[()]
            case "strings", [list(text), shape] if all(isinstance(part, str) for part in text):
                # Python objects: in other arrays, each text takes the memory of the longest.
                return np.array(text, dtype=object).reshape(shape)
            case "csr", [data, indices, indptr, shape, is_array]:
                kind = sparse.csr_array if is_array else sparse.csr_matrix
                rows = kind(tuple(map(self._decode, (data, indices, indptr))), shape=tuple(shape))
                rows.check_format(full_check=True)
                return rows
            case "random_state", state:
                random_state = np.random.RandomState(0)
                random_state.set_state(self._decode(state))
                return random_state
            case "path", str(path):
                return Path(path)
            case "choice", [name, member] if issubclass(kind := _find_class(name), Enum):
                return kind[member]
            case "object", [str(name), dict(fields)]:
                return self._object(name, fields, {})
            case "model", [str(name), dict(parameters), dict(state)]:
                return self._object(name, parameters, state)
            case "array" | "columns" | "scalar", name:
                raise _invalid(f"there is no array {name!r}")
            case tag, _:
                raise _invalid(f"the tag {tag!r} is unknown, or its content is not valid")

    def _object(self, name: str, parameters: dict[str, Tree], state: dict[str, Tree]) -> Any:
        kind: Any = _find_class(name)
        if is_model := hasattr(kind, "get_params"):
            names = set(kind().get_params(deep=False))
        else:
            names = {field.name for field in dataclasses.fields(kind)}
        for key in parameters.keys() - names:
            raise _invalid(f"{name} has no {key!r}")
        value = kind(**{key: self._decode(part) for key, part in parameters.items()})
        for key, part in state.items():
            # Names of fitted or private attributes, but no dunder names.
            is_state = key.isidentifier() and not key.startswith("__") and "_" in (key[0], key[-1])
            if not is_model or not is_state or key in names:
                raise _invalid(f"{key!r} is not an attribute of {name}")
            vars(value)[key] = self._decode(part)
        return value


def _invalid(problem: str) -> UnreadableFile:
    return UnreadableFile(f"the manifest is not valid ({problem})")


def _class_name(kind: type) -> str:
    """Return sub-package and name, as in "kernels.Gaussian"; independent of the module."""
    return f"{kind.__module__.split('.')[1]}.{kind.__name__}"


def _find_class(name: Tree) -> type:
    """Return a class that files may contain, by its name in a file."""
    package, _, class_name = str(name).partition(".")
    if class_name not in _CLASSES.get(package, ()):
        raise _invalid(f"{name!r} is not a class that files may contain")
    kind: type = getattr(import_module(f"ikpca.{package}"), class_name)
    return kind


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model saved with ``save``.

    Loading never executes code: a file contains numbers, text and names of classes of this package.
    A file that is damaged, truncated, or of another format version raises an error.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    model
        The saved model, bit for bit.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import ikpca
    >>> X = load_iris().data
    >>> model = ikpca.KernelPCA(2, kernel="rbf").fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "iris.ikpca")
    ...     model.save(path)
    ...     again = ikpca.load(path)
    >>> bool((again.transform(X) == model.transform(X)).all())
    True
    """
    manifest, arrays = read_container(path)
    if manifest.kind != "model":
        raise UnreadableFile(f"{path} cannot be read: it is a {manifest.kind}, not a model.")
    try:
        model = Decoder(arrays).decode(manifest.content)
    except UnreadableFile as error:
        raise UnreadableFile(f"{path} cannot be read: {error}.") from error
    if not hasattr(model, "_check_loaded"):
        raise UnreadableFile(f"{path} cannot be read: it does not contain a model.")
    widths = {array.shape[-1] for array in arrays.values() if array.ndim and array.size}

    def make_row(n_features: int) -> Rows | None:
        """Return a row that takes no more memory than the file, or None."""
        if n_features in widths:
            return np.ones((1, n_features))
        # No array has the width of CSR rows, and products of them need memory of this size.
        if n_features > _MAX_SPARSE_WIDTH:
            return None
        return sparse.csr_array(([1.0], ([0], [0])), shape=(1, n_features))

    try:
        check_is_fitted(model)
        with warnings.catch_warnings():
            # The row has no feature names.
            warnings.simplefilter("ignore")
            model._check_loaded(make_row)
    except Exception as error:
        raise UnreadableFile(f"{path} cannot be read: its parts are not consistent.") from error
    return model
