"""Loading of model files; only classes of a fixed list are instantiated."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import UnreadableFile
from ikpca.kernels import Rows
from ikpca.model_files.codec import Array, Decoder
from ikpca.model_files.container import read_container

#: Largest number of features for which a model of CSR rows is applied to a row.
_MAX_SPARSE_WIDTH = 2**20
#: Classes that a file may instantiate, by sub-package; only the packages needed are imported.
_CLASSES = {
    "applications": ("SuperResolution",),
    "columns": ("ColumnEncoder",),
    "estimators": (
        "Checkpoint",
        "DriftSignal",
        "HebbianPCA",
        "IncrementalKernelPCA",
        "IncrementalStream",
        "KernelPCA",
        "KernelSpectralClustering",
        "NoveltyDetector",
        "OnlineKernelPCA",
        "OnlineStream",
    ),
    "gains": ("Constant", "InverseTime", "MetaDescent", "Product", "ReciprocalEigenvalues"),
    "gram": ("Centering", "GramMeans"),
    "kernels": ("Cosine", "Gaussian", "Laplacian", "Linear", "Polynomial", "Sigmoid"),
    "preimages": ("FixedPoint", "Gradient", "MDS", "NeighborMean"),
    "reduced_sets": ("IteratedPreimages", "JointPreimages", "SelectedRows"),
    "solvers": (
        "KHA",
        "Certificate",
        "Dense",
        "HebbianProgress",
        "HebbianState",
        "Krylov",
        "KrylovProgress",
        "KrylovState",
        "Nystrom",
        "Outcome",
        "PassRecord",
        "Plan",
        "SampledResiduals",
    ),
    "streams": (
        "BasisGram",
        "Compression",
        "IncrementalSettings",
        "IncrementalState",
        "OnlineStart",
        "OnlineState",
        "UpdateReport",
    ),
    "subspace": ("MeanResidual", "Subspace"),
}


def find_class(name: str) -> type | None:
    """Return the class of a name in a file, or None if the name is not in the list."""
    package, _, class_name = name.partition(".")
    if class_name not in _CLASSES.get(package, ()):
        return None
    found: type = getattr(import_module(f"ikpca.{package}"), class_name)
    return found


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
        model = Decoder(arrays, find_class).decode(manifest.content)
    except UnreadableFile as error:
        raise UnreadableFile(f"{path} cannot be read: {error}.") from error
    if not hasattr(model, "_check_loaded"):
        raise UnreadableFile(f"{path} cannot be read: it does not contain a model.")
    try:
        _check_usable(model, arrays)
    except Exception as error:
        raise UnreadableFile(f"{path} cannot be read: its parts are not consistent.") from error
    return model


def _check_usable(model: Any, arrays: Mapping[str, Array]) -> None:
    """Apply the model to one row, which fails if the parts of a file are not consistent."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return
    widths = {array.shape[-1] for array in arrays.values() if array.ndim and array.size}

    def make_row(n_features: int) -> Rows | None:
        """Return a row, which takes no more memory than the file; None if it may take more."""
        if n_features in widths:
            return np.ones((1, n_features))
        # No array has the width of CSR rows, and products of them need memory of this size.
        if n_features > _MAX_SPARSE_WIDTH:
            return None
        return sparse.csr_array(([1.0], ([0], [0])), shape=(1, n_features))

    with warnings.catch_warnings():
        # The row has no feature names.
        warnings.simplefilter("ignore")
        model._check_loaded(make_row)
