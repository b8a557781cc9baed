"""Tables of numbers, text and ids; choice of columns, and their encoding for models."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import accumulate
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
    ("", "NA", "N/A", "n/a", "na", "#N/A", "<NA>", "NaN", "nan", "NAN", "NULL", "Null", "null",
     "None", "\\N")
)  # fmt: skip
#: Maximum number of names in a message.
_MAX_NAMES = 8
#: Rows that are checked at a time.
_STRIP_ROWS = 65536
#: Ratio of standard deviations from which standardizing is recommended.
_SPREAD_RATIO = 10.0
#: Maximum number of values of a text column.
_MAX_CATEGORIES = 1000
_DECIMAL_COMMAS = str.maketrans(",.", ".?")


class Header(NamedTuple):
    """Names of the columns of a file, or their numbers from 1 if ``is_named`` is False.

    ``index_column`` is the one that numbers or names the rows, as pandas and R write it.
    """

    names: Sequence[str]
    is_named: bool = True
    index_column: str | None = None


class ColumnChoice(NamedTuple):
    """Columns to read; ``texts`` are those of text, or None if cells decide."""

    features: Sequence[str]
    ids: Sequence[str] = ()
    texts: Collection[str] | None = None


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
        source: str,
        *,
        unit: str = "row",
        dtype: type[np.floating[Any]] = np.float64,
        decimal: str = ".",
    ) -> Self:
        """Return the chosen columns of data frames, which are indexed by numbers of rows."""
        features, ids, texts = choice
        columns = {
            name: _Column(None if texts is None else name in texts, decimal) for name in features
        }
        parts, id_parts, numbers = [], [], []
        for chunk in chunks:
            rows = np.empty((len(chunk), len(features)), dtype=dtype)
            for at, (name, column) in enumerate(columns.items()):
                rows[:, at], bad = column.convert(chunk[name])
                if bad is not None:
                    label = repr(name) if header.is_named else name
                    cell = str(chunk[name].iloc[bad])
                    remedy = "correct it, or leave out the row or the column"
                    raise InvalidInput(
                        f"{source}, {unit} {chunk.index[bad]}, column {label}: {cell[:40]!r} is "
                        f"not a number; {'write decimals with a point' if ',' in cell else remedy}."
                    )
            parts.append(rows)
            id_parts.append(chunk[[*ids]].to_numpy(dtype=object))
            numbers.append(chunk.index.to_numpy(dtype=np.int64))
        if not sum(map(len, parts)):
            raise InvalidInput(f"{source}: has no rows; pass a file with at least one.")
        return cls(
            np.concatenate(parts),
            tuple(features),
            None if header.is_named else len(header.names),
            dict(zip(ids, np.concatenate(id_parts).T, strict=True)),
            {name: tuple(column.texts) for name, column in columns.items() if column.is_text},
            source,
            np.concatenate(numbers),
            unit,
        )

    @property
    def row_numbers(self) -> NDArray[np.int64]:
        """Numbers of the rows, or lines, in the file."""
        return np.arange(1, len(self.rows) + 1) if self.numbers is None else self.numbers

    def place(self, row: int, column: int) -> str:
        """Return file, line or row, and column of a cell, for messages."""
        name = self.names[column] if self.n_columns else repr(self.names[column])
        return f"{self.source}, {self.unit} {self.row_numbers[row]}, column {name}"

    def check_cells(self, is_bad: Callable[[Floats], NDArray[np.bool_]], rule: str) -> None:
        """Raise an error for the first bad cell."""
        for start in range(0, len(self.rows), _STRIP_ROWS):
            bad = is_bad(self.rows[start : start + _STRIP_ROWS])
            if bad.any():
                row, column = np.argwhere(bad)[0]
                raise InvalidInput(f"{self.place(start + int(row), int(column))}: {rule}.")


@dataclass
class _Column:
    """Column that is read in chunks; it is text if its first filled cell is."""

    is_text: bool | None
    decimal: str
    texts: dict[str, int] = field(default_factory=dict)

    def convert(self, cells: Series) -> tuple[Floats, int | None]:
        """Return numbers or indices of texts, NaN for empty cells, and the first bad cell."""
        if not self.is_text and self.decimal == "." and cells.dtype.kind in "fiubO":
            try:
                values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
            except (TypeError, ValueError):
                # Some cells are empty or text.
                pass
            else:
                if not np.isnan(values).all():
                    self.is_text = False
                return values, None
        texts = cells.astype(object).where(cells.notna(), "").astype(str).str.strip()
        filled = np.flatnonzero(~texts.isin(EMPTY_CELLS))
        texts = texts.iloc[filled]
        # A point beside decimal commas groups digits, and is not a decimal point.
        numbers = texts if self.decimal == "." else texts.str.translate(_DECIMAL_COMMAS)
        if self.is_text is None and len(filled):
            self.is_text = not is_number(numbers.iloc[0])
        values = np.full(len(cells), np.nan)
        if self.is_text:
            values[filled] = [self.texts.setdefault(text, len(self.texts)) for text in texts]
            return values, None
        try:
            # As exact as float(), unlike the functions of pandas.
            values[filled] = numbers.to_numpy(dtype=object).astype(np.float64)
        except ValueError:
            return values, filled[[is_number(text) for text in numbers].index(False)]
        return values, None


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


def find_columns(text: str, names: Sequence[str], source: str) -> list[str]:
    """Return columns in the order of the table.

    The text has names and patterns such as ``x*``, separated by commas. A number that is not a
    name is a position, counted from 1.
    """
    chosen: set[str] = set()
    # A name may contain a comma or an asterisk.
    for part in [text] if text in names else [part.strip() for part in text.split(",")]:
        if part in names:
            chosen.add(part)
        elif part.isdecimal() and 1 <= int(part) <= len(names):
            chosen.add(names[int(part) - 1])
        else:
            matching = [name for name in names if fnmatchcase(name, part)]
            if not matching:
                near = difflib.get_close_matches(part, names, n=1)
                meant = f"did you mean {near[0]!r}?" if near else f"it has {list_names(names)}."
                raise InvalidInput(f"{source}: has no column {part!r}; {meant}")
            chosen.update(matching)
    return [name for name in names if name in chosen]


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
        index = header.index_column
        if self.ids is None and index is not None and index not in chosen:
            ids = [index]
        features = [name for name in chosen or header.names if name not in {*dropped, *ids}]
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
        if table.texts and not options.one_hot:
            example = next(iter(table.texts.values()))[0][:40]
            raise InvalidInput(
                f"{table.source}: text such as {example!r} in {list_names(table.texts)}; pass "
                f"--drop {','.join(table.texts)}, or --one-hot."
            )
        fills = _fills(table) if options.missing == "median" else {}
        encoder = cls(table.names, table.n_columns, tuple(table.ids), options.missing, fills=fills)
        table = encoder._fill(table)
        if len(table.rows) < 2:
            raise InvalidInput(f"{table.source}: has one row; pass a table with at least two.")
        encoder = replace(encoder, categories=_categories(table))
        table = encoder.encode(table)
        # Rounding gives a constant column a small deviation.
        deviations = {
            name: float(column.std(dtype=np.float64)) if column.min() < column.max() else 0.0
            for name, (column, *_) in encoder._split(table.rows)
            if name not in encoder.categories
        }
        if not options.standardize:
            _warn_of_spread(deviations)
            return table, encoder
        constant = [name for name, deviation in deviations.items() if not deviation]
        if constant:
            warnings.warn(
                f"{list_names(constant)}: cannot be standardized, as all values are equal; only "
                "the mean is subtracted",
                stacklevel=2,
            )
        means, scales = np.zeros(table.rows.shape[1]), np.ones(table.rows.shape[1])
        for name, at in zip(encoder.names, encoder._starts, strict=True):
            if name in deviations:
                means[at] = table.rows[:, at].mean(dtype=np.float64)
                scales[at] = deviations[name] or 1.0
        encoder = replace(encoder, means=means, scales=scales)
        return replace(table, rows=encoder._standardize(table.rows)), encoder

    @property
    def _starts(self) -> list[int]:
        """First encoded column of each input column."""
        widths = [len(self.categories.get(name, ("",))) for name in self.names]
        return [0, *accumulate(widths[:-1])]

    def _split(self, values: Floats) -> Iterator[tuple[str, Floats]]:
        """Yield the input columns with their encoded columns as rows."""
        return zip(self.names, np.split(values.T, self._starts[1:]), strict=True)

    def _encoded_names(self, pattern: str) -> tuple[str, ...]:
        return tuple(
            f"{name}={value}" if name in self.categories else pattern.format(name)
            for name in self.names
            for value in self.categories.get(name, ("",))
        )

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features of a model; None for a table without names that is used as it is.

        A standardized column is named ``standardized(size)``, so that a model in Python raises an
        error for a data frame with the column ``size``.
        """
        if self.means is not None:
            return self._encoded_names("standardized({})")
        return self._encoded_names("{}") if self.n_columns is None else None

    def choose(self, header: Header, source: str, ids: str | None, model: str) -> ColumnChoice:
        """Choose the columns of the fit in another table.

        Other columns are ignored, and columns may have another order. A table without names must
        have the columns of the fit. By default, the ids are those of the fit that the table has.
        """
        if ids is None:
            id_columns = [name for name in self.ids if name in header.names]
        else:
            id_columns = find_columns(ids, header.names, source)
        names = header.names
        if self.n_columns is None and header.is_named:
            missing = [name for name in self.names if name not in names]
            if missing:
                raise InvalidInput(
                    f"{source}: has no {list_names(missing)}, which "
                    f"{model} needs; correct the names, or add what is missing."
                )
            features = [*self.names]
        elif len(names) == self.n_columns:
            features = [names[int(name) - 1] for name in self.names]
        else:
            features = [name for name in names if name not in {*id_columns, header.index_column}]
            if len(features) != len(self.names):
                raise InvalidInput(
                    f"{source}: has {len(features)} columns, and {model} needs {len(self.names)}; "
                    "pass the columns of the fit."
                )
        pairs = zip(features, self.names, strict=True)
        return ColumnChoice(
            features, id_columns, {own for own, name in pairs if name in self.categories}
        )

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
        header = Header([str(name) for name in frame.columns])
        choice = self.choose(header, "the data frame", None, "the model")
        frame = frame.set_axis([*header.names], axis=1).set_index(np.arange(1, len(frame) + 1))
        return self.encode(Table.from_chunks([frame], header, choice, "the data frame")).rows

    def encode(self, table: Table, *, allow_unknown: bool = False) -> Table:
        """Return a table of numbers without gaps; rows of the table may be overwritten.

        Text that did not occur in the fit raises an error. With ``allow_unknown`` all columns of
        the text column are zero, as :meth:`has_unknown_text` reports.
        """
        pairs = zip(self.names, table.names, strict=True)
        texts = {own: table.texts[name] for own, name in pairs if name in table.texts}
        for name in self.categories:
            if name not in texts:
                raise InvalidInput(
                    f"{table.source}: has no text in column {name!r}; pass a CSV or Parquet file."
                )
        table = self._fill(replace(table, texts=texts))
        rows = table.rows
        if self.categories:
            columns = [
                self._one_hot(table, at, allow_unknown)
                if name in self.categories
                else rows[:, at : at + 1]
                for at, name in enumerate(self.names)
            ]
            rows = np.hstack(columns)
        names = self._encoded_names("{}")
        return replace(table, rows=self._standardize(rows), names=names, texts={})

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
        return {
            name: np.array(self.categories[name], dtype=object)[columns.argmax(axis=0)]
            if name in self.categories
            else columns[0]
            for name, columns in self._split(rows)
        }

    def sum_columns(self, values: Floats) -> Floats:
        """Sum values of encoded columns over the columns of each input column."""
        return np.add.reduceat(values, self._starts, axis=1)

    def has_unknown_text(self, rows: Floats) -> NDArray[np.bool_]:
        """Return True for input columns of encoded rows whose text did not occur in the fit."""
        is_text = [name in self.categories for name in self.names]
        return (np.maximum.reduceat(rows, self._starts, axis=1) == 0) & is_text

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
            ids = {name: values[kept] for name, values in table.ids.items()}
            return replace(table, rows=table.rows[kept], ids=ids, numbers=table.row_numbers[kept])
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


def _warn_of_spread(deviations: Mapping[str, float]) -> None:
    ordered = sorted((value, name) for name, value in deviations.items() if value > 0)
    if ordered and ordered[-1][0] > _SPREAD_RATIO * ordered[0][0]:
        (smallest, narrowest), (largest, widest) = ordered[0], ordered[-1]
        warnings.warn(
            f"the spread of column {widest!r} is {largest / smallest:.3g} times that of "
            f"{narrowest!r}; pass --standardize unless their units are the same",
            stacklevel=3,
        )


def _fills(table: Table) -> dict[str, float | str]:
    """Return the median of each column of numbers and the most frequent value of text."""
    fills: dict[str, float | str] = {}
    for name, column in zip(table.names, table.rows.T, strict=True):
        filled = column[~np.isnan(column)]
        if not len(filled):
            raise InvalidInput(f"{table.source}: column {name!r} is empty; pass --drop {name}.")
        if name in table.texts:
            fills[name] = table.texts[name][int(np.bincount(filled.astype(np.intp)).argmax())]
        else:
            fills[name] = float(np.median(filled))
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
