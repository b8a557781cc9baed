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

_SEPARATORS = ",;\t"
#: Number of characters of an invalid cell that are quoted.
_MAX_QUOTED = 40
#: Size in bytes from which files are memory-mapped.
_MEMORY_MAP_BYTES = 256 * 2**20
#: Name of the member that is written by default.
_DEFAULT_MEMBER = "rows"


def read_csv(path: Path) -> Table:
    r"""Read numbers separated by commas, semicolons or tabs.

    The first line holds the names of the columns if one of its cells is not a number. Any other
    cell that is empty, text, NaN or infinite raises :class:`ikpca.errors.InvalidInput` with its
    line and column.

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
        raise InvalidInput(f"{path}: has no numbers; pass a file with at least one line of them.")
    return Table(np.vstack(rows), lines.names)


class _CsvReader:
    """Reader of the lines of one file and the names in its first line."""

    def __init__(self, file: str, text: str) -> None:
        self.names: tuple[str, ...] | None = None
        self._file = file
        first = text.split("\n", maxsplit=1)[0]
        separator = max(_SEPARATORS, key=first.count)
        self._reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)

    def rows(self) -> Iterator[NDArray[np.float64]]:
        """Yield one array per line of numbers."""
        width = None
        for cells in self._cells():
            if width is None:
                width = len(cells)
                if not all(map(_is_number_or_empty, cells)):
                    self.names = self._checked_names(cells)
                    continue
            yield self._numbers(cells, width)

    def _cells(self) -> Iterator[list[str]]:
        try:
            # Empty lines are skipped.
            yield from (cells for cells in self._reader if any(cell.strip() for cell in cells))
        except csv.Error as error:
            raise self._fault(f"cannot be read ({error})", "correct the quotes") from None

    def _numbers(self, cells: list[str], width: int) -> NDArray[np.float64]:
        if len(cells) != width:
            raise self._fault(
                f"has {len(cells)} cells, but the first line has {width}", "correct the line"
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
            return self._fault("is empty", "fill it in or remove the line", where)
        if "," in cell:
            return self._fault(f"{cell[:_MAX_QUOTED]!r} is not a number",
                               "write decimals with a point", where)  # fmt: skip
        return self._fault(f"{cell[:_MAX_QUOTED]!r} is not a finite number",
                           "correct it, or remove the line or the column", where)  # fmt: skip

    def _checked_names(self, cells: list[str]) -> tuple[str, ...]:
        names = tuple(cell.strip() for cell in cells)
        for number, name in enumerate(names, start=1):
            if not name or name in names[: number - 1]:
                rule = "has no name" if not name else f"has the name {name!r} of an earlier one"
                raise self._fault(rule, "use different names", f", column {number}")
        return names

    def _fault(self, rule: str, remedy: str, where: str = "") -> InvalidInput:
        return InvalidInput(f"{self._file}, line {self._reader.line_num}{where}: {rule}; {remedy}.")


def _text(path: Path) -> str:
    content = path.read_bytes()
    if b"\0" in content[:4096]:
        raise InvalidInput(f"{path}: is not a text file; pass a CSV file.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Numbers are equal in both encodings; only names may differ.
        return content.decode("latin-1")


def _is_number_or_empty(cell: str) -> bool:
    """Return True for a number or an empty cell; only other text makes a line of names."""
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


def write_csv(path: Path, rows: NDArray[Any], names: Sequence[str] | None = None) -> None:
    """Write one line per row; numbers are written with enough digits to be restored exactly."""
    with atomic_write(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        if names is not None:
            writer.writerow(names)
        for row in rows:
            # str of a NumPy number is the shortest text that restores it.
            writer.writerow([str(value) for value in row])
        text.flush()
        text.detach()


def read_npy(path: Path) -> Table:
    """Read an array; a large file of floating-point numbers is memory-mapped."""
    mode: Any = "r" if path.stat().st_size >= _MEMORY_MAP_BYTES else None
    try:
        check_npy(path)
        array = np.load(path, mmap_mode=mode, allow_pickle=False)
    except Exception as error:
        # Parsers of headers and compressed data raise many types of errors.
        raise InvalidInput(
            f"{path}: is not an array of numbers ({_first(error)}); save it with numpy.save."
        ) from None
    if not isinstance(array, np.ndarray):
        raise InvalidInput(f"{path}: has the content of an .npz file; rename it.")
    return array_table(array, str(path))


def read_npz(path: Path, member: str | None = None) -> Table:
    """Read one member of an archive; it must be named if there are several."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = archive.files
            chosen = names[0] if member is None and len(names) == 1 else member
            if chosen not in names:
                rule = "no member is given" if member is None else f"has no member {member!r}"
                raise InvalidInput(
                    f"{path}: {rule}; pass {path.name}:{names[0] if names else 'member'}, or "
                    f"another of {', '.join(names)}."
                )
            check_npz_member(path, str(chosen))
            array = archive[chosen]
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(
            f"{path}: is not an archive of arrays of numbers ({_first(error)}); save it with "
            "numpy.savez."
        ) from None
    return array_table(array, f"{path}:{chosen}")


