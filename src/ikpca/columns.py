"""Tables of numbers, text and ids; choice of columns, and their encoding for models."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput
from ikpca.kernels import Floats

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = ["ColumnEncoder", "ColumnOptions", "Table", "find_columns"]

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
#: Ratio of standard deviations from which standardizing is recommended.
_SPREAD_RATIO = 10.0
#: Maximum number of values of a text column.
_MAX_CATEGORIES = 1000


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

    def check_cells(self, is_bad: Callable[[Floats], NDArray[np.bool_]], rule: str) -> None:
        """Raise an error for the first bad cell."""
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


def find_columns(text: str, names: Sequence[str], source: str) -> list[int]:
    """Return the positions of columns in the order of the table.

    The text has names and patterns such as ``x*``, separated by commas. A number that is not a
    name is a position, counted from 1.
    """
    positions: set[int] = set()
    # A name may contain a comma or an asterisk.
    for part in [text] if text in names else [part.strip() for part in text.split(",")]:
        if part in names:
            positions.add(names.index(part))
        elif part.isdecimal() and 1 <= int(part) <= len(names):
            positions.add(int(part) - 1)
        else:
            matching = [at for at, name in enumerate(names) if fnmatchcase(name, part)]
            if not matching:
                near = difflib.get_close_matches(part, names, n=1)
                meant = f"did you mean {near[0]!r}?" if near else f"it has {list_names(names)}."
                raise InvalidInput(f"{source}: has no column {part!r}; {meant}")
            positions.update(matching)
    return sorted(positions)


@dataclass(frozen=True)
class ColumnOptions:
    """Options of a fit for the columns of a table, as on the command line."""

    columns: str | None = None
    drop: str | None = None
    ids: str | None = None
    standardize: bool = False
    missing: str = "error"
    one_hot: bool = False

    def choose(self, header: Header, source: str) -> ColumnChoice:
        """Choose the columns to read; an index column identifies rows unless it is chosen."""
        chosen, dropped, ids = (
            [] if text is None else find_columns(text, header.names, source)
            for text in (self.columns, self.drop, self.ids)
        )
        if (
            self.ids is None
            and header.index_column is not None
            and header.index_column not in chosen
        ):
            ids = [header.index_column]
        wanted = range(len(header.names)) if self.columns is None else chosen
        features = [at for at in wanted if at not in {*dropped, *ids}]
        if not features:
            raise InvalidInput(f"{source}: no columns are left; choose fewer to leave out.")
        return ColumnChoice(features, ids)


@dataclass(frozen=True, eq=False)
class ColumnEncoder:
    """Encoding of a table as rows of numbers, fitted to one table and applied to others by name.

    Parameters
    ----------
    names : tuple of str
        Input columns; in a table without names their numbers, counted from 1.
    n_columns : int, optional
        Number of all columns of a table without names.
    ids : tuple of str
        Columns that identify rows; tables need not have them.
    missing : {"error", "drop", "median"}
    categories : dict of str to tuple of str
        Values of the text columns.
    fills : dict of str to float or str
        Values that replace empty cells, for ``missing="median"``.
    means, scales : ndarray, optional
        Of the encoded columns, if they are standardized.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.columns import ColumnEncoder, ColumnOptions, Table
    >>> table = Table(np.array([[1.0, 10.0], [3.0, 30.0]]), ("a", "b"))
    >>> encoded, encoder = ColumnEncoder.fit(table, ColumnOptions(standardize=True))
    >>> encoded.rows
    array([[-1., -1.],
           [ 1.,  1.]])
    >>> {name: column.tolist() for name, column in encoder.decode(encoded.rows).items()}
    {'a': [1.0, 3.0], 'b': [10.0, 30.0]}
    """

    names: tuple[str, ...]
    n_columns: int | None = None
    ids: tuple[str, ...] = ()
    missing: str = "error"
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fills: Mapping[str, float | str] = field(default_factory=dict)
    means: NDArray[np.float64] | None = None
    scales: NDArray[np.float64] | None = None

    @classmethod
    def fit(cls, table: Table, options: ColumnOptions) -> tuple[Table, Self]:
        """Return the encoded table, whose rows may be overwritten, and the encoder."""
        if not options.one_hot:
            table.check_no_text()
        fills = _fills(table) if options.missing == "median" else {}
        encoder = cls(table.names, table.n_columns, tuple(table.ids), options.missing, fills=fills)
        table = encoder._fill(table)
        if len(table.rows) < 2:
            raise InvalidInput(f"{table.source}: has one row; pass a table with at least two.")
        encoder = replace(encoder, categories=_categories(table))
        table = encoder._encode_complete(table)
        if not options.standardize:
            encoder._warn_of_spread(table.rows)
            return table, encoder
        means, scales = encoder._moments(table.rows)
        encoder = replace(encoder, means=means, scales=scales)
        return replace(table, rows=encoder._standardize(table.rows)), encoder

    @classmethod
    def numbered(cls, n_columns: int) -> Self:
        """Return the encoder of a table without names that is used as it is."""
        return cls(numbers_as_names(n_columns), n_columns)

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """Names of the encoded columns, such as ``color=red`` for a value of a text column."""
        return tuple(name for name, _ in self._encoded_columns())

    @property
    def origins(self) -> NDArray[np.object_]:
        """Input column of each encoded column."""
        return np.array([origin for _, origin in self._encoded_columns()], dtype=object)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features of a model; None for a table without names that is used as it is.

        A standardized column is named ``standardized(size)``, so that a model in Python raises an
        error for a data frame with the column ``size``.
        """
        if self.means is None:
            return self.encoded_names if self.n_columns is None else None
        return tuple(
            name if origin in self.categories else f"standardized({name})"
            for name, origin in self._encoded_columns()
        )

    def _encoded_columns(self) -> Iterator[tuple[str, str]]:
        for name in self.names:
            values = self.categories.get(name)
            yield from [(name, name)] if values is None else [(f"{name}={v}", name) for v in values]

    def choose(self, header: Header, source: str, ids: str | None, model: str) -> ColumnChoice:
        """Choose the columns of the fit in another table.

        Other columns are ignored, and columns may have another order. A table without names must
        have the columns of the fit. By default, the ids are those of the fit that the table has.
        """
        if ids is None:
            id_columns = [header.names.index(name) for name in self.ids if name in header.names]
        else:
            id_columns = find_columns(ids, header.names, source)
        if self.n_columns is None and header.is_named:
            positions = {name: at for at, name in enumerate(header.names)}
            missing = [name for name in self.names if name not in positions]
            if missing:
                raise InvalidInput(
                    f"{source}: has no {list_names(missing)}, which "
                    f"{model} needs; correct the names, or add what is missing."
                )
            features = [positions[name] for name in self.names]
        elif len(header.names) == self.n_columns:
            features = [int(name) - 1 for name in self.names]
        else:
            others = {*id_columns, header.index_column}
            features = [at for at in range(len(header.names)) if at not in others]
            if len(features) != len(self.names):
                raise InvalidInput(
                    f"{source}: has {len(features)} columns, and {model} needs {len(self.names)}; "
                    "pass the columns of the fit."
                )
        pairs = zip(features, self.names, strict=True)
        texts = frozenset(at for at, name in pairs if name in self.categories)
        return ColumnChoice(features, id_columns, texts)

    def transform(self, frame: DataFrame) -> Floats:
        """Encode the columns of a data frame as in the fit.

        Parameters
        ----------
        frame : pandas.DataFrame
            Other columns are ignored, and columns may have another order.

        Returns
        -------
        ndarray of shape (rows, encoded columns)
            Input for the model; without rows that ``missing="drop"`` leaves out.
        """
        header = Header(tuple(map(str, frame.columns)))
        choice = self.choose(header, "the data frame", None, "the model")
        frame = frame.set_index(np.arange(1, len(frame) + 1))
        return self.encode(Table.from_chunks([frame], header, choice)).rows

    def encode(self, table: Table, *, allow_unknown: bool = False) -> Table:
        """Return a table of numbers without gaps; rows of the table may be overwritten.

        Text that did not occur in the fit raises an error. With ``allow_unknown`` all columns of
        the text column are zero, as :meth:`has_unknown_text` reports.
        """
        texts = dict(zip(self.names, map(table.texts.get, table.names), strict=True))
        table = replace(
            table, texts={name: values for name, values in texts.items() if values is not None}
        )
        for name in self.categories:
            if name not in table.texts:
                raise InvalidInput(
                    f"{table.source}: has no text in column {name!r}; pass a CSV or Parquet file."
                )
        return self._encode_complete(self._fill(table), allow_unknown=allow_unknown)

    def _encode_complete(self, table: Table, *, allow_unknown: bool = False) -> Table:
        """Encode a table without gaps."""
        rows = table.rows
        if self.categories:
            columns = [
                self._one_hot(table, at, allow_unknown)
                if name in self.categories
                else rows[:, at : at + 1]
                for at, name in enumerate(self.names)
            ]
            rows = np.hstack(columns)
        return replace(table, rows=self._standardize(rows), names=self.encoded_names, texts={})

    def _one_hot(self, table: Table, at: int, allow_unknown: bool) -> Floats:
        """Return a column of zeros and ones for each value; rows of unknown text are zero."""
        texts, values = table.texts[self.names[at]], self.categories[self.names[at]]
        positions = {value: position for position, value in enumerate(values)}
        codes = table.rows[:, at].astype(np.intp)
        places = np.array([positions.get(text, -1) for text in texts])[codes]
        if not allow_unknown and places.min(initial=0) < 0:
            row = int(places.argmin())
            raise InvalidInput(
                f"{table.place(row, at)}: {texts[codes[row]][:40]!r} is not a value of the fit, "
                f"which had {', '.join(map(repr, values[:8]))}; correct it, or fit again."
            )
        return (places[:, None] == np.arange(len(values))).astype(table.rows.dtype)

    def decode(self, rows: Floats) -> dict[str, Cells]:
        """Return the input columns of encoded rows, in the units of the table.

        The value of a text column is that of its largest encoded column.
        """
        if self.means is not None and self.scales is not None:
            rows = rows * self.scales.astype(rows.dtype) + self.means.astype(rows.dtype)
        columns: dict[str, Cells] = {}
        for name in self.names:
            column, values = rows[:, self.origins == name], self.categories.get(name)
            columns[name] = (
                column[:, 0]
                if values is None
                else np.array(values, dtype=object)[column.argmax(axis=1)]
            )
        return columns

    def sum_columns(self, values: Floats) -> Floats:
        """Sum values of encoded columns over the columns of each input column."""
        if not self.categories:
            return values
        return np.column_stack([values[:, self.origins == name].sum(axis=1) for name in self.names])

    def has_unknown_text(self, rows: Floats) -> NDArray[np.bool_]:
        """Return True for input columns of encoded rows whose text did not occur in the fit."""
        is_unknown = np.zeros((len(rows), len(self.names)), dtype=bool)
        for name in self.categories:
            is_unknown[:, self.names.index(name)] = ~rows[:, self.origins == name].any(axis=1)
        return is_unknown

    def _fill(self, table: Table) -> Table:
        """Fill empty cells, or leave out their rows; raise an error for infinite cells."""
        table.check_cells(np.isinf, "is not finite; correct it or remove the row")
        if self.missing == "error":
            rule = "is empty or 'nan'; fill it in, or fit with --missing drop or --missing median"
            table.check_cells(np.isnan, rule)
            return table
        gaps: NDArray[np.bool_] = np.isnan(table.rows)
        if not gaps.any():
            return table
        if self.missing == "drop":
            kept: NDArray[np.bool_] = ~np.any(gaps, axis=1)
            if not kept.any():
                worst = table.names[int(gaps.sum(axis=0).argmax())]
                raise InvalidInput(
                    f"{table.source}: every row has an empty cell, most of them in column "
                    f"{worst!r}; pass --drop {worst}, or --missing median."
                )
            warnings.warn(
                f"{table.source}: {int((~kept).sum())} of {len(kept)} rows have empty cells and "
                "are left out",
                stacklevel=2,
            )
            return table.select_rows(kept)
        rows, texts = _writeable(table.rows), dict(table.texts)
        for at in np.flatnonzero(gaps.any(axis=0)):
            name = self.names[at]
            fill = self.fills[name]
            if isinstance(fill, str):
                # The stored value may not occur in this table.
                texts[name] = (*texts[name], fill)
                fill = texts[name].index(fill)
            rows[gaps[:, at], at] = fill
        return replace(table, rows=rows, texts=texts)

    def _standardize(self, rows: Floats) -> Floats:
        if self.means is None or self.scales is None:
            return rows
        rows = _writeable(rows)
        rows -= self.means.astype(rows.dtype)
        rows /= self.scales.astype(rows.dtype)
        return rows

    def _moments(self, rows: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return means and standard deviations of columns; 0 and 1 for values of text columns."""
        means, scales = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
        constant = []
        for at, name in enumerate(self.origins):
            if name in self.categories:
                continue
            column = rows[:, at].astype(np.float64)
            means[at], deviation = column.mean(), column.std()
            # Rounding gives a constant column a small deviation.
            if column.min() == column.max():
                constant.append(name)
            else:
                scales[at] = deviation
        if constant:
            warnings.warn(
                f"{list_names(constant)}: cannot be standardized, as "
                "all values are equal; only the mean is subtracted",
                stacklevel=3,
            )
        return means, scales

    def _warn_of_spread(self, rows: Floats) -> None:
        deviations = {
            name: float(rows[:, at].std(dtype=np.float64))
            for at, name in enumerate(self.origins)
            if name not in self.categories
        }
        ordered = sorted((value, name) for name, value in deviations.items() if value > 0)
        if ordered and ordered[-1][0] > _SPREAD_RATIO * ordered[0][0]:
            (smallest, narrowest), (largest, widest) = ordered[0], ordered[-1]
            warnings.warn(
                f"the spread of column {widest!r} is {largest / smallest:.3g} times that of "
                f"{narrowest!r}; "
                "pass --standardize unless their units are the same",
                stacklevel=3,
            )


def _fills(table: Table) -> dict[str, float | str]:
    """Return the median of each column of numbers and the most frequent value of text."""
    fills: dict[str, float | str] = {}
    for at, name in enumerate(table.names):
        column = table.rows[:, at]
        column = column[~np.isnan(column)]
        if not len(column):
            raise InvalidInput(f"{table.source}: column {name!r} is empty; pass --drop {name}.")
        if name in table.texts:
            fills[name] = table.texts[name][int(np.bincount(column.astype(np.intp)).argmax())]
        else:
            fills[name] = float(np.median(column))
    return fills


def _categories(table: Table) -> dict[str, tuple[str, ...]]:
    """Return the sorted values of each text column of a table without gaps."""
    categories = {}
    for name, texts in table.texts.items():
        if len(texts) > _MAX_CATEGORIES:
            raise InvalidInput(
                f"{table.source}: column {name!r} has {len(texts)} different texts, more than "
                f"{_MAX_CATEGORIES}; pass --drop {name}, or --id {name}."
            )
        codes = np.unique(table.rows[:, table.names.index(name)])
        categories[name] = tuple(sorted(texts[int(code)] for code in codes))
    return categories


def _writeable(rows: Floats) -> Floats:
    return rows if rows.flags.writeable else np.array(rows)
