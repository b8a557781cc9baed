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
    from ikpca.tables import Table


#: Classes in ikpca by their names on the command line.
ESTIMATORS = {
    "kernel-pca": "KernelPCA",
    "hebbian-pca": "HebbianPCA",
    "incremental": "IncrementalKernelPCA",
    "online": "OnlineKernelPCA",
}
#: Defaults of the command line for parameters that the estimator has.
_DEFAULTS = {"n_components": 16, "kernel": "rbf", "gamma": "scale"}
#: Default tolerance of the solver "auto", which landmarks reach for a million rows.
DEFAULT_TOL = 1e-3
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
    defaults: dict[str, Any] = dict(_DEFAULTS)
    if name == "kernel-pca" and given.get("eigen_solver", "auto") == "auto":
        defaults["tol"] = DEFAULT_TOL
    settings = {key: value for key, value in defaults.items() if key in known} | given
    nothing = {key for key, word in _NONE_WORDS.items() if settings.get(key) == word}
    return kind(**{key: None if key in nothing else value for key, value in settings.items()})


def store_encoder(model: SavedEstimator, encoder: ColumnEncoder | None) -> None:
    """Store how rows were made from the input, for later input and for writing rows."""
    import numpy as np

    if encoder is not None:
        model.input_ = encoder
        if encoder.feature_names is not None:
            model.feature_names_in_ = np.array(encoder.feature_names, dtype=object)


def stored_encoder(model: SavedEstimator) -> ColumnEncoder:
    """Return the encoder that :func:`store_encoder` stored, or that of a model from Python."""
    from ikpca.columns import ColumnEncoder
    from ikpca.errors import InvalidInput

    stored, names = (getattr(model, name, None) for name in ("input_", "feature_names_in_"))
    names = None if names is None else tuple(names)
    if isinstance(stored, ColumnEncoder):
        if names != stored.feature_names:
            raise InvalidInput(
                "the model was fitted again in Python, and its encoding of columns is that of an "
                "earlier fit; delete model.input_ before saving it, or use 'ikpca fit'."
            )
        return stored
    if names is not None:
        return ColumnEncoder(names)
    return ColumnEncoder.numbered(model.n_features_in_)


def load_model(path: Path, method: str, writer: str = "ikpca fit") -> Any:
    """Load a model that has the method of a command."""
    from ikpca.errors import InvalidInput

    model = ikpca.load(path)
    if not hasattr(model, method):
        raise InvalidInput(
            f"{path}: a {type(model).__name__} has no {method}; pass a model that {writer!r} wrote."
        )
    return model


def read_rows(
    source: str,
    encoder: ColumnEncoder,
    fitted: str | Path,
    *,
    ids: str | None = None,
    allow_unknown: bool = False,
) -> Table:
    """Read rows and encode them as in a fit; ``fitted`` names it in messages."""
    from ikpca.errors import InvalidInput

    table = encoder.read(source, ids=ids, model=str(fitted), allow_unknown=allow_unknown)
    columns, expected = table.rows.shape[1], len(encoder.encoded_names)
    if columns != expected:
        raise InvalidInput(
            f"{source}: has {columns} columns, and {fitted} needs {expected}; pass the columns of "
            "the fit."
        )
    return table


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
    from ikpca.tables import write_table

    if ids and out.lower().endswith((".csv", ".parquet")):
        write_results(out, ids, dict(zip(names, rows.T, strict=True)))
    else:
        write_table(out, rows, names if header else None)


def write_results(out: str, ids: Mapping[str, Any], columns: Mapping[str, Any]) -> None:
    """Write columns after ids."""
    from ikpca.errors import InvalidInput
    from ikpca.tables import write_columns

    for name in columns:
        if name in ids:
            raise InvalidInput(
                f"{out}: {name!r} is the name of an id and of a result; rename the id column."
            )
    write_columns(out, {**ids, **columns})
