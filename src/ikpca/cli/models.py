"""Estimators by name, their model files, and tables in the format of their input."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ikpca
from ikpca.cli.errors import UsageError

if TYPE_CHECKING:
    from ikpca.columns import ColumnEncoder
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


def store_input_form(model: SavedEstimator, table: Table, encoder: ColumnEncoder | None) -> None:
    """Store how rows were made from the input, for later input and for writing rows."""
    import numpy as np

    if table.names is not None:
        model.feature_names_in_ = np.array(table.names, dtype=object)
    if table.form is not None:
        model.input_ = {"kind": "pictures", **vars(table.form)}
    elif encoder is not None:
        model.input_ = encoder


def stored_input_form(model: SavedEstimator) -> PictureFormat | None:
    """Return the picture format that :func:`store_input_form` stored."""
    from ikpca.tables import PictureFormat

    stored = getattr(model, "input_", None)
    if not isinstance(stored, dict):
        return None
    return PictureFormat(tuple(stored["shape"]), stored["white"], stored["scaled"])


def stored_encoder(model: SavedEstimator) -> ColumnEncoder:
    """Return the encoder that :func:`store_input_form` stored, or that of a model from Python."""
    from ikpca.columns import ColumnEncoder

    stored = getattr(model, "input_", None)
    if isinstance(stored, ColumnEncoder):
        return stored
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return ColumnEncoder(tuple(names))
    number = model.n_features_in_
    return ColumnEncoder(tuple(map(str, range(1, number + 1))), n_columns=number)


def load_model(path: Path, method: str) -> Any:
    """Load a model that has the method of a command."""
    from ikpca.errors import InvalidInput

    model = ikpca.load(path)
    if not hasattr(model, method):
        raise InvalidInput(
            f"{path}: a {type(model).__name__} has no {method}; pass a model that 'ikpca fit' "
            "wrote."
        )
    return model


def read_rows(
    model: SavedEstimator, path: Path, source: str, *, ids: str | None = None, grey: bool = False
) -> Table:
    """Read rows for a model and encode or scale them as in its fit."""
    from ikpca.errors import InvalidInput

    table = stored_encoder(model).read(source, ids=ids, grey=grey, model=str(path))
    form, wanted = table.form, stored_input_form(model)
    if form is not None and wanted is not None and form.shape != wanted.shape:
        raise InvalidInput(
            f"{source}: pictures are {form.description}, and {path} was fitted on "
            f"{wanted.description}; convert them."
        )
    columns, expected = table.rows.shape[1], model.n_features_in_
    if columns != expected:
        raise InvalidInput(
            f"{source}: has {columns} columns, and {path} needs {expected}; pass the columns of "
            "the fit."
        )
    return table.scaled() if wanted is not None and wanted.scaled else table


def check_output(out: str, ids: str | None, text: Collection[str] = ()) -> None:
    """Raise an error, before the work, if ids or text columns could not be written to a file."""
    from ikpca.tables import check_target

    if not out.lower().endswith((".csv", ".parquet")):
        if ids is not None:
            raise UsageError(f"--id: {out} does not hold ids; pass a .csv or .parquet file.")
        if text:
            raise UsageError(
                f"--out: {out} does not hold the text of column {next(iter(text))!r}; pass a .csv "
                "or .parquet file."
            )
    check_target(out)


def write_rows(
    out: str, rows: Any, names: Sequence[str], ids: Mapping[str, Any], *, header: bool = True
) -> None:
    """Write rows after their ids; files that do not hold text are written without ids."""
    from ikpca.errors import InvalidInput
    from ikpca.tables import write_columns, write_table

    if not ids or not out.lower().endswith((".csv", ".parquet")):
        write_table(out, rows, names if header else None)
        return
    for name in names:
        if name in ids:
            raise InvalidInput(
                f"{out}: {name!r} is the name of an id and of a result; rename the id column."
            )
    write_columns(out, {**ids, **dict(zip(names, rows.T, strict=True))})
