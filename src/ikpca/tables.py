"""Readers and writers of tables for the command line."""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput
from ikpca.model_files import atomic_write, check_writable

__all__ = ["Table", "read_table", "write_table"]

_WRITABLE = (".npy", ".npz", ".csv", ".parquet")
_READABLE = (".npy", ".npz", ".csv", ".tsv", ".parquet")
#: Size in bytes from which files are memory-mapped.
_MEMORY_MAP_BYTES = 256 * 2**20
#: Cells that count as empty, in lower case.
_EMPTY_CELLS = frozenset({"", "nan", "na", "n/a", "null"})
#: Rows of a Parquet file that are decoded at a time.
_BATCH_ROWS = 65536


@dataclass(frozen=True, eq=False)
class Table:
    """Table of numbers with optional names.

    Parameters
    ----------
    rows : array of shape (rows, columns)
        In memory, or a memory map of a large file.
    names : tuple of str, optional
        Names of the columns.
    ids : mapping of str to ndarray
        Columns that identify rows, which are not part of ``rows``.
    texts : mapping of str to tuple of str
        Values of each text column; ``rows`` holds indices of them.
    source : str
        Name of the file, for messages.
    positions : tuple of int, optional
        Positions of the columns in the file, counted from 0.
    n_columns : int, default=0
        Number of all columns of the file.
    numbers : ndarray, optional
        Numbers of the rows in the file; by default consecutive from 1.
    counted : {"row", "line"}, default="row"
        Unit of ``numbers``; lines in a CSV file.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.tables import Table
    >>> Table(np.ones((2, 3)), ("a", "b", "c")).rows.shape
    (2, 3)
    """

    rows: NDArray[Any]
    names: tuple[str, ...] | None = None
    ids: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = ""
    positions: tuple[int, ...] | None = None
    n_columns: int = 0
    numbers: NDArray[Any] | None = None
    counted: str = "row"

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns, or their numbers counted from 1 in a table without names."""
        if self.names is not None:
            return self.names
        return tuple(str(position + 1) for position in self.positions or range(self.rows.shape[1]))

    def place(self, row: int, column: int) -> str:
        """Return file, line or row, and column of a cell, for messages."""
        place = f"{self.source}, {self.counted} {self.row_numbers[row]}, column"
        if self.names is None:
            return f"{place} {self.keys[column]}"
        if self.counted == "row" or self.positions is None:
            return f"{place} {self.names[column]!r}"
        return f"{place} {self.positions[column] + 1} ({self.names[column]!r})"

    @property
    def row_numbers(self) -> NDArray[Any]:
        """Numbers of the rows, or lines, in the file."""
        return np.arange(1, len(self.rows) + 1) if self.numbers is None else self.numbers

    def select_rows(self, kept: NDArray[Any]) -> Self:
        """Return the table with the rows of a mask."""
        return replace(
            self,
            rows=self.rows[kept],
            ids={name: values[kept] for name, values in self.ids.items()},
            numbers=self.row_numbers[kept],
        )

    def check_no_text(self, remedy: str = "pass --drop {names}, or --one-hot") -> None:
        """Raise an error that names the text columns."""
        if not self.texts:
            return
        names = ", ".join(map(repr, self.texts))
        several = len(self.texts) > 1
        place = f"{self.source}, {'columns' if several else 'column'} {names}"
        examples = [values[0][:40] for values in self.texts.values() if values]
        example = f" such as {examples[0]!r}" if examples else ""
        raise InvalidInput(
            f"{place}: {'contain' if several else 'contains'} text{example}; "
            f"{remedy.format(names=','.join(self.texts))}."
        )

    def check_no_gaps(self) -> None:
        """Raise an error for the first empty cell."""
        rule = "is empty or 'nan'; fill it in, or fit with --missing drop or --missing median"
        self._check_cells(np.isnan, rule)

    def check_no_infinity(self) -> None:
        """Raise an error for the first infinite cell."""
        self._check_cells(np.isinf, "is not finite; correct it or remove the row")

    def _check_cells(self, is_bad: Callable[[NDArray[Any]], NDArray[Any]], rule: str) -> None:
        for start in range(0, len(self.rows), _BATCH_ROWS):
            bad = is_bad(self.rows[start : start + _BATCH_ROWS])
            if bad.any():
                row, column = np.argwhere(bad)[0]
                raise InvalidInput(f"{self.place(start + int(row), int(column))}: {rule}.")


def read_table(source: str | Path) -> Table:
    """Read rows from a file.

    The first line of a CSV file holds the names of the columns if one of its cells is not a number.
    Any other cell that is not a finite number is reported with its line and column.

    Parameters
    ----------
    source : str or Path
        .npy; .npz, followed by ``:member`` if it has several; .csv, .tsv, .parquet.

    Returns
    -------
    Table

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.tables import read_table
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "two.npz", a=np.ones((4, 2)), b=np.ones((5, 3)))
    >>> read_table(f"{folder}/two.npz:b").rows.shape
    (5, 3)
    """
    table = read_columns(source)
    table.check_no_text("pass a table of numbers")
    if table.counted == "line" or table.names is not None:
        # Estimators check arrays, which may be memory maps.
        table.check_no_infinity()
        table.check_no_gaps()
    return table


class ColumnChoice(NamedTuple):
    """Columns to read, by position; ``texts`` are those of text, or None to find out.

    Examples
    --------
    >>> from ikpca.tables import ColumnChoice
    >>> ColumnChoice([0, 1], ids=[2]).texts is None
    True
    """

    features: Sequence[int]
    ids: Sequence[int] = ()
    texts: Collection[int] | None = None


#: Called with the names of the columns, or None, and their number.
Choose: TypeAlias = Callable[[tuple[str, ...] | None, int], ColumnChoice]


def _choose_all(names: tuple[str, ...] | None, number: int) -> ColumnChoice:
    return ColumnChoice(range(number))


def read_columns(source: str | Path, choose: Choose = _choose_all) -> Table:
    r"""Read some columns of a file; empty cells become NaN and text becomes indices of ``texts``.

    Parameters
    ----------
    source : str or Path
        As for :func:`read_table`.
    choose : callable, optional
        Receives the names of the columns (None without names) and their number, and returns a
        :class:`ColumnChoice`; by default all columns.

    Returns
    -------
    Table

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ikpca.tables import ColumnChoice, read_columns
    >>> path = Path(tempfile.mkdtemp(), "rows.csv")
    >>> _ = path.write_text("name,size,color\nA,1.5,red\nB,,blue\n")
    >>> table = read_columns(path, lambda names, number: ColumnChoice([1, 2], ids=[0]))
    >>> table.rows
    array([[1.5, 0. ],
           [nan, 1. ]])
    >>> table.texts, table.ids["name"].tolist()
    ({'color': ('red', 'blue')}, ['A', 'B'])
    """
    path, member = split_member(source)
    if not path.exists():
        raise InvalidInput(f"{path}: no such file; check the path.")
    suffix = path.suffix.lower()
    if path.is_dir():
        raise InvalidInput(f"{path}: is a folder, not a table; pass {', '.join(_READABLE)}.")
    match suffix:
        case ".npy" | ".npz":
            return _choose_array_columns(_read_arrays(path, member), choose, path.name)
        case ".csv" | ".tsv":
            return _read_csv(path, choose)
        case ".parquet":
            return _read_parquet(path, choose)
    rule = f"the suffix {suffix!r} is unknown" if suffix else "the name has no suffix"
    raise InvalidInput(f"{path}: {rule}; pass {', '.join(_READABLE)}.")


def _choose_array_columns(table: Table, choose: Choose, source: str) -> Table:
    """Select columns of an array; the array itself is returned if these are all of its columns."""
    rows, number = table.rows, table.rows.shape[1]
    features, ids, _ = choose(None, number)
    chosen = rows if [*features] == [*range(number)] else rows[:, [*features]]
    named = {str(column + 1): rows[:, column] for column in ids}
    return Table(chosen, ids=named, source=source, positions=tuple(features), n_columns=number)


def write_table(
    target: str | Path,
    rows: NDArray[Any],
    names: Sequence[str] | None = None,
) -> None:
    """Write rows atomically in the format of the file name.

    Parameters
    ----------
    target : str or Path
        As for :func:`read_table`.
    rows : array of shape (rows, columns)
    names : sequence of str, optional
        Names of the columns.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.tables import read_table, write_table
    >>> path = Path(tempfile.mkdtemp(), "rows.csv")
    >>> write_table(path, np.array([[1.0, 2.0]]), names=["a", "b"])
    >>> read_table(path).rows
    array([[1., 2.]])
    """
    check_target(target)
    path, member = split_member(target)
    suffix = path.suffix.lower()
    with atomic_write(path) as file:
        if suffix == ".npy":
            np.save(file, rows, allow_pickle=False)
        elif suffix == ".npz":
            np.savez(file, **{member or "rows": rows})  # type: ignore[arg-type]
        elif suffix == ".csv":
            _write_csv(file, rows, names)
        else:
            numbers = [str(number) for number in range(rows.shape[1])]
            _write_parquet(file, list(rows.T), numbers if names is None else names)


def write_columns(target: str | Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns of numbers and text atomically to a .csv or .parquet file.

    Parameters
    ----------
    target : str or Path
    columns : mapping of str to ndarray
        Columns of equal length by name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from ikpca.tables import write_columns
    >>> path = Path(tempfile.mkdtemp(), "rows.csv")
    >>> write_columns(path, {"name": np.array(["A", "B"]), "size": np.array([1.5, 2.0])})
    >>> path.read_text().split()
    ['name,size', 'A,1.5', 'B,2.0']
    """
    path = Path(target)
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InvalidInput(f"{path}: cannot hold text; pass a .csv or .parquet file.")
    check_target(path)
    with atomic_write(path) as file:
        if path.suffix.lower() == ".csv":
            _write_csv(file, zip(*columns.values(), strict=True), [*columns])
        else:
            _write_parquet(file, list(columns.values()), [*columns])


