"""Estimators by name, and metadata of their model files."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ikpca
from ikpca.cli.errors import UsageError

if TYPE_CHECKING:
    from ikpca.tables import PictureFormat, Table


_CLASSES = {
    "kernel-pca": "KernelPCA",
    "hebbian-pca": "HebbianPCA",
    "incremental": "IncrementalKernelPCA",
    "online": "OnlineKernelPCA",
}
#: Classes in ikpca by their names on the command line.
ESTIMATORS = {name: kind for name, kind in _CLASSES.items() if kind in ikpca.__all__}
#: What a command line without further options asks for, where the class knows it.
_DEFAULTS = {"n_components": 16, "kernel": "rbf", "gamma": "scale"}
#: Words of the command line for what is None in the library.
_NOTHING = {"n_components": "all", "gamma": "columns"}


def build(name: str, options: Mapping[str, Any], flags: Mapping[str, str]) -> Any:
    """An unfitted estimator; an option that its class has no parameter for is refused.

    Parameters
    ----------
    name : str
        A key of ``ESTIMATORS``.
    options : mapping of str to value
        By parameter; None where a user said nothing.
    flags : mapping of str to str
        By parameter, how a user writes it.
    """
    kind = getattr(ikpca, ESTIMATORS[name])
    known = inspect.signature(kind).parameters
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in known:
            raise UsageError(f"{flags[key]} has no meaning for --estimator {name}.")
    settings = {key: value for key, value in _DEFAULTS.items() if key in known} | given
    nothing = {key for key, word in _NOTHING.items() if settings.get(key) == word}
    return kind(**{key: None if key in nothing else value for key, value in settings.items()})


def store_input_form(model: Any, table: Table) -> None:
    """Let the model know what its rows were, so that rows can be written as that again.

    Names become ``feature_names_in_``, as if rows had come in a data frame. The shape
    and scale of pictures become ``input_``, which model files keep as they keep every attribute.
    """
    import numpy as np

    if table.names is not None:
        model.feature_names_in_ = np.array(table.names, dtype=object)
    if table.form is not None:
        model.input_ = {"kind": "pictures", **vars(table.form)}


def stored_input_form(model: Any) -> PictureFormat | None:
    """Return the shape and scale of pictures that :func:`remember` stored."""
    from ikpca.tables import PictureFormat

    stored = getattr(model, "input_", None)
    if stored is None:
        return None
    return PictureFormat(tuple(stored["shape"]), stored["white"], stored["scaled"])


def open_model(path: Path, method: str) -> Any:
    """Load a model that can do what the verb is about."""
    from ikpca.errors import InvalidInput

    model = ikpca.load(path)
    if not hasattr(model, method):
        raise InvalidInput(
            f"{path}: a {type(model).__name__} has no {method}; pass a model that 'ikpca fit' "
            "wrote."
        )
    return model


def check_columns(model: Any, table: Table, told: str, path: Path) -> None:
    """Refuse rows that are not of the kind that the model was fitted on."""
    from ikpca.errors import InvalidInput

    form, wanted = table.form, stored_input_form(model)
    if form is not None and wanted is not None and form.shape != wanted.shape:
        raise InvalidInput(
            f"{told}: pictures are {form.words}, and {path} was fitted on {wanted.words} "
            "ones; make them alike."
        )
    columns, expected = table.rows.shape[1], model.n_features_in_
    if columns != expected:
        raise InvalidInput(
            f"{told}: has {columns} columns, and {path} was fitted on {expected}; pass rows with "
            "the same columns."
        )
    names = getattr(model, "feature_names_in_", None)
    if names is None or table.names is None:
        return
    for number, (name, fitted) in enumerate(zip(table.names, names, strict=True), start=1):
        if name != fitted:
            raise InvalidInput(
                f"{told}: column {number} is {name!r}, and {path} was fitted on {fitted!r} there; "
                "put the columns in the same order."
            )
