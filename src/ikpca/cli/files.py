"""Files of rows: CSV, Excel and Parquet, read by pandas, and arrays of NumPy."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, TextIO, TypeAlias, cast

import numpy as np

from ikpca.columns import (
    EMPTY_CELLS,
    Cells,
    ColumnChoice,
    Header,
    Table,
    choose_columns,
    float_type,
    is_number,
    numbers_as_names,
)
from ikpca.errors import InvalidInput
from ikpca.model_files import atomic_write, check_writable

if TYPE_CHECKING:
    from pandas import DataFrame

_TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
_READABLE = ".csv, .tsv, .txt (also .gz), .xlsx, .parquet, .npy or .npz"
_WRITABLE = ".csv, .tsv (also .gz), .xlsx, .parquet, .npy or .npz"
#: Size in bytes from which files are memory-mapped.
_MEMORY_MAP_BYTES = 256 * 2**20
#: Lines that decide on the separator, and rows that are converted at a time.
_FIRST_LINES, _CHUNK_ROWS = 100, 16384
#: Maximum number of columns that pandas reads in reasonable time.
_MAX_COLUMNS = 100_000
#: Names that pandas gives to the column of an index.
_INDEX_NAMES = ("", "Unnamed: 0")
_SEPARATORS = "\t;|,"
_CONTROL_CHARACTERS = re.compile(r"[\0-\10\16-\37]")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+(e[+-]?\d+)?\s*", re.IGNORECASE)

#: Called with the columns of the file.
Choose: TypeAlias = Callable[[Header], ColumnChoice]


def read_table(source: str | Path, choose: Choose | None = None) -> Table:
    """Read columns of a file; empty cells become NaN, and text becomes indices of ``texts``.

    Text may be compressed, and "-" is standard input. A member of an archive and a sheet of Excel
    follow after a colon.
    """
    choose = choose or partial(choose_columns, source=str(source))
    try:
        return _read(source, choose)
    except InvalidInput:
        raise
    except MemoryError:
        raise InvalidInput(
            f"{source}: does not fit in memory; pass fewer columns, or convert it to .npy, which "
            "is read in parts."
        ) from None
    except Exception as error:
        # Parsers of damaged files raise many types of errors.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        reason = re.split(r"\n|\. ", reason)[0].rstrip(".")
        raise InvalidInput(f"{source}: cannot be read ({reason}); create it again.") from None


def _read(source: str | Path, choose: Choose) -> Table:
    if str(source) == "-":
        content = sys.stdin.buffer.read()
        return _read_text(partial(io.BytesIO, content), "standard input", choose)
    path, member = split_member(source)
    if path.is_dir() or not path.exists():
        rule = "is a folder, not a file" if path.is_dir() else "no such file"
        raise InvalidInput(f"{path}: {rule}; check the path.")
    match _suffix(path):
        case ".npy" | ".npz":
            return _read_array(path, member, choose)
        case ".parquet":
            return _read_parquet(path, choose)
        case ".xlsx":
            return _read_excel(path, member, choose)
        case suffix if suffix in _TEXT_SUFFIXES:
            return _read_text(partial(_open_binary, path), path.name, choose)
    raise InvalidInput(f"{path}: {_unknown_suffix(path)}; pass {_READABLE}.")


def split_member(source: str | Path) -> tuple[Path, str | None]:
    """Split ``rows.npz:member`` and ``rows.xlsx:sheet``."""
    head, separator, member = str(source).rpartition(":")
    if separator and head.lower().endswith((".npz", ".xlsx")):
        return Path(head), member
    return Path(source), None


def _suffix(path: Path) -> str:
    """Return the suffix in lower case, without .gz behind that of text."""
    name = path.name.lower()
    inner = Path(name.removesuffix(".gz")).suffix
    return inner if inner in _TEXT_SUFFIXES else Path(name).suffix


def _unknown_suffix(path: Path) -> str:
    return f"the suffix {path.suffix!r} is unknown" if path.suffix else "the name has no suffix"


def _open_binary(path: Path) -> BinaryIO:
    if path.suffix.lower() == ".gz":
        return cast(BinaryIO, gzip.GzipFile(path))
    return path.open("rb")


def _read_text(open_content: Callable[[], BinaryIO], source: str, choose: Choose) -> Table:
    """Read text in UTF-16 after its byte order mark, in UTF-8, or in Latin 1."""
    with open_content() as file:
        is_utf16 = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    encoding = "utf-16" if is_utf16 else "utf-8-sig"
    try:
        with io.TextIOWrapper(open_content(), encoding, newline="") as text:
            return _read_cells(text, source, choose)
    except UnicodeDecodeError:
        # Numbers are equal in all of these encodings; only names may differ.
        with io.TextIOWrapper(open_content(), "latin-1", newline="") as text:
            return _read_cells(text, source, choose)


def _read_cells(
    file: TextIO, source: str, choose: Choose, *, unit: str = "line", separator: str = ""
) -> Table:
    """Read cells in chunks; rows of empty cells are skipped."""
    import pandas

    lines = [*islice(file, _FIRST_LINES)]
    if _CONTROL_CHARACTERS.search("".join(lines)):
        raise InvalidInput(f"{source}: is not a text file; pass {_READABLE}.")
    n_skipped = sum(1 for _ in takewhile(_is_comment, lines))
    lines = lines[n_skipped:]
    if not lines:
        raise InvalidInput(f"{source}: has no rows; pass a file with at least one.")
    if max(map(lines[0].count, _SEPARATORS)) >= _MAX_COLUMNS:
        raise InvalidInput(f"{source}: has more than {_MAX_COLUMNS} columns; convert it to .npy.")
    separator = separator or _separator(lines)
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    first, n_first = next(reader), reader.line_num
    records = [first, *reader]
    has_commas = separator != "," and any(map(_DECIMAL_COMMA.fullmatch, chain(*records)))
    header, positions = _header(records, source)
    n_skipped += n_first * header.is_named
    file.seek(0)
    for _ in range(n_skipped):
        file.readline()
    chunks = pandas.read_csv(
        file,
        sep=separator,
        header=None,
        names=range(max(map(len, records))),
        index_col=False,
        dtype=object,
        na_filter=False,
        skipinitialspace=True,
        skip_blank_lines=False,
        chunksize=_CHUNK_ROWS,
    )

    rows = _filled_rows(chunks, header, positions, n_skipped, f"{source}, {unit}")
    decimal = "," if has_commas else "."
    return Table.from_chunks(rows, header, choose(header), source, unit=unit, decimal=decimal)


def _filled_rows(
    chunks: Iterable[DataFrame], header: Header, positions: list[int], n_skipped: int, place: str
) -> Iterator[DataFrame]:
    """Yield the columns with names, without rows of empty cells; the index numbers lines."""
    from pandas.errors import ParserError

    long_row = None
    try:
        for chunk in chunks:
            chunk.index += n_skipped + 1
            filled = chunk[(chunk != "").any(axis=1)]
            extra = (filled.drop(columns=positions) != "").any(axis=1)
            if extra.any():
                long_row = extra.idxmax()
                break
            yield filled[positions].set_axis([*header.names], axis=1)
    except ParserError as error:
        line = re.search(r"fields in line (\d+)", str(error))
        if line is None:
            raise
        long_row = int(line[1]) + n_skipped
    if long_row is not None:
        raise InvalidInput(
            f"{place} {long_row}: has more cells than columns with names, which are "
            f"{len(positions)}; correct it, or add names."
        )


def _is_comment(line: str) -> bool:
    # Excel writes a first line sep=;.
    return line.startswith(("#", "sep=")) or not line.strip(" \t\r\n,;")


def _separator(lines: Sequence[str]) -> str:
    """Return the separator that splits the lines in equally many cells."""
    for separator in filter(lines[0].count, (*_SEPARATORS, " ")):
        reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        first, *others = (len(cells) for cells in reader if cells)
        # Decimal commas do not separate, and the name of the index may be missing.
        if len({*others}) == 1 and others[0] > 1 and first in (others[0], max(others[0] - 1, 2)):
            return separator
    return max(_SEPARATORS, key=lines[0].count)


def _header(records: Sequence[Sequence[str]], source: str) -> tuple[Header, list[int]]:
    """Return the names of the columns, and their positions in the records."""
    names, second, *_ = ([*map(str.strip, record)] for record in [*filter(any, records), []])
    if not _is_header(names, second):
        cells = (cell for record in records for cell in enumerate(record) if cell[1].strip())
        positions = [*range(max(at for at, _ in cells) + 1)]
        return Header(numbers_as_names(len(positions)), is_named=False), positions
    if len(second) == len(names) + 1 > 2 and second[-1]:
        # R does not name the column of row names.
        names = ["", *names]
    index = None
    if names[0] in _INDEX_NAMES and len(names) > 1:
        index = names[0] = "row" if "index" in names else "index"
    positions = [at for at, name in enumerate(names) if name]
    header = Header([names[at] for at in positions], index_column=index)
    return _check_names(header, source), positions


def _is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return True if the first line has names: texts, or numbers that count the columns."""
    filled = [cell for cell in first if cell not in EMPTY_CELLS]
    if not all(is_number(cell.replace(",", ".")) for cell in filled):
        return True
    if not filled or not all(cell.isdecimal() for cell in filled):
        return False
    numbers = [int(cell) for cell in filled]
    if numbers != [*range(numbers[0], numbers[0] + len(numbers))]:
        return False
    if not first[0]:
        return len(numbers) > 1 or numbers == [0]
    has_decimals = any(
        is_number(cell) and not cell.lstrip("+-").isdecimal()
        for cell in second
        if cell not in EMPTY_CELLS
    )
    return len(numbers) > 1 and (has_decimals or (numbers[0] == 0 and len(numbers) > 2))


