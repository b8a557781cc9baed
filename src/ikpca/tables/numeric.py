"""Tables of numbers: CSV, NumPy and Parquet files."""

from __future__ import annotations

import csv
import io
import math
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ikpca.errors import InvalidInput
from ikpca.model_files import atomic_write
from ikpca.tables.base import PictureFormat, Table


def check_npy(path: Path) -> None:
    """Raise ValueError where a header claims more bytes than its file has."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            file.seek(0)
            _check(file, os.fstat(file.fileno()).st_size)


def check_npz_member(path: Path, member: str) -> None:
    """Raise ValueError where the header of a member claims more bytes than the member has."""
    with zipfile.ZipFile(path) as archive:
        name = member if member in archive.namelist() else f"{member}.npy"
        with archive.open(name) as file:
            _check(file, archive.getinfo(name).file_size)


def _check(file: IO[bytes], size: int) -> None:
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"its format {version} is unknown")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of shape {shape} has more bytes than the file")


_SEPARATORS = ",;\t"
#: As much of a faulty cell as a message quotes.
_QUOTED = 40


def read_csv(path: Path) -> Table:
    r"""Read numbers separated by commas, semicolons or tabs.

    A first line with a cell that is no number holds the names of the columns. Any other cell that
    is empty, text, NaN or infinite raises :class:`ikpca.errors.InvalidInput` with its line and
    column.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("height,weight\n1.8,75\n1.6,")
    >>> read_csv(path)
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: people.csv, line 3, column 2 ('weight'): is empty; ...
    """
    text = _text(path)
    lines = _CsvReader(path.name, text)
    rows = list(lines.rows())
    if not rows:
        raise InvalidInput(f"{path}: holds no numbers; pass a file with at least one line of them.")
    return Table(np.vstack(rows), lines.names)


class _CsvReader:
    """The lines of one file, and the names that its first one may hold."""

    def __init__(self, file: str, text: str) -> None:
        self.names: tuple[str, ...] | None = None
        self._file = file
        first = text.split("\n", maxsplit=1)[0]
        separator = max(_SEPARATORS, key=first.count)
        self._reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)

    def rows(self) -> Iterator[NDArray[np.float64]]:
        """One array per line of numbers."""
        width = None
        for cells in self._cells():
            if width is None:
                width = len(cells)
                if not all(map(_is_number_or_gap, cells)):
                    self.names = self._checked_names(cells)
                    continue
            yield self._numbers(cells, width)

    def _cells(self) -> Iterator[list[str]]:
        try:
            # An empty line is no line of a table with several columns.
            yield from (cells for cells in self._reader if any(cell.strip() for cell in cells))
        except csv.Error as trouble:
            raise self._fault(f"cannot be read ({trouble})", "correct the quotes") from None

    def _numbers(self, cells: list[str], width: int) -> NDArray[np.float64]:
        if len(cells) != width:
            raise self._fault(
                f"has {len(cells)} cells, and the first line has {width}", "complete the line"
            )
        try:
            values = np.array(cells, dtype=np.str_).astype(np.float64)
        except ValueError:
            values = np.full(width, np.nan)
        if not np.isfinite(values).all():
            raise self._faulty_cell(cells)
        return values

    def _faulty_cell(self, cells: list[str]) -> InvalidInput:
        column = next(number for number, cell in enumerate(cells) if not _is_finite(cell))
        cell = cells[column].strip()
        name = "" if self.names is None else f" ({self.names[column]!r})"
        where = f", column {column + 1}{name}"
        if not cell:
            return self._fault("is empty", "fill it in or leave out the line", where)
        if "," in cell:
            return self._fault(f"{cell[:_QUOTED]!r} is not a number",
                               "write decimals with a point", where)  # fmt: skip
        return self._fault(f"{cell[:_QUOTED]!r} is not a finite number",
                           "correct it, or leave out the line or the column", where)  # fmt: skip

    def _checked_names(self, cells: list[str]) -> tuple[str, ...]:
        names = tuple(cell.strip() for cell in cells)
        for number, name in enumerate(names, start=1):
            if not name or name in names[: number - 1]:
                rule = "has no name" if not name else f"has the name {name!r} of an earlier one"
                raise self._fault(rule, "name every column differently", f", column {number}")
        return names

    def _fault(self, rule: str, remedy: str, where: str = "") -> InvalidInput:
        return InvalidInput(f"{self._file}, line {self._reader.line_num}{where}: {rule}; {remedy}.")


def write_csv(path: Path, rows: NDArray[Any], names: Sequence[str] | None = None) -> None:
    """One line per row; numbers have as many digits as it takes to read the same ones back."""
    with atomic_write(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        if names is not None:
            writer.writerow(names)
        for row in rows:
            # A NumPy number prints the shortest text that stands for it.
            writer.writerow([str(value) for value in row])
        text.flush()
        text.detach()


def _text(path: Path) -> str:
    content = path.read_bytes()
    if b"\0" in content[:4096]:
        raise InvalidInput(f"{path}: is no text; pass a CSV file.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Numbers are the same in either usual encoding; only names may differ.
        return content.decode("latin-1")


def _is_number_or_gap(cell: str) -> bool:
    """A line of names has text in it; a gap or NaN alone makes none."""
    if not cell.strip():
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_finite(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False


#: Larger files are mapped, and read in tiles.
_MAPPED = 256 * 2**20
#: The member that is written where none is named.
_MEMBER = "rows"


def read_npy(path: Path) -> Table:
    """All rows of an array; a large file of floating-point numbers is mapped."""
    mode: Any = "r" if path.stat().st_size >= _MAPPED else None
    try:
        check_npy(path)
        array = np.load(path, mmap_mode=mode, allow_pickle=False)
    except Exception as trouble:
        # Parsers of headers and of compressed data complain of damage in a dozen ways.
        raise InvalidInput(
            f"{path}: is no array of numbers ({_first(trouble)}); save it with numpy.save."
        ) from None
    if not isinstance(array, np.ndarray):
        raise InvalidInput(f"{path}: is an .npz file by its content; rename it.")
    return array_table(array, str(path))


def read_npz(path: Path, member: str | None = None) -> Table:
    """One member of an archive, which must be named where there are several."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = archive.files
            chosen = names[0] if member is None and len(names) == 1 else member
            if chosen not in names:
                told = "which one is meant is not said" if member is None else f"has no {member!r}"
                raise InvalidInput(
                    f"{path}: {told}; write {path.name}:{names[0] if names else 'member'}, or "
                    f"another of {', '.join(names)}."
                )
            check_npz_member(path, str(chosen))
            array = archive[chosen]
    except InvalidInput:
        raise
    except Exception as trouble:
        raise InvalidInput(
            f"{path}: is no archive of arrays of numbers ({_first(trouble)}); save it with "
            "numpy.savez."
        ) from None
    return array_table(array, f"{path}:{chosen}")


