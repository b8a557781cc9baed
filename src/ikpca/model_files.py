"""Files of models and checkpoints: arrays and a JSON manifest with checksums, without pickle."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import tempfile
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput, UnreadableFile, UnwritableFile
from ikpca.kernels import Rows

Array: TypeAlias = NDArray[Any]
#: None, bool, int, float, str, a list of trees, or a dict with one key: the tag of its content.
Tree: TypeAlias = Any

#: Format that is written and read; other formats raise an error.
FORMAT_VERSION = 3
#: Fields of the manifest; ``library_version`` is for information only.
_FIELDS = {"kind", "content", "digests", "library_version", "format_version"}
#: Limit of the header, which contains the manifest: far above any model, far below memory.
_HEADER_LIMIT = 64 * 2**20
#: safetensors starts with the length of its header.
_LENGTH_BYTES = 8
#: Keys of the metadata.
_MANIFEST, _DIGEST = "ikpca", "sha256"
#: Classes that a file may instantiate, by sub-package; only the packages needed are imported.
_CLASSES = {
    "columns": ("ColumnEncoder",),
    "estimators": (
        "Checkpoint", "DriftSignal", "HebbianPCA", "IncrementalKernelPCA", "KernelPCA",
        "KernelSpectralClustering", "NoveltyDetector", "OnlineKernelPCA",
    ),
    "gram": ("Centering", "GramMeans"),
    "kernels": ("Cosine", "Gaussian", "Laplacian", "Linear", "Polynomial", "Sigmoid"),
    "preimages": ("FixedPoint", "Gradient", "MDS", "NeighborMean"),
    "reduced_sets": ("IteratedPreimages", "SelectedRows"),
    "solvers": (
        "KHA", "Certificate", "Dense", "HebbianState", "InverseTime", "Krylov", "KrylovState",
        "Nystrom", "Outcome", "PassRecord", "Plan", "Product", "ReciprocalEigenvalues",
    ),
    "streams": (
        "MomentState", "OnlineState", "PreimageState", "Sample", "Span",
    ),
    "subspace": ("MeanResidual", "Subspace"),
}  # fmt: skip
#: Largest number of features for which a model of CSR rows is applied to a row.
_MAX_SPARSE_WIDTH = 2**20


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


def digests_of(arrays: Mapping[str, Array]) -> dict[str, str]:
    """Return the SHA-256 of type, shape and bytes of every array, by name."""
    digests = {}
    for name, array in arrays.items():
        sha = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
        # A view of the bytes, without a copy.
        sha.update(array.reshape(-1).view("u1").data)
        digests[name] = sha.hexdigest()
    return digests


def write_file(path: str | os.PathLike[str], kind: str, value: object) -> None:
    """Write a "model" or a "checkpoint" to a file, atomically."""
    from safetensors.numpy import save

    encoder = _Encoder()
    content = encoder.encode(value, type(value).__name__)
    manifest = {
        "kind": kind,
        "content": content,
        "digests": digests_of(encoder.arrays),
        "library_version": version("ikpca"),
        "format_version": FORMAT_VERSION,
    }
    text = json.dumps(manifest, allow_nan=False, separators=(",", ":"))
    if len(text) > _HEADER_LIMIT // 2:
        raise InvalidInput(f"the manifest of {path} would be {len(text)} bytes: shorten history_.")
    digest = hashlib.sha256(text.encode()).hexdigest()
    data = save(encoder.arrays, {_MANIFEST: text, _DIGEST: digest})
    with atomic_write(Path(path)) as file:
        file.write(data)


def read_file(
    path: str | os.PathLike[str], kind: str | None = None
) -> tuple[dict[str, Tree], dict[str, Array]]:
    """Read and check the manifest and the arrays of a file of a kind, without the classes."""
    source = Path(path)
    try:
        with _opened(source) as (manifest, file):
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if digests_of(arrays) != manifest["digests"]:
            raise UnreadableFile("the checksum of an array is wrong, or an array is missing")
        if kind is not None and manifest["kind"] != kind:
            raise UnreadableFile(f"it is a {manifest['kind']}, not a {kind}")
        return manifest, arrays
    except FileNotFoundError:
        raise InvalidInput(f"{source} does not exist: pass the path of a saved model.") from None
    except UnreadableFile as error:
        raise UnreadableFile(f"{source} cannot be read: {error}.") from error
    except OSError as error:
        raise UnreadableFile(f"{source} cannot be read ({error.strerror or error}).") from error


@contextmanager
def _opened(source: Path) -> Iterator[tuple[dict[str, Tree], Any]]:
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
            manifest = _read_manifest(text)
            if hashlib.sha256(text.encode()).hexdigest() != metadata.get(_DIGEST):
                raise UnreadableFile("the checksum of the manifest is wrong")
            yield manifest, file
    except (SafetensorError, TypeError, AttributeError) as error:
        raise UnreadableFile(f"its arrays are damaged ({error})") from None


def _read_manifest(text: str) -> dict[str, Tree]:
    """Read a manifest; raise an error for another format version."""
    try:
        manifest: Tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"the manifest is not JSON ({error})") from None
    written = manifest.get("format_version") if isinstance(manifest, dict) else None
    if not isinstance(written, int) or written < 1:
        raise UnreadableFile("the manifest names no format version")
    if written > FORMAT_VERSION:
        raise UnreadableFile(
            f"it was written in format version {written}, and this ikpca reads version "
            f"{FORMAT_VERSION}; install a newer ikpca"
        )
    if written < FORMAT_VERSION:
        raise UnreadableFile(
            "it was written by a development version before 0.1; fit the model again and save it"
        )
    if set(manifest) != _FIELDS:
        raise UnreadableFile("the manifest has unexpected fields")
    return dict(manifest)


class _Encoder:
    """Converter of objects to trees that collects their arrays; each array is stored once."""

    def __init__(self) -> None:
        #: C-contiguous arrays by the names that the tree refers to.
        self.arrays: dict[str, Array] = {}
        #: Names of arrays by id, with the arrays: an id is unique only while its object exists.
        self._names: dict[int, tuple[str, Array]] = {}

    def encode(self, value: object, where: str) -> Tree:  # noqa: C901, PLR0911
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
            return {"random_state": self.encode(value.get_state(legacy=True), where)}
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
            trees = [[self.encode(k, where), self.encode(v, f"{where}[{k!r}]")] for k, v in items]
            return {"dict": trees}
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


def decode(tree: Tree, arrays: Mapping[str, Array]) -> Any:
    """Return the object of a tree; nothing but the classes that files may contain is called."""
    try:
        return _decode(tree, arrays)
    except UnreadableFile:
        raise
    except RecursionError:
        raise _invalid("values are nested too deeply") from None
    except Exception as error:
        # Errors of the classes are caused by an invalid manifest.
        raise _invalid(f"{type(error).__name__}: {error}") from error


def _decode(tree: Tree, arrays: Mapping[str, Array]) -> Any:  # noqa: C901, PLR0911, PLR0912
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    if isinstance(tree, list):
        return [_decode(part, arrays) for part in tree]
    if not isinstance(tree, dict) or len(tree) != 1:
        raise _invalid("a value has no single tag")
    match next(iter(tree.items())):
        case "float", str(text):
            return float(text)
        case "tuple", list(parts):
            return tuple(_decode(part, arrays) for part in parts)
        case "dict", list(items):
            return {_decode(key, arrays): _decode(part, arrays) for key, part in items}
        case "array", str(name) if name in arrays:
            return arrays[name]
        case "columns", str(name) if name in arrays:
            return arrays[name].T
        case "scalar", {"array": str(name)} if name in arrays:
            return arrays[name].reshape(())[()]
        case "strings", [list(text), shape] if all(isinstance(part, str) for part in text):
            # Python objects: in other arrays, each text takes the memory of the longest.
            return np.array(text, dtype=object).reshape(shape)
        case "csr", [data, indices, indptr, shape, is_array]:
            kind = sparse.csr_array if is_array else sparse.csr_matrix
            members = tuple(_decode(part, arrays) for part in (data, indices, indptr))
            rows = kind(members, shape=tuple(shape))
            rows.check_format(full_check=True)
            return rows
        case "random_state", state:
            random_state = np.random.RandomState(0)
            random_state.set_state(_decode(state, arrays))
            return random_state
        case "path", str(path):
            return Path(path)
        case "choice", [name, member] if issubclass(kind := _find_class(name), Enum):
            return kind[member]
        case "object", [str(name), dict(fields)]:
            return _make_object(name, fields, {}, arrays)
        case "model", [str(name), dict(parameters), dict(state)]:
            return _make_object(name, parameters, state, arrays)
        case "array" | "columns" | "scalar", name:
            raise _invalid(f"there is no array {name!r}")
        case tag, _:
            raise _invalid(f"the tag {tag!r} is unknown, or its content is not valid")


def _make_object(
    name: str, parameters: dict[str, Tree], state: dict[str, Tree], arrays: Mapping[str, Array]
) -> Any:
    kind: Any = _find_class(name)
    if is_model := hasattr(kind, "get_params"):
        names = set(kind().get_params(deep=False))
    else:
        names = {field.name for field in dataclasses.fields(kind)}
    for key in parameters.keys() - names:
        raise _invalid(f"{name} has no {key!r}")
    value = kind(**{key: _decode(part, arrays) for key, part in parameters.items()})
    for key, part in state.items():
        # Names of fitted or private attributes, but no dunder names.
        is_state = key.isidentifier() and not key.startswith("__") and "_" in (key[0], key[-1])
        if not is_model or not is_state or key in names:
            raise _invalid(f"{key!r} is not an attribute of {name}")
        vars(value)[key] = _decode(part, arrays)
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
    manifest, arrays = read_file(path, "model")
    try:
        model = decode(manifest["content"], arrays)
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