def _check_names(header: Header, source: str) -> Header:
    name, count = Counter(header.names).most_common(1)[0]
    if count > 1:
        raise InvalidInput(f"{source}: has two columns {name!r}; use different names.")
    return header


def _read_excel(path: Path, sheet: str | None, choose: Choose) -> Table:
    """Read a sheet as the CSV file that it could be saved as."""
    import pandas

    _require("openpyxl", f"{path}: Excel files need")
    cells = pandas.read_excel(
        path, sheet_name=sheet or 0, header=None, dtype=object, keep_default_na=False
    )
    text = io.StringIO(cells.to_csv(header=False, index=False, lineterminator="\n"))
    return _read_cells(text, path.name, choose, unit="row", separator=",")


def _read_parquet(path: Path, choose: Choose) -> Table:
    """Read the chosen columns in batches."""
    _require("pyarrow", f"{path}: Parquet files need")
    from pyarrow import parquet

    file = parquet.ParquetFile(path)
    schema = file.schema_arrow
    if not schema.names:
        raise InvalidInput(f"{path}: has no columns; create it again.")
    # The name that pandas gives to an index without one.
    renamed = {"__index_level_0__": "index"}
    fields = {renamed.get(one.name, one.name): one for one in schema}
    indexes = (schema.pandas_metadata or {}).get("index_columns", [])
    index = next((name for name, one in fields.items() if one.name in indexes[:1]), None)
    names = [renamed.get(name, name) for name in schema.names]
    choice = choose(_check_names(Header(names, index_column=index), path.name))
    columns = [fields[name].name for name in {*choice.features, *choice.ids}]

    def chunks() -> Iterator[DataFrame]:
        n_rows = 0
        for batch in file.iter_batches(_CHUNK_ROWS, columns=columns):
            # Integers with empty cells would become floating-point numbers.
            frame = batch.to_pandas(ignore_metadata=True, integer_object_nulls=True)
            frame.index += n_rows + 1
            n_rows += len(frame)
            yield frame.rename(columns=renamed)

    return Table.from_chunks(chunks(), Header(names), choice, path.name)


