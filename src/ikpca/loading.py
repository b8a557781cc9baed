"""From the names in a model file to classes: the only ones that a file can bring to life."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import UnreadableFile
from ikpca.estimators.known_classes import KNOWN, class_finder
from ikpca.storage import Decoder, read

__all__ = ["load"]

_find = class_finder({**KNOWN, "applications": ("Hyperresolution", "KernelSpectralClustering")})


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that ``save`` wrote.

    Nothing in the file is executed: it holds numbers, text and names of classes of this package.
    A file that is damaged, cut off, or of a newer version is refused.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    model
        Equal to the one that was saved, to the last bit.

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
    manifest, arrays = read(path)
    if manifest.kind != "model":
        raise UnreadableFile(f"{path} cannot be read: it is a {manifest.kind}, not a model.")
    try:
        model = Decoder(arrays, _find).decode(manifest.content)
    except UnreadableFile as error:
        raise UnreadableFile(f"{path} cannot be read: {error}.") from error
    if not hasattr(model, "get_params"):
        raise UnreadableFile(f"{path} cannot be read: it holds no model.")
    try:
        _use_once(model)
    except Exception as error:
        raise UnreadableFile(
            f"{path} cannot be read: its parts do not make a model that can be used."
        ) from error
    return model


def _use_once(model: Any) -> None:
    """Parts of a forged file may each be well formed and not go together; using them tells."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return
    if hasattr(model, "patch_shape_"):
        # Of images: the smallest that has a window.
        probe = np.ones([-(-side // model.factor) for side in model.patch_shape_])
    else:
        probe = np.ones((1, model.n_features_in_))
    with warnings.catch_warnings():
        # A row made here has no names of columns.
        warnings.simplefilter("ignore")
        if hasattr(model, "transform"):
            model.transform(probe)
