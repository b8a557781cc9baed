"""Selection and encoding of the columns of tables, stored with models of the command line."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput
from ikpca.tables import ColumnChoice, Table, read_columns

__all__ = ["ColumnEncoder", "ColumnOptions", "find_columns"]

#: Ratio of standard deviations from which standardizing is recommended.
_SPREAD_RATIO = 10.0
#: Maximum number of values of a text column.
_MAX_CATEGORIES = 1000
#: Maximum number of names in a message.
_MAX_NAMES = 8


def find_columns(text: str, keys: Sequence[str], source: str) -> list[int]:
    """Return the positions of columns in the order of the table.

    Parameters
    ----------
    text : str
        Names, patterns such as ``x*`` and ranges such as ``a:d``, separated by commas. A number
        that is not a name is a position, counted from 1.
    keys : sequence of str
        Names of all columns.
    source : str
        Name of the file, for messages.

    Returns
    -------
    list of int

    Examples
    --------
    >>> from ikpca.columns import find_columns
    >>> find_columns("b:d,x*", ["a", "b", "c", "d", "x1", "x2"], "rows.csv")
    [1, 2, 3, 4, 5]
    """
    found: set[int] = set()
    # A name may contain a comma.
    for part in [text] if text in keys else text.split(","):
        found.update(_find_part(part.strip(), keys, source))
    return sorted(found)


def _find_part(part: str, keys: Sequence[str], source: str) -> Sequence[int]:
    position = _position(part, keys)
    if position is not None:
        return [position]
    matching = [at for at, key in enumerate(keys) if fnmatchcase(key, part)]
    if matching:
        return matching
    first, separator, last = (each.strip() for each in part.partition(":"))
    ends = _position(first, keys), _position(last, keys)
    if separator and ends[0] is not None and ends[1] is not None:
        if ends[0] > ends[1]:
            raise InvalidInput(
                f"{source}: the range {part!r} is empty; pass {last}:{first}, its first column "
                "first."
            )
        return range(ends[0], ends[1] + 1)
    wanted = part
    if separator:
        wanted = first if ends[0] is None else last
    near = difflib.get_close_matches(wanted, keys, n=1)
    meant = f"did you mean {near[0]!r}?" if near else f"it has {_list_names(keys)}."
    raise InvalidInput(f"{source}: has no column {wanted!r}; {meant}")


def _position(name: str, keys: Sequence[str]) -> int | None:
    if name in keys:
        return keys.index(name)
    if name.isdecimal() and 1 <= int(name) <= len(keys):
        return int(name) - 1
    return None


def _list_names(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_MAX_NAMES]))
    return shown + (f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else "")


def _numbers(number: int) -> tuple[str, ...]:
    return tuple(str(position + 1) for position in range(number))


@dataclass(frozen=True)
class ColumnOptions:
    r"""Options of a fit for the columns of a table.

    Parameters
    ----------
    columns, drop, ids : str, optional
        Columns as for :func:`find_columns`: those to use (by default all), those to leave out, and
        those that identify rows.
    standardize : bool, default=False
        If True, columns of numbers get mean 0 and standard deviation 1.
    missing : {"error", "drop", "median"}, default="error"
        Rows with empty cells raise an error, are left out, or get the median of the column (the
        most frequent value of a text column).
    one_hot : bool, default=False
        If True, a text column becomes a column of zeros and ones for each of its values.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ikpca.columns import ColumnOptions
    >>> path = Path(tempfile.mkdtemp(), "rows.csv")
    >>> _ = path.write_text("name,size,color\nA,1,red\nB,,blue\nC,3,red\n")
    >>> table, encoder = ColumnOptions(ids="name", missing="median", one_hot=True).read(path)
    >>> table.names
    ('size', 'color=blue', 'color=red')
    >>> table.rows
    array([[1., 0., 1.],
           [2., 1., 0.],
           [3., 0., 1.]])
    """

    columns: str | None = None
    drop: str | None = None
    ids: str | None = None
    standardize: bool = False
    missing: str = "error"
    one_hot: bool = False

    def read(self, source: Any) -> tuple[Table, ColumnEncoder | None]:
        """Read a table and fit its encoder.

        Returns
        -------
        table : Table
        encoder : ColumnEncoder or None
            None for arrays if no option is set.
        """
        table = read_columns(source, self._chooser(str(source)))
        if table.counted == "row" and table.names is None and self == ColumnOptions():
            return table, None
        return ColumnEncoder.fit(table, self)

    def _chooser(self, source: str) -> Any:
        def choose(names: tuple[str, ...] | None, number: int) -> ColumnChoice:
            keys = _numbers(number) if names is None else names
            chosen, dropped, ids = (
                [] if text is None else find_columns(text, keys, source)
                for text in (self.columns, self.drop, self.ids)
            )
            wanted = range(number) if self.columns is None else chosen
            features = [at for at in wanted if at not in {*dropped, *ids}]
            if not features:
                raise InvalidInput(f"{source}: no columns are left; choose fewer to leave out.")
            return ColumnChoice(features, ids)

        return choose


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
    >>> from ikpca.columns import ColumnEncoder, ColumnOptions
    >>> from ikpca.tables import Table
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
        encoder = cls(
            table.keys,
            None if table.names is not None else table.n_columns,
            tuple(table.ids),
            options.missing,
            fills=_fills(table) if options.missing == "median" else {},
        )
        table.check_no_infinity()
        table = encoder._fill(table)
        if len(table.rows) < 2:
            raise InvalidInput(f"{table.source}: has one row; pass a table with at least two.")
        encoder = replace(encoder, categories=_categories(table))
        encoded = encoder._encode_complete(table)
        if not options.standardize:
            encoder._warn_of_spread(encoded.rows)
            return encoded, encoder
        means, scales = encoder._moments(encoded.rows)
        encoder = replace(encoder, means=means, scales=scales)
        return replace(encoded, rows=encoder._standardize(encoded.rows)), encoder

    @classmethod
    def numbered(cls, n_columns: int) -> Self:
        """Return the encoder of a table without names that is used as it is."""
        return cls(_numbers(n_columns), n_columns)

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """Names of the encoded columns, such as ``color=red`` for a value of a text column."""
        return tuple(name for name, _ in self._encoded_columns())

    @property
    def origins(self) -> tuple[str, ...]:
        """Input column of each encoded column."""
        return tuple(origin for _, origin in self._encoded_columns())

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

    def read(
        self,
        source: Any,
        *,
        ids: str | None = None,
        model: str = "the model",
        allow_unknown: bool = False,
    ) -> Table:
        """Read the columns of the fit from another table, and encode them.

        Parameters
        ----------
        source : str or Path
            Other columns are ignored, and columns may have another order. A table without names
            must have the columns of the fit.
        ids : str, optional
            Columns that identify rows, as for :func:`find_columns`; by default those of the fit
            that the table has.
        model : str, optional
            Name of the model, for messages.
        allow_unknown : bool, default=False
            As in :meth:`encode`.
        """

        def choose(names: tuple[str, ...] | None, number: int) -> ColumnChoice:
            keys = _numbers(number) if names is None else names
            if ids is None:
                id_columns = [keys.index(name) for name in self.ids if name in keys]
            else:
                id_columns = find_columns(ids, keys, str(source))
            if self.n_columns is None and names is not None:
                features = self._find_by_name(names, str(source), model)
            else:
                features = self._find_by_number(number, id_columns, str(source), model)
            pairs = zip(features, self.names, strict=True)
            texts = {at for at, name in pairs if name in self.categories}
            return ColumnChoice(features, id_columns, texts)

        return self.encode(read_columns(source, choose), allow_unknown=allow_unknown)

    def _find_by_name(self, names: tuple[str, ...], source: str, model: str) -> list[int]:
        missing = [name for name in self.names if name not in names]
        if missing:
            raise InvalidInput(
                f"{source}: has no {_count('column', missing)} {_list_names(missing)}, which "
                f"{model} needs; correct the names, or add what is missing."
            )
        return [names.index(name) for name in self.names]

    def _find_by_number(
        self, number: int, ids: Sequence[int], source: str, model: str
    ) -> list[int]:
        if number == self.n_columns:
            return [int(name) - 1 for name in self.names]
        others = [at for at in range(number) if at not in ids]
        if len(others) != len(self.names):
            raise InvalidInput(
                f"{source}: has {len(others)} columns, and {model} needs {len(self.names)}; pass "
                "the columns of the fit."
            )
        return others

    def encode(self, table: Table, *, allow_unknown: bool = False) -> Table:
        """Return a table of numbers without gaps; rows of the table may be overwritten.

        Text that did not occur in the fit raises an error. With ``allow_unknown`` all columns of
        the text column are zero, as :meth:`has_unknown_text` reports.
        """
        table.check_no_infinity()
        texts = dict(zip(self.names, map(table.texts.get, table.keys), strict=True))
        found = {name: values for name, values in texts.items() if values is not None}
        for name in self.categories:
            if name not in found:
                raise InvalidInput(
                    f"{table.source}: has no text in column {name!r}; pass a CSV or Parquet file."
                )
        table = self._fill(replace(table, texts=found))
        if not allow_unknown:
            self._check_texts(table)
        return self._encode_complete(table)

    def _check_texts(self, table: Table) -> None:
        for name, values in self.categories.items():
            at = self.names.index(name)
            codes = table.rows[:, at].astype(np.intp)
            known_texts = {*values}
            known = np.array([text in known_texts for text in table.texts[name]])[codes]
            if not known.all():
                row = int(known.argmin())
                raise InvalidInput(
                    f"{table.place(row, at)}: {table.texts[name][codes[row]][:40]!r} is not a "
                    f"value of the fit, which had {_list_names(values)}; correct it, or fit again."
                )

    def _encode_complete(self, table: Table) -> Table:
        """Encode a table without gaps."""
        rows = table.rows
        if self.categories:
            columns = [
                _one_hot(rows[:, at], self.categories[name], table.texts[name])
                if name in self.categories
                else rows[:, at : at + 1]
                for at, name in enumerate(self.names)
            ]
            rows = np.hstack(columns)
        rows = self._standardize(rows)
        names = self.encoded_names if self.n_columns is None else None
        return replace(table, rows=rows, names=names, texts={})

    def decode(self, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return the input columns of encoded rows, in the units of the table.

        The value of a text column is that of its largest encoded column.
        """
        if self.means is not None and self.scales is not None:
            rows = rows * self.scales.astype(rows.dtype) + self.means.astype(rows.dtype)
        origins = np.array(self.origins)
        columns = {}
        for name in self.names:
            column = rows[:, origins == name]
            values = self.categories.get(name)
            columns[name] = (
                column[:, 0]
                if values is None
                else np.array(values, dtype=object)[column.argmax(axis=1)]
            )
        return columns

    def sum_columns(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum values of encoded columns over the columns of each input column."""
        if not self.categories:
            return values
        origins = np.array(self.origins)
        return np.column_stack([values[:, origins == name].sum(axis=1) for name in self.names])

    def has_unknown_text(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Return True for input columns of encoded rows whose text did not occur in the fit."""
        is_text = np.array([name in self.categories for name in self.names])
        return is_text & (self.sum_columns(rows) == 0)

    def _fill(self, table: Table) -> Table:
        """Fill empty cells, or leave out their rows."""
        if self.missing == "error":
            table.check_no_gaps()
            return table
        if self.missing == "drop":
            kept = ~np.isnan(table.rows).any(axis=1)
            if kept.all():
                return table
            if not kept.any():
                worst = table.keys[int(np.isnan(table.rows).sum(axis=0).argmax())]
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
        for at, name in enumerate(self.names):
            gaps = np.isnan(rows[:, at])
            if not gaps.any():
                continue
            fill = self.fills[name]
            if isinstance(fill, str):
                # The stored value may not occur in this table.
                texts[name] = (*texts[name], fill)
                fill = texts[name].index(fill)
            rows[gaps, at] = fill
        return replace(table, rows=rows, texts=texts)

    def _standardize(self, rows: NDArray[Any]) -> NDArray[Any]:
        if self.means is None or self.scales is None:
            return rows
        rows = _writeable(rows)
        rows -= self.means.astype(rows.dtype)
        rows /= self.scales.astype(rows.dtype)
        return rows

    def _moments(self, rows: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
                f"{_count('column', constant)} {_list_names(constant)}: cannot be standardized, as "
                "all values are equal; only the mean is subtracted",
                stacklevel=3,
            )
        return means, scales

    def _warn_of_spread(self, rows: NDArray[Any]) -> None:
        names = self.origins
        deviations = {
            name: float(rows[:, at].std(dtype=np.float64))
            for at, name in enumerate(names)
            if name not in self.categories
        }
        deviations = {name: value for name, value in deviations.items() if value > 0}
        if not deviations:
            return
        widest, narrowest = (each(deviations, key=deviations.__getitem__) for each in (max, min))
        ratio = deviations[widest] / deviations[narrowest]
        if ratio > _SPREAD_RATIO:
            warnings.warn(
                f"the spread of column {widest!r} is {ratio:.3g} times that of {narrowest!r}; "
                "pass --standardize unless their units are the same",
                stacklevel=3,
            )


def _fills(table: Table) -> dict[str, float | str]:
    """Return the median of each column of numbers and the most frequent value of text."""
    fills: dict[str, float | str] = {}
    for at, name in enumerate(table.keys):
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
    for name, values in table.texts.items():
        if len(values) > _MAX_CATEGORIES:
            raise InvalidInput(
                f"{table.source}: column {name!r} has {len(values)} different texts, more than "
                f"{_MAX_CATEGORIES}; pass --drop {name}, or --id {name}."
            )
    columns = {name: table.rows[:, table.keys.index(name)] for name in table.texts}
    return {
        name: tuple(sorted(table.texts[name][int(code)] for code in np.unique(column)))
        for name, column in columns.items()
    }


def _one_hot(codes: NDArray[Any], values: tuple[str, ...], texts: tuple[str, ...]) -> NDArray[Any]:
    """Return a column of zeros and ones for each value; rows of other texts are zero."""
    positions = {value: position for position, value in enumerate(values)}
    found = np.array([positions.get(text, -1) for text in texts])[codes.astype(np.intp)]
    return (found[:, None] == np.arange(len(values))).astype(codes.dtype)


def _count(noun: str, names: Sequence[str]) -> str:
    return noun if len(names) == 1 else f"{noun}s"


def _writeable(rows: NDArray[Any]) -> NDArray[Any]:
    return rows if rows.flags.writeable else np.array(rows)