def _read_array(path: Path, member: str | None, choose: Choose) -> Table:
    """Read an array or a member of an archive; a large array is memory-mapped."""
    from pandas import DataFrame

    mode: Literal["r"] | None = "r" if path.stat().st_size >= _MEMORY_MAP_BYTES else None
    loaded = np.load(path, mmap_mode=mode, allow_pickle=False)
    if not isinstance(loaded, np.ndarray):
        with loaded as archive:
            name = archive.files[0] if member is None and len(archive.files) == 1 else member
            if name not in archive.files:
                rule = "no member is given" if name is None else f"has no member {name!r}"
                others = ", ".join(f"{path.name}:{other}" for other in archive.files)
                raise InvalidInput(f"{path}: {rule}; pass one of {others}.")
            loaded = archive[name]
    if loaded.dtype.kind not in "fiub":
        raise InvalidInput(f"{path}: contains {loaded.dtype}, not numbers; save real numbers.")
    if loaded.ndim != 2 or not loaded.size:
        raise InvalidInput(f"{path}: has shape {loaded.shape}; pass rows and columns.")
    rows = loaded.astype(float_type([loaded.dtype]), copy=False)
    names = numbers_as_names(rows.shape[1])
    choice = choose(Header(names, is_named=False))
    frame = DataFrame(rows, np.arange(1, len(rows) + 1), [*names], copy=False)
    ids = frame[[*choice.ids]].astype(object)
    table = Table(frame, ids, path.name, n_columns=len(names), array=rows)
    if len(choice.features) == len(names):
        return table
    return table.with_rows(rows[:, [int(name) - 1 for name in choice.features]], choice.features)