def array_table(array: NDArray[Any], told: str) -> Table:
    """An array of two axes as it is; one of three or four as pictures, one per row."""
    if array.dtype.kind not in "fiub":
        raise InvalidInput(f"{told}: holds {array.dtype}, not numbers; save real numbers.")
    if array.ndim not in (2, 3, 4) or not array.size:
        raise InvalidInput(
            f"{told}: has shape {array.shape}; pass rows and columns, or a stack of pictures."
        )
    if array.ndim == 2:
        return Table(floats(array))
    form = PictureFormat(array.shape[1:], white_of(array.dtype))
    return Table(floats(array).reshape(len(array), -1), form=form)


def white_of(dtype: np.dtype[Any]) -> float:
    """The value of white, by the type of the pixels."""
    return {"u1": 255.0, "u2": 65535.0}.get(dtype.str[1:], 1.0)


def floats(array: NDArray[Any]) -> NDArray[Any]:
    """Single precision where that holds every value, otherwise double."""
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative:
        return array
    small = array.dtype.itemsize <= 2 or array.dtype == np.dtype(">f4")
    return array.astype(np.float32 if small else np.float64)


def write_npy(path: Path, rows: NDArray[Any]) -> None:
    """The array, whole or not at all."""
    with atomic_write(path) as file:
        np.save(file, rows, allow_pickle=False)


def write_npz(path: Path, rows: NDArray[Any], member: str | None = None) -> None:
    """An archive with one member."""
    content: dict[str, Any] = {member or _MEMBER: rows}
    with atomic_write(path) as file:
        np.savez(file, **content)


def _first(trouble: Exception) -> str:
    return str(trouble).split("\n", maxsplit=1)[0].rstrip(".") or type(trouble).__name__


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
    with atomic_write(path) as file:
        parquet.write_table(table, file)


def _parquet(path: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise InvalidInput(
            f"{path}: Parquet files need the package pyarrow; run: pip install 'ikpca[parquet]'."
        ) from None
    return pyarrow.parquet
