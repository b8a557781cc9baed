"""Estimators by name, and the format of the input in their model files."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import ikpca
from ikpca.cli.errors import UsageError

if TYPE_CHECKING:
    from ikpca.estimators.base import SavedEstimator
    from ikpca.tables import PictureFormat, Table


#: Classes in ikpca by their names on the command line.
ESTIMATORS = {
    "kernel-pca": "KernelPCA",
    "hebbian-pca": "HebbianPCA",
    "incremental": "IncrementalKernelPCA",
    "online": "OnlineKernelPCA",
}
#: Defaults of the command line for parameters that the estimator has.
_DEFAULTS = {"n_components": 16, "kernel": "rbf", "gamma": "scale"}
#: Words on the command line for None in the library.
_NONE_WORDS = {"n_components": "all", "gamma": "columns"}


def build(name: str, options: Mapping[str, Any], flags: Mapping[str, str]) -> Any:
    """Return an unfitted estimator; raise an error for options that it does not have."""
    kind = getattr(ikpca, ESTIMATORS[name])
    known = inspect.signature(kind).parameters
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in known:
            raise UsageError(f"{flags[key]} has no effect for --estimator {name}; leave it out.")
    settings = {key: value for key, value in _DEFAULTS.items() if key in known} | given
    nothing = {key for key, word in _NONE_WORDS.items() if settings.get(key) == word}
    return kind(**{key: None if key in nothing else value for key, value in settings.items()})


def store_input_form(model: SavedEstimator, table: Table) -> None:
    """Store names and picture format of the input, so that rows can be written in it again."""
    import numpy as np

    if table.names is not None:
        model.feature_names_in_ = np.array(table.names, dtype=object)
    if table.form is not None:
        model.input_ = {"kind": "pictures", **vars(table.form)}


def stored_input_form(model: SavedEstimator) -> PictureFormat | None:
    """Return the picture format that :func:`store_input_form` stored."""
    from ikpca.tables import PictureFormat

    stored = getattr(model, "input_", None)
    if stored is None:
        return None
    return PictureFormat(tuple(stored["shape"]), stored["white"], stored["scaled"])
