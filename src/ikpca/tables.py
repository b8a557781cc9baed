"""Tables: chosen columns of a file or a data frame as numbers, texts and ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput
from ikpca.kernels import Floats

if TYPE_CHECKING:
    from pandas import DataFrame, Series

#: Numbers or texts of a column.
Cells: TypeAlias = NDArray[Any]
#: Cells that count as empty.
EMPTY_CELLS = frozenset(
    ("", "NA", "N/A", "n/a", "na", "#N/A", "<NA>", "NaN", "nan", "NAN", "NULL", "Null", "null")
)
#: Maximum number of names in a message.
_MAX_NAMES = 8
#: Rows that are checked at a time.
_STRIP_ROWS = 65536


class Header(NamedTuple):
    """Names of the columns of a file, or their numbers from 1 if ``is_named`` is False.

    ``index_column`` numbers or names the rows, as pandas and R write it.
    """

    names: tuple[str, ...]
    is_named: bool = True
    index_column: int | None = None


class ColumnChoice(NamedTuple):
    """Positions of the columns to read; ``texts`` are those of text, or None to find out."""

    features: Sequence[int]
    ids: Sequence[int] = ()
    texts: frozenset[int] | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """Chosen columns of a file."""

    #: Numbers, NaN for empty cells; in a text column indices of ``texts``.
    rows: Floats
    #: Names of the columns, or their numbers from 1 in a table without names.
    names: tuple[str, ...]
    #: Number of all columns of a table without names, otherwise None.
    n_columns: int | None = None
    #: Columns that identify rows, which are not part of ``rows``.
    ids: Mapping[str, Cells] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = "the table"
    #: Numbers of the rows, or lines, in the file; by default consecutive from 1.
    numbers: NDArray[np.int64] | None = None
    unit: str = "row"

    @classmethod
    def from_chunks(
        cls,
        chunks: Iterable[DataFrame],
        header: Header,
        choice: ColumnChoice,
        source: str = "the data frame",
        *,
        unit: str = "row",
        dtype: type[np.floating[Any]] = np.float64,
        decimal: str = ".",
    ) -> Self:
        """Return the chosen columns of data frames, which are indexed by numbers of rows."""
        names = [header.names[at] for at in choice.features]
        converters = [
            _CellConverter(
                f"{source}, {unit} {{}}, column {names[place]!r}"
                if header.is_named
                else f"{source}, {unit} {{}}, column {names[place]}",
                None if choice.texts is None else at in choice.texts,
                decimal,
            )
            for place, at in enumerate(choice.features)
        ]
        parts, ids, numbers = [], [], []
        for chunk in chunks:
            rows = np.empty((len(chunk), len(names)), dtype=dtype)
            for place, (at, convert) in enumerate(zip(choice.features, converters, strict=True)):
                rows[:, place] = convert(chunk.iloc[:, at])
            parts.append(rows)
            ids.append(chunk.iloc[:, [*choice.ids]].to_numpy(dtype=object))
            numbers.append(chunk.index.to_numpy(dtype=np.int64))
        if not sum(map(len, parts)):
            raise InvalidInput(f"{source}: has no rows; pass a file with at least one.")
        pairs = zip(names, converters, strict=True)
        return cls(
            np.concatenate(parts),
            tuple(names),
            None if header.is_named else len(header.names),
            dict(zip((header.names[at] for at in choice.ids), np.concatenate(ids).T, strict=True)),
            {name: tuple(convert.texts) for name, convert in pairs if convert.is_text},
            source,
            np.concatenate(numbers),
            unit,
        )

    def place(self, row: int, column: int) -> str:
        """Return file, line or row, and column of a cell, for messages."""
        name = self.names[column] if self.n_columns else repr(self.names[column])
        return f"{self.source}, {self.unit} {self.row_numbers[row]}, column {name}"

    @property
    def row_numbers(self) -> NDArray[np.int64]:
        """Numbers of the rows, or lines, in the file."""
        return np.arange(1, len(self.rows) + 1) if self.numbers is None else self.numbers

    def select_rows(self, kept: NDArray[np.bool_]) -> Self:
        """Return the table with the rows of a mask."""
        ids = {name: values[kept] for name, values in self.ids.items()}
        return replace(self, rows=self.rows[kept], ids=ids, numbers=self.row_numbers[kept])

    def check_no_text(self) -> None:
        """Raise an error that names the text columns."""
        if self.texts:
            example = next(iter(self.texts.values()))[0][:40]
            raise InvalidInput(
                f"{self.source}: text such as {example!r} in {list_names(self.texts)}; pass "
                f"--drop {','.join(self.texts)}, or --one-hot."
            )

    def check_no_gaps(self) -> None:
        """Raise an error for the first empty cell."""
        rule = "is empty or 'nan'; fill it in, or fit with --missing drop or --missing median"
        self._check_cells(np.isnan, rule)

    def check_no_infinity(self) -> None:
        """Raise an error for the first infinite cell."""
        self._check_cells(np.isinf, "is not finite; correct it or remove the row")

    def _check_cells(self, is_bad: Callable[[Floats], NDArray[np.bool_]], rule: str) -> None:
        for start in range(0, len(self.rows), _STRIP_ROWS):
            bad = is_bad(self.rows[start : start + _STRIP_ROWS])
            if bad.any():
                row, column = np.argwhere(bad)[0]
                raise InvalidInput(f"{self.place(start + int(row), int(column))}: {rule}.")


class _CellConverter:
    """Converter of the chunks of a column to numbers: NaN for empty cells, indices of texts.

    A column is text if ``is_text`` is True, or None and its first filled cell is text.
    """

    def __init__(self, place: str, is_text: bool | None, decimal: str) -> None:
        self._place = place
        self.is_text = is_text
        self.texts: dict[str, int] = {}
        # A point beside decimal commas groups digits, and is not read as decimal point.
        self._decimal = str.maketrans(",.", ".?") if decimal == "," else {}

    def __call__(self, column: Series) -> Floats:
        if not self.is_text and column.dtype.kind in "fiub":
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        cells = column.to_numpy(dtype=object)
        if not self.is_text and not self._decimal:
            try:
                return cells.astype(np.float64)
            except (TypeError, ValueError):
                # Some cells are empty or text.
                pass
        cells = [cell.strip() if isinstance(cell, str) else cell for cell in cells]
        values = np.full(len(cells), np.nan)
        for row in np.flatnonzero(~column.isna()):
            if cells[row] not in EMPTY_CELLS:
                values[row] = self._convert(cells[row], column.index[row])
        return values

    def _convert(self, cell: str | float, number: int) -> float:
        """Return the number of a filled cell, or the index of its text."""
        if not self.is_text:
            try:
                value = float(self._with_points(cell))
                self.is_text = False
                return value
            except (TypeError, ValueError):
                if self.is_text is False or not isinstance(cell, str):
                    has_comma = isinstance(cell, str) and "," in cell
                    remedy = "correct it, or leave out the row or the column"
                    raise InvalidInput(
                        f"{self._place.format(number)}: {str(cell)[:40]!r} is not a number; "
                        f"{'write decimals with a point' if has_comma else remedy}."
                    ) from None
        self.is_text = True
        return self.texts.setdefault(str(cell), len(self.texts))

    def _with_points(self, cell: str | float) -> str | float:
        return cell.translate(self._decimal) if self._decimal and isinstance(cell, str) else cell


def is_number(cell: str) -> bool:
    """Return True for the text of a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def float_type(dtypes: Iterable[np.dtype[Any]]) -> type[np.floating[Any]]:
    """Return float32 if it represents every value of the numbers, otherwise float64."""
    numeric = [dtype for dtype in dtypes if dtype.kind in "fiub"]
    is_small = all(dtype.itemsize <= 2 or dtype == np.float32 for dtype in numeric)
    return np.float32 if numeric and is_small else np.float64


def list_names(names: Iterable[str]) -> str:
    """Return "column 'a'" or "columns 'a', 'b' and 5 more"."""
    quoted = [repr(name) for name in names]
    more = f" and {len(quoted) - _MAX_NAMES} more" if len(quoted) > _MAX_NAMES else ""
    return f"column{'s' * (len(quoted) > 1)} {', '.join(quoted[:_MAX_NAMES])}{more}"


def numbers_as_names(number: int) -> tuple[str, ...]:
    """Return the names of the columns of a table without names."""
    return tuple(str(position + 1) for position in range(number))
