"""Tables as text: numbers with or without a line of names; a fault is told by line and column."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ikpca.datasets.row_table import Table
from ikpca.errors import InvalidInput
from ikpca.storage import written_whole

__all__ = ["read_csv", "write_csv"]

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
    lines = _Lines(path.name, text)
    rows = list(lines.rows())
    if not rows:
        raise InvalidInput(f"{path}: holds no numbers; pass a file with at least one line of them.")
    return Table(np.vstack(rows), lines.names)


class _Lines:
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
    with written_whole(path) as file:
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
