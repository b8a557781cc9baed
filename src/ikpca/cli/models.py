"""Models with the encoding of their tables, and rows that are encoded for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import ikpca

if TYPE_CHECKING:
    from ikpca.columns import ColumnEncoder, Table
    from ikpca.estimators.base import SavedEstimator


def store_encoder(model: SavedEstimator, encoder: ColumnEncoder | None) -> None:
    """Store how rows were made from a table, for later tables."""
    import numpy as np

    if encoder is not None:
        model.input_ = encoder
        if encoder.feature_names is not None:
            model.feature_names_in_ = np.array(encoder.feature_names, dtype=object)


def _stored_encoder(model: SavedEstimator) -> ColumnEncoder:
    """Return the encoder that :func:`store_encoder` stored, or that of a model from Python."""
    from ikpca.columns import ColumnEncoder, numbers_as_names
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
    n_columns = model.n_features_in_
    return ColumnEncoder(names or numbers_as_names(n_columns), None if names else n_columns)


def load_model(path: Path, method: str, writer: str = "ikpca fit") -> tuple[Any, ColumnEncoder]:
    """Load a model that has the method of a command, and its encoder."""
    from ikpca.errors import InvalidInput

    model = ikpca.load(path)
    if not hasattr(model, method):
        raise InvalidInput(
            f"{path}: a {type(model).__name__} has no {method}; pass a model that {writer!r} wrote."
        )
    return model, _stored_encoder(model)


def read_training_rows(
    source: str,
    columns: str | None = None,
    drop: str | None = None,
    ids: str | None = None,
    **encoding: Any,
) -> tuple[Table, ColumnEncoder | None]:
    """Read a table and fit its encoder, which is None for arrays if no option is set."""
    from ikpca.cli.files import holds_text, read_table
    from ikpca.columns import ColumnEncoder, choose_columns

    table = read_table(source, lambda header: choose_columns(header, source, columns, drop, ids))
    if not holds_text(source) and not any((columns, drop, ids, encoding)):
        # Estimators check arrays, which may be memory maps.
        return table, None
    return ColumnEncoder.fit(table, **encoding)


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
