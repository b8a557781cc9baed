"""Tables of numbers, text and ids; choice of columns, and their encoding for models."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput
from ikpca.kernels import Floats

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = ["ColumnEncoder", "Table", "choose_columns", "find_columns"]

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
_STRIP_ROWS = 8192
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
    """Columns to read; the first filled cell of a column decides on ``is_text`` by default."""

    features: Sequence[str]
    ids: Sequence[str] = ()
    is_text: Mapping[str, bool] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Table:
    """Chosen columns of a file."""

    #: Numbers and text, NaN for empty cells; the index numbers the rows, or the lines of a text.
    frame: DataFrame
    #: Columns that identify rows, which are not part of ``frame``.
    ids: DataFrame
    source: str = "the table"
    unit: str = "row"
    #: Number of all columns of a table without names, otherwise None.
    n_columns: int | None = None
    #: Numbers of ``frame``, if they are an array, which may be memory-mapped.
    array: Floats | None = None

    @classmethod
    def from_chunks(
        cls,
        chunks: Iterable[DataFrame],
        header: Header,
        choice: ColumnChoice,
        source: str,
        *,
        unit: str = "row",
        decimal: str = ".",
    ) -> Self:
        """Return the chosen columns of data frames, which are indexed by numbers of rows."""
        import pandas

        n_columns = None if header.is_named else len(header.names)
        features, is_text = choice.features, dict(choice.is_text)
        parts, id_parts = [], []
        for chunk in chunks:
            table = cls(chunk, chunk[[*choice.ids]].astype(object), source, unit, n_columns)
            columns = {name: table._convert(name, is_text, decimal) for name in features}
            parts.append(pandas.DataFrame(columns, index=chunk.index))
            id_parts.append(table.ids)
        if not sum(map(len, parts)):
            raise InvalidInput(f"{source}: has no rows; pass a file with at least one.")
        return replace(table, frame=pandas.concat(parts), ids=pandas.concat(id_parts))

    def _convert(self, name: str, is_text: dict[str, bool], decimal: str) -> Series:
        """Return numbers, or text if the first filled cell is; empty cells become NaN."""
        cells = self.frame[name]
        if not is_text.get(name) and (decimal == "." or is_numeric(cells.dtype)):
            # As exact as float(), unlike the functions of pandas; some cells may be empty or text.
            with suppress(TypeError, ValueError):
                numbers = cells.astype(float_type([cells.dtype]))
                if numbers.notna().any():
                    is_text[name] = False
                return numbers
        cells = cells.astype(object).astype(str).astype(object).str.strip()
        cells = cells.where(~cells.isin(EMPTY_CELLS), np.nan)
        # A point beside decimal commas groups digits, and is not a decimal point.
        numbers = cells if decimal == "." else cells.str.translate(_DECIMAL_COMMAS)
        filled = numbers.dropna()
        if len(filled):
            is_text.setdefault(name, not is_number(filled.iloc[0]))
        if is_text.get(name):
            return cells
        with suppress(ValueError):
            return numbers.astype(np.float64)
        row = next(row for row, cell in filled.items() if not is_number(cell))
        remedy = "correct it, or leave out the row or the column"
        raise InvalidInput(
            f"{self.place(row, name)}: {cells[row][:40]!r} is not a number; "
            f"{'write decimals with a point' if ',' in cells[row] else remedy}."
        )

    @property
    def rows(self) -> Floats:
        """Numbers of a table without text, row by row in memory."""
        if self.array is not None:
            return self.array
        return np.ascontiguousarray(self.frame, dtype=float_type(self.frame.dtypes))

    def with_rows(self, rows: Floats, names: Sequence[str]) -> Self:
        """Return the table with other columns."""
        from pandas import DataFrame

        frame = DataFrame(rows, self.frame.index, [*names], copy=False)
        return replace(self, frame=frame, array=rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, or their numbers from 1 in a table without names."""
        return tuple(self.frame.columns)

    @property
    def texts(self) -> list[str]:
        """Names of the columns of text."""
        return [name for name, dtype in self.frame.dtypes.items() if not is_numeric(dtype)]

    def place(self, row: int, name: str) -> str:
        """Return file, line or row, and column of a cell, for messages."""
        label = repr(name) if self.n_columns is None else name
        return f"{self.source}, {self.unit} {row}, column {label}"

    def check_cells(self, is_bad: Callable[[DataFrame], DataFrame], rule: str) -> None:
        """Raise an error for the first bad cell."""
        for start in range(0, len(self.frame), _STRIP_ROWS):
            bad = is_bad(self.frame.iloc[start : start + _STRIP_ROWS])
            if bad.to_numpy().any():
                row, column = np.argwhere(bad.to_numpy())[0]
                raise InvalidInput(f"{self.place(bad.index[row], bad.columns[column])}: {rule}.")


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Return True for the type of a column of numbers, False for that of text."""
    return dtype.kind in "fiub"


def is_number(cell: str) -> bool:
    """Return True for the text of a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def float_type(dtypes: Iterable[np.dtype[Any]]) -> type[np.floating[Any]]:
    """Return float32 if it represents every value of the numbers, otherwise float64."""
    numeric = [*filter(is_numeric, dtypes)]
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