def _write_csv(file: Any, rows: Any, names: Sequence[str] | None) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([] if names is None else [names])
    # str of a NumPy number is the shortest text that restores it.
    writer.writerows(["" if value is None else str(value) for value in row] for row in rows)
    text.detach()


def _write_parquet(file: Any, columns: Sequence[NDArray[Any]], names: Sequence[str]) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table([pyarrow.array(each) for each in columns], [*names]), file)


def check_target(target: str | Path) -> None:
    """Raise an error, before the work, if rows could not be written to the target."""
    path, _ = split_member(target)
    suffix = path.suffix.lower()
    if suffix not in _WRITABLE:
        rule = f"the suffix {suffix!r} is unknown" if suffix else "the name has no suffix"
        raise InvalidInput(f"{path}: {rule}; pass {', '.join(_WRITABLE)}.")
    if suffix == ".parquet":
        _parquet(path)
    check_writable(path)


def split_member(source: str | Path) -> tuple[Path, str | None]:
    """Split ``rows.npz:member`` into path and member."""
    head, separator, member = str(source).rpartition(":")
    if separator and head.lower().endswith(".npz"):
        return Path(head), member
    return Path(source), None


def _read_csv(path: Path, choose: Choose) -> Table:
    """Read cells separated by commas, semicolons or tabs, with or without names."""
    try:
        return _read_cells(path, choose, "utf-8-sig")
    except UnicodeDecodeError:
        # Numbers are equal in both encodings; only names may differ.
        return _read_cells(path, choose, "latin-1")