def _require(package: str, purpose: str) -> None:
    """Raise an error with the install command if a package is missing."""
    if find_spec(package) is None:
        raise InvalidInput(f"{purpose} the package {package}; run: pip install 'ikpca[cli]'.")


def check_target(target: str | Path, ids: str | None = None, text: Collection[str] = ()) -> None:
    """Raise an error, before the work, if ids and columns of text could not be written."""
    path, _ = split_member(target)
    if not holds_text(path) and (ids is not None or text):
        what = f"ids={ids!r}: {path} does not hold ids"
        if ids is None:
            what = f"out={path}: does not hold text as in {next(iter(text))!r}"
        raise InvalidInput(f"{what}; pass a .csv, .xlsx or .parquet file.")
    if str(target) == "-":
        return
    match _suffix(path):
        case ".parquet":
            _require("pyarrow", f"{path}: Parquet files need")
        case ".xlsx":
            _require("openpyxl", f"{path}: Excel files need")
        case ".csv" | ".tsv" | ".npy" | ".npz":
            pass
        case _:
            raise InvalidInput(f"{path}: {_unknown_suffix(path)}; pass {_WRITABLE}.")
    check_writable(path)


def holds_text(target: str | Path) -> bool:
    """Return True for targets of text and names; arrays hold numbers only."""
    return _suffix(split_member(target)[0]) not in (".npy", ".npz")


def write_table(
    target: str | Path,
    columns: Mapping[str, Cells],
    ids: Mapping[str, Cells] | None = None,
    *,
    names: bool = True,
) -> None:
    """Write columns atomically in the format of the file name; "-" is standard output.

    Arrays are written without ids and names, and text without names if ``names`` is False.
    """
    import pandas

    check_target(target)
    path, member = split_member(target)
    suffix = _suffix(path)
    if not holds_text(path):
        rows = np.column_stack([*columns.values()])
        with atomic_write(path) as file:
            if suffix == ".npy":
                np.save(file, rows, allow_pickle=False)
            else:
                np.savez(file, **{member or "rows": rows})  # type: ignore[arg-type]
        return
    for name in columns:
        if ids is not None and name in ids:
            raise InvalidInput(
                f"{path}: {name!r} is the name of an id and of a result; rename the id column."
            )
    frame = pandas.DataFrame({**({} if ids is None else ids), **columns})
    if str(target) == "-":
        frame.to_csv(sys.stdout, index=False, header=names)
        return
    with atomic_write(path) as file:
        if suffix == ".parquet":
            frame.to_parquet(file, index=False)
        elif suffix == ".xlsx":
            frame.to_excel(file, index=False, header=names, engine="openpyxl")
        else:
            frame.to_csv(
                file,
                sep="\t" if suffix == ".tsv" else ",",
                index=False,
                header=names,
                lineterminator="\n",
                mode="wb",
                compression="gzip" if path.suffix.lower() == ".gz" else None,
            )
