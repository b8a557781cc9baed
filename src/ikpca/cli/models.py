"""Estimators by name, their model files, and tables in the format of their input."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ikpca
from ikpca.cli.errors import UsageError
from ikpca.cli.options import flag

if TYPE_CHECKING:
    from ikpca.columns import ColumnEncoder, ColumnOptions, Table
    from ikpca.estimators.base import SavedEstimator


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
_NONE_WORDS = {"n_components": "all", "gamma": "columns", "normalize": "none"}


def given_options(options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the options of these names that were given, as parameters of the library."""
    given = {name: options[name] for name in names if options[name] is not None}
    return {
        name: None if _NONE_WORDS.get(name) == value else value for name, value in given.items()
    }


def build(name: str, given: dict[str, Any]) -> Any:
    """Return an unfitted estimator; raise an error for options that it does not have."""
    kind = getattr(ikpca, ESTIMATORS[name])
    parameters = inspect.signature(kind).parameters
    for key in given:
        if key not in parameters:
            raise UsageError(f"{flag(key)} has no effect for --estimator {name}; leave it out.")
    defaults: dict[str, Any] = dict(_DEFAULTS)
    if name == "kernel-pca" and given.get("eigen_solver", "auto") == "auto":
        defaults["tol"] = DEFAULT_TOL
    return kind(**{key: value for key, value in defaults.items() if key in parameters} | given)


def store_encoder(model: SavedEstimator, encoder: ColumnEncoder | None) -> None:
    """Store how rows were made from a table, for later tables."""
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
    return ColumnEncoder.numbered(model.n_features_in_) if names is None else ColumnEncoder(names)


def load_model(path: Path, method: str, writer: str = "ikpca fit") -> Any:
    """Load a model that has the method of a command."""
    from ikpca.errors import InvalidInput

    model = ikpca.load(path)
    if not hasattr(model, method):
        raise InvalidInput(
            f"{path}: a {type(model).__name__} has no {method}; pass a model that {writer!r} wrote."
        )
    return model


def read_training_rows(source: str, options: ColumnOptions) -> tuple[Table, ColumnEncoder | None]:
    """Read a table and fit its encoder, which is None for arrays if no option is set."""
    from ikpca.cli.files import holds_text, read_table
    from ikpca.columns import ColumnEncoder, ColumnOptions

    table = read_table(source, lambda header: options.choose(header, source))
    if not holds_text(source) and options == ColumnOptions():
        # Estimators check arrays, which may be memory maps.
        return table, None
    return ColumnEncoder.fit(table, options)


def read_rows(
    source: str,
    encoder: ColumnEncoder,
    model: str | Path,
    *,
    ids: str | None = None,
    allow_unknown: bool = False,
) -> Table:
    """Read rows and encode them as in a fit; ``model`` names it in messages."""
    from ikpca.cli.files import read_table

    table = read_table(source, lambda header: encoder.choose(header, source, ids, str(model)))
    return encoder.encode(table, allow_unknown=allow_unknown)


def check_output(out: str, ids: str | None = None, text: Collection[str] = ()) -> None:
    """Raise an error, before the work, if results could not be written to a file."""
    from ikpca.cli.files import check_target, holds_text

    if not holds_text(out):
        rule = "pass a .csv, .xlsx or .parquet file"
        if ids is not None:
            raise UsageError(f"--id: {out} does not hold ids; {rule}.")
        if text:
            raise UsageError(f"--out: {out} does not hold text as in {next(iter(text))!r}; {rule}.")
    check_target(out)