def _read_cells(path: Path, choose: Choose, encoding: str) -> Table:
    names: tuple[str, ...] | None = None
    cells: _Cells | None = None
    with path.open(encoding=encoding, newline="") as file:
        start = file.read(4096)
        if "\0" in start:
            raise InvalidInput(f"{path}: is not a text file; pass a CSV file.")
        file.seek(0)
        separator = max(",;\t", key=start.split("\n", maxsplit=1)[0].count)
        reader = csv.reader(file, delimiter=separator)
        try:
            # Empty lines are skipped.
            for line in (line for line in reader if "".join(line).strip()):
                if names is None and cells is None and _is_header(line):
                    names = _names(line)
                    continue
                if cells is None:
                    cells = _Cells(names, len(names or line), choose)
                cells.add(line, reader.line_num)
        except csv.Error as error:
            rule = f": cannot be read ({error}); correct the quotes"
            raise InvalidInput(f"{path.name}, line {reader.line_num}{rule}.") from None
        except _CellError as error:
            raise InvalidInput(f"{path.name}, line {reader.line_num}{error}.") from None
    if cells is None:
        raise InvalidInput(f"{path}: has no numbers; pass a file with at least one line of them.")
    return cells.table(path.name)


class _CellError(Exception):
    """Problem of a line of a CSV file, whose number the reader adds."""


