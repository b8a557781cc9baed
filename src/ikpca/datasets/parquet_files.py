"""Tables in Parquet, through pyarrow where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.datasets.array_files import floats
from ikpca.datasets.row_table import Table
from ikpca.errors import InvalidInput
from ikpca.storage import written_whole

__all__ = ["check_parquet", "read_parquet", "write_parquet"]


def check_parquet(path: Path) -> None:
    """Refuse where the package is missing, with the way to get it."""
    _parquet(path)


def read_parquet(path: Path) -> Table:
    """All columns as numbers; text, gaps, NaN and infinity are refused by row and column."""
    parquet = _parquet(path)
    import pyarrow

    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as trouble:
        reason = str(trouble).split("\n", maxsplit=1)[0].rstrip(".")
        raise InvalidInput(f"{path}: cannot be read ({reason}); write it again.") from None
    if not table.num_columns or not table.num_rows:
        raise InvalidInput(f"{path}: holds no rows; pass a file with at least one.")
    columns = [_column(path, name, table[name]) for name in table.column_names]
    return Table(np.column_stack(columns), tuple(table.column_names))


def _column(path: Path, name: str, column: Any) -> NDArray[Any]:
    if column.null_count:
        row = column.is_null().to_numpy().argmax() + 1
        raise InvalidInput(
            f"{path.name}, row {row}, column {name!r}: is empty; fill it in or leave out the row."
        )
    values = column.to_numpy()
    if values.dtype.kind not in "fiub":
        raise InvalidInput(
            f"{path.name}, column {name!r}: holds {column.type}, not numbers; leave it out."
        )
    if not np.isfinite(values).all():
        row = np.isfinite(values).argmin() + 1
        raise InvalidInput(
            f"{path.name}, row {row}, column {name!r}: is not finite; correct it or leave it out."
        )
    return floats(values)


def write_parquet(path: Path, rows: NDArray[Any], names: Sequence[str] | None = None) -> None:
    """One column per name; without names they are numbered."""
    parquet = _parquet(path)
    import pyarrow

    names = [str(number) for number in range(rows.shape[1])] if names is None else list(names)
    table = pyarrow.table([pyarrow.array(column) for column in rows.T], names=names)
    with written_whole(path) as file:
        parquet.write_table(table, file)


def _parquet(path: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise InvalidInput(
            f"{path}: Parquet files need the package pyarrow; run: pip install 'ikpca[parquet]'."
        ) from None
    return pyarrow.parquet