def check_npy(path: Path) -> None:
    """Raise ValueError if the header claims more bytes than the file has."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            file.seek(0)
            _check(file, os.fstat(file.fileno()).st_size)


def check_npz_member(path: Path, member: str) -> None:
    """Raise ValueError if the header of a member claims more bytes than the member has."""
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


def write_npy(path: Path, rows: NDArray[Any]) -> None:
    """Write an array atomically."""
    with atomic_write(path) as file:
        np.save(file, rows, allow_pickle=False)


def write_npz(path: Path, rows: NDArray[Any], member: str | None = None) -> None:
    """Write an archive with one member atomically."""
    content: dict[str, Any] = {member or _DEFAULT_MEMBER: rows}
    with atomic_write(path) as file:
        np.savez(file, **content)


def _first(error: Exception) -> str:
    return str(error).split("\n", maxsplit=1)[0].rstrip(".") or type(error).__name__


def read_parquet(path: Path) -> Table:
    """Read all columns as numbers; report text, gaps, NaN and infinity by row and column."""
    parquet = _parquet(path)
    import pyarrow

    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).split("\n", maxsplit=1)[0].rstrip(".")
        raise InvalidInput(f"{path}: cannot be read ({reason}); create it again.") from None
    if not table.num_columns or not table.num_rows:
        raise InvalidInput(f"{path}: has no rows; pass a file with at least one.")
    columns = [_column(path, name, table[name]) for name in table.column_names]
    return Table(np.column_stack(columns), tuple(table.column_names))


def _column(path: Path, name: str, column: Any) -> NDArray[Any]:
    if column.null_count:
        row = column.is_null().to_numpy().argmax() + 1
        raise InvalidInput(
            f"{path.name}, row {row}, column {name!r}: is empty; fill it in or remove the row."
        )
    values = column.to_numpy()
    if values.dtype.kind not in "fiub":
        raise InvalidInput(
            f"{path.name}, column {name!r}: contains {column.type}, not numbers; remove it."
        )
    if not np.isfinite(values).all():
        row = np.isfinite(values).argmin() + 1
        raise InvalidInput(
            f"{path.name}, row {row}, column {name!r}: is not finite; correct it or remove the row."
        )
    return floats(values)


def write_parquet(path: Path, rows: NDArray[Any], names: Sequence[str] | None = None) -> None:
    """Write one column per name; without names, columns are numbered."""
    parquet = _parquet(path)
    import pyarrow

    names = [str(number) for number in range(rows.shape[1])] if names is None else list(names)
    table = pyarrow.table([pyarrow.array(column) for column in rows.T], names=names)
    with atomic_write(path) as file:
        parquet.write_table(table, file)


def check_parquet(path: Path) -> None:
    """Raise an error with the install command if pyarrow is missing."""
    _parquet(path)


def _parquet(path: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise InvalidInput(
            f"{path}: Parquet files need the package pyarrow; run: pip install 'ikpca[parquet]'."
        ) from None
    return pyarrow.parquet


def array_table(array: NDArray[Any], source: str) -> Table:
    """Return the table of an array; three or four axes are a stack of pictures."""
    if array.dtype.kind not in "fiub":
        raise InvalidInput(f"{source}: contains {array.dtype}, not numbers; save real numbers.")
    if array.ndim not in (2, 3, 4) or not array.size:
        raise InvalidInput(
            f"{source}: has shape {array.shape}; pass rows and columns, or a stack of pictures."
        )
    if array.ndim == 2:
        return Table(floats(array))
    form = PictureFormat(array.shape[1:], white_value(array.dtype))
    return Table(floats(array).reshape(len(array), -1), form=form)


def white_value(dtype: np.dtype[Any]) -> float:
    """Return the value of white for a type of pixels."""
    return {"u1": 255.0, "u2": 65535.0}.get(dtype.str[1:], 1.0)


def floats(array: NDArray[Any]) -> NDArray[Any]:
    """Convert to float32 if it represents every value, otherwise to float64."""
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative:
        return array
    small = array.dtype.itemsize <= 2 or array.dtype == np.dtype(">f4")
    return array.astype(np.float32 if small else np.float64)