class _Cells:
    """Cells of the chosen columns of a CSV file, collected line by line."""

    def __init__(self, names: tuple[str, ...] | None, width: int, choose: Choose) -> None:
        self._names, self._width = names, width
        self._features, self._ids, texts = choose(names, width)
        #: Indices of the values of text columns.
        self._codes: dict[int, dict[str, int]] = {column: {} for column in texts or ()}
        #: Columns of numbers; those of unknown type are in neither.
        self._numeric = set() if texts is None else {*self._features} - {*texts}
        self._values, self._lines = array("d"), array("q")
        self._id_cells: list[list[str]] = [[] for _ in self._ids]

    def add(self, line: list[str], number: int) -> None:
        """Add the cells of a line."""
        if len(line) != self._width:
            raise _CellError(
                f": has {len(line)} cells, but the first line has {self._width}; correct the line"
            )
        self._values.extend(self._numbers(line) or [self._value(line, at) for at in self._features])
        self._lines.append(number)
        for cells, column in zip(self._id_cells, self._ids, strict=True):
            cells.append(line[column].strip())

    def table(self, source: str) -> Table:
        """Return the table of all lines."""
        rows = np.frombuffer(self._values, dtype=np.float64).reshape(-1, len(self._features))
        names = None if self._names is None else tuple(self._names[at] for at in self._features)
        ids = [np.array(cells, dtype=object) for cells in self._id_cells]
        return Table(
            rows,
            names,
            ids=dict(zip(map(self._key, self._ids), ids, strict=True)),
            texts={self._key(column): tuple(codes) for column, codes in self._codes.items()},
            source=source,
            positions=tuple(self._features),
            n_columns=self._width,
            numbers=np.array(self._lines),
            counted="line",
        )

    def _numbers(self, line: list[str]) -> list[float] | None:
        """Return the cells if all are finite numbers; this is fast."""
        if self._codes:
            return None
        try:
            values = [float(line[column]) for column in self._features]
        except ValueError:
            return None
        if not math.isfinite(sum(values)):
            return None
        if len(self._numeric) < len(values):
            self._numeric.update(self._features)
        return values

    def _value(self, line: list[str], column: int) -> float:
        cell = line[column].strip()
        codes = self._codes.get(column)
        if cell.lower() in _EMPTY_CELLS:
            return math.nan
        if codes is not None:
            return codes.setdefault(cell, len(codes))
        number = _number(cell)
        if number is not None and math.isfinite(number):
            self._numeric.add(column)
            return number
        if (
            number is None
            and column not in self._numeric
            and _number(cell.replace(",", ".")) is None
        ):
            self._codes[column] = {cell: 0}
            return 0.0
        where = f", column {column + 1}" + (
            "" if self._names is None else f" ({self._key(column)!r})"
        )
        remedy = "correct it, or remove the line or the column"
        remedy = "write decimals with a point" if "," in cell else remedy
        raise _CellError(f"{where}: {cell[:40]!r} is not a finite number; {remedy}")

    def _key(self, column: int) -> str:
        return str(column + 1) if self._names is None else self._names[column]


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _is_header(cells: list[str]) -> bool:
    return any(cell.strip() and _number(cell) is None for cell in cells)


def _names(cells: list[str]) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in cells)
    for number, name in enumerate(names):
        if not name or name in names[:number]:
            rule = f"has the name {name!r} of an earlier one" if name else "has no name"
            raise _CellError(f", column {number + 1}: {rule}; use different names")
    return names