def choose_columns(
    header: Header,
    source: str,
    columns: str | None = None,
    drop: str | None = None,
    ids: str | None = None,
) -> ColumnChoice:
    """Choose the columns of a fit; an index column identifies rows unless it is chosen."""
    chosen, dropped, id_columns = (
        [] if text is None else find_columns(text, header.names, source)
        for text in (columns, drop, ids)
    )
    index = header.index_column
    if ids is None and index is not None and index not in chosen:
        id_columns = [index]
    features = [name for name in chosen or header.names if name not in {*dropped, *id_columns}]
    if not features:
        raise InvalidInput(f"{source}: no columns are left; choose fewer to leave out.")
    return ColumnChoice(features, id_columns)


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
    means, scales : dict of str to float
        Of the columns of numbers, if they are standardized.

    Examples
    --------
    >>> import pandas
    >>> from ikpca.columns import ColumnEncoder, Table
    >>> frame = pandas.DataFrame({"a": [1.0, 3.0], "b": [10.0, 30.0]})
    >>> encoded, encoder = ColumnEncoder.fit(Table(frame, frame[[]]), standardize=True)
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
    means: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        table: Table,
        *,
        standardize: bool = False,
        missing: str = "error",
        one_hot: bool = False,
    ) -> tuple[Table, Self]:
        """Return the encoded table, and the encoder."""
        if table.texts and not one_hot:
            example = table.frame[table.texts[0]].dropna().iloc[0][:40]
            raise InvalidInput(
                f"{table.source}: text such as {example!r} in {list_names(table.texts)}; pass "
                f"--drop {','.join(table.texts)}, or --one-hot."
            )
        fills = _fills(table) if missing == "median" else {}
        encoder = cls(table.names, table.n_columns, tuple(table.ids), missing, fills=fills)
        table = encoder._fill(table)
        if len(table.frame) < 2:
            raise InvalidInput(f"{table.source}: has one row; pass a table with at least two.")
        encoder = replace(encoder, categories=_categories(table))
        means, deviations = {}, {}
        for name, cells in table.frame.drop(columns=table.texts).items():
            column = cells.to_numpy(np.float64)
            means[name] = float(column.mean())
            # Rounding gives a constant column a small deviation.
            deviations[name] = float(column.std()) if column.min() < column.max() else 0.0
        if not standardize:
            _warn_of_spread(deviations)
            return encoder.encode(table), encoder
        constant = [name for name, deviation in deviations.items() if not deviation]
        if constant:
            warnings.warn(
                f"{list_names(constant)}: cannot be standardized, as all values are equal; only "
                "the mean is subtracted",
                stacklevel=2,
            )
        scales = {name: deviation or 1.0 for name, deviation in deviations.items()}
        encoder = replace(encoder, means=means, scales=scales)
        return encoder.encode(table), encoder

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
        if self.scales:
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
        is_text = {own: name in self.categories for own, name in pairs}
        return ColumnChoice(features, id_columns, is_text)

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
        """Return a table of numbers without gaps; the rows of an array may be overwritten.

        Text that did not occur in the fit raises an error. With ``allow_unknown`` all columns of
        the text column are zero, as :meth:`has_unknown_text` reports.
        """
        from pandas import Index

        for name, dtype in zip(self.names, table.frame.dtypes, strict=True):
            if name in self.categories and is_numeric(dtype):
                raise InvalidInput(
                    f"{table.source}: has no text in column {name!r}; pass a CSV or Parquet file."
                )
        table = self._fill(table)
        names = self._encoded_names("{}")
        if not self.categories and not self.scales:
            return table.with_rows(table.rows, names)
        if self.categories:
            rows = np.empty((len(table.frame), len(names)), float_type(table.frame.dtypes))
        else:
            rows = np.require(table.rows, requirements="W")
        pairs = zip(self._split(rows), table.frame.items(), strict=True)
        for (name, columns), (own, cells) in pairs:
            if name not in self.categories:
                columns[0] = cells
                columns[0] -= self.means.get(name, 0.0)
                columns[0] /= self.scales.get(name, 1.0)
                continue
            values = self.categories[name]
            codes = Index(values, dtype=object).get_indexer(cells)
            if not allow_unknown and codes.min() < 0:
                row = cells.index[codes.argmin()]
                raise InvalidInput(
                    f"{table.place(row, own)}: {cells[row][:40]!r} is not a value of the fit, "
                    f"which had {', '.join(map(repr, values[:8]))}; correct it, or fit again."
                )
            columns[...] = codes == np.arange(len(values))[:, None]
        return table.with_rows(rows, names)

    def decode(self, rows: Floats) -> dict[str, Cells]:
        """Return the input columns of encoded rows, in the units of the table.

        The value of a text column is that of its largest encoded column.
        """
        return {
            name: np.array(self.categories[name], dtype=object)[columns.argmax(axis=0)]
            if name in self.categories
            else columns[0] * self.scales.get(name, 1.0) + self.means.get(name, 0.0)
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
        texts = table.texts
        table.check_cells(
            lambda frame: np.isinf(frame.drop(columns=texts)),
            "is not finite; correct it or remove the row",
        )
        if self.missing == "error":
            rule = "is empty or 'nan'; fill it in, or fit with --missing drop or --missing median"
            table.check_cells(lambda frame: frame.isna(), rule)
            return table
        n_gaps = table.frame.isna().sum()
        if not n_gaps.any():
            return table
        if self.missing == "drop":
            frame = table.frame.dropna()
            if frame.empty:
                worst = n_gaps.idxmax()
                raise InvalidInput(
                    f"{table.source}: every row has an empty cell, most of them in column "
                    f"{worst!r}; pass --drop {worst}, or --missing median."
                )
            warnings.warn(
                f"{table.source}: {len(table.frame) - len(frame)} of {len(table.frame)} rows have "
                "empty cells and are left out",
                stacklevel=2,
            )
            return replace(table, frame=frame, ids=table.ids.loc[frame.index], array=None)
        filled = {
            own: cells.fillna(self.fills[name]).astype(cells.dtype)
            for name, (own, cells) in zip(self.names, table.frame.items(), strict=True)
            if n_gaps[own]
        }
        return replace(table, frame=table.frame.assign(**filled), array=None)


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
    for name, column in table.frame.items():
        filled = column.dropna()
        if filled.empty:
            raise InvalidInput(f"{table.source}: column {name!r} is empty; pass --drop {name}.")
        if is_numeric(column.dtype):
            fills[name] = float(np.median(filled))
        else:
            fills[name] = filled.value_counts(sort=False).idxmax()
    return fills


def _categories(table: Table) -> dict[str, tuple[str, ...]]:
    """Return the sorted values of each text column of a table without gaps."""
    categories = {name: tuple(sorted(table.frame[name].unique())) for name in table.texts}
    for name, values in categories.items():
        if len(values) > _MAX_CATEGORIES:
            raise InvalidInput(
                f"{table.source}: column {name!r} has {len(values)} different texts, more than "
                f"{_MAX_CATEGORIES}; pass --drop {name}, or --id {name}."
            )
    return categories