def _read_arrays(path: Path, member: str | None) -> Table:
    """Read an array or a member of an archive; a large array is memory-mapped."""
    mode: Any = "r" if path.stat().st_size >= _MEMORY_MAP_BYTES else None
    try:
        loaded = np.load(path, mmap_mode=mode, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return _array_table(loaded, str(path))
        with loaded as archive:
            names = archive.files
            chosen = names[0] if member is None and len(names) == 1 else member
            if chosen in names:
                return _array_table(archive[chosen], f"{path}:{chosen}")
    except InvalidInput:
        raise
    except Exception as error:
        # Parsers of headers and compressed data raise many types of errors.
        reason = str(error).split("\n", maxsplit=1)[0].rstrip(".") or type(error).__name__
        raise InvalidInput(
            f"{path}: is not an array of numbers ({reason}); save with numpy.save or numpy.savez."
        ) from None
    rule = "no member is given" if member is None else f"has no member {member!r}"
    raise InvalidInput(
        f"{path}: {rule}; pass {path.name}:{names[0] if names else 'member'}, or another of "
        f"{', '.join(names)}."
    )


def _array_table(array: NDArray[Any], source: str) -> Table:
    """Return the table of an array with two axes."""
    if array.dtype.kind not in "fiub":
        raise InvalidInput(f"{source}: contains {array.dtype}, not numbers; save real numbers.")
    if array.ndim != 2 or not array.size:
        raise InvalidInput(f"{source}: has shape {array.shape}; pass rows and columns.")
    return Table(_floats(array))


def _floats(array: NDArray[Any]) -> NDArray[Any]:
    """Convert to float32 if it represents every value, otherwise to float64."""
    small = array.dtype.itemsize <= 2 or array.dtype.name == "float32"
    return array.astype(np.float32 if small else np.float64, copy=False)


def _read_parquet(path: Path, choose: Choose) -> Table:
    """Read the chosen columns in batches into one array."""
    with _parquet_errors(path):
        file = _parquet(path).ParquetFile(path)
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    names = tuple(schema.names)
    if not names or not n_rows:
        raise InvalidInput(f"{path}: has no rows; pass a file with at least one.")
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InvalidInput(f"{path.name}: has two columns {name!r}; use different names.")
    features, ids, texts = choose(names, len(names))
    kinds = {at: _parquet_kind(schema.field(at), path.name) for at in features}
    found = {at for at in features if kinds[at] is None}
    texts = found if texts is None else {*texts}
    for at in found - texts:
        raise InvalidInput(f"{path.name}, column {names[at]!r}: contains text, not numbers.")
    small = all(kind == np.float32 for at, kind in kinds.items() if at not in texts)
    rows = np.empty((n_rows, len(features)), dtype=np.float32 if small else np.float64)
    found_texts: dict[str, tuple[str, ...]] = {}
    with _parquet_errors(path):
        # One column at a time: row groups of all columns take more memory than the rows.
        for place, at in enumerate(features):
            column = file.read([names[at]]).column(0)
            if at in texts:
                rows[:, place], found_texts[names[at]] = _text_codes(column)
            else:
                rows[:, place] = _parquet_numbers(column)
        id_cells = {names[at]: _parquet_cells(file.read([names[at]]).column(0)) for at in ids}
    return Table(
        rows,
        tuple(names[at] for at in features),
        ids=id_cells,
        texts=found_texts,
        source=path.name,
        positions=tuple(features),
        n_columns=len(names),
    )


def _parquet_kind(column: Any, source: str) -> Any:
    """Return float32 or float64 for numbers, and None for text."""
    from pyarrow import types

    kind = column.type
    if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
        small = kind.bit_width <= 16 or types.is_float32(kind)
        return np.float32 if small else np.float64
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_string(kind) or types.is_large_string(kind):
        return None
    raise InvalidInput(
        f"{source}, column {column.name!r}: contains {column.type}, not numbers; pass "
        f"--drop {column.name}."
    )


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    """Convert errors of pyarrow to InvalidInput."""
    _parquet(path)
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).split("\n", maxsplit=1)[0].rstrip(".")
        raise InvalidInput(f"{path}: cannot be read ({reason}); create it again.") from None


def _parquet_numbers(column: Any) -> NDArray[Any]:
    # Booleans with empty cells would become objects.
    return (column.cast("uint8") if column.type == "bool" else column).to_numpy()


def _text_codes(column: Any) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return the index of the text of each cell, NaN if it is empty, and the texts."""
    encoded = column.cast("large_string").combine_chunks().dictionary_encode()
    texts = [text.strip() for text in encoded.dictionary.to_pylist()]
    kept = tuple(dict.fromkeys(text for text in texts if text.lower() not in _EMPTY_CELLS))
    codes = {text: float(code) for code, text in enumerate(kept)}
    # The last value is that of an empty cell.
    values = np.array([*(codes.get(text, math.nan) for text in texts), math.nan])
    return values[encoded.indices.fill_null(len(texts)).to_numpy()], kept


def _parquet_cells(column: Any) -> NDArray[Any]:
    """Return a column of any values; each is one element, even if it is a sequence."""
    cells = np.empty(len(column), dtype=object)
    cells[:] = column.to_pylist()
    return cells


def _parquet(path: Path) -> Any:
    """Import pyarrow, or raise an error with the install command."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise InvalidInput(
            f"{path}: Parquet files need the package pyarrow; run: pip install 'ikpca[parquet]'."
        ) from None
    return pyarrow.parquet
