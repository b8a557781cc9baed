"""One number out of a written table: which rows, which column, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, TypeAlias

__all__ = ["TAKES", "Cell", "Rows", "Selection", "Tables"]

Cell: TypeAlias = str | int | float | bool | None
Rows: TypeAlias = list[dict[str, Cell]]
Tables: TypeAlias = Mapping[str, Rows]

#: What is made of the selected cells.
TAKES: dict[str, Callable[[list[float]], float]] = {
    "mean": fmean,
    "median": median,
    "min": min,
    "max": max,
    "sum": sum,
    "count": lambda cells: float(len(cells)),
    "first": lambda cells: cells[0],
    "last": lambda cells: cells[-1],
}


@dataclass(frozen=True)
class Selection:
    """A small, safe expression: nothing of a spec file is ever executed.

    Parameters
    ----------
    table, column : str
    take : str
        One of ``TAKES``.
    where : dict
        Columns, and what they must hold; a list means any of it.
    times : float
        The number is multiplied by it.

    Examples
    --------
    >>> rows = [{"method": "kha", "error": 0.2}, {"method": "kha/et", "error": 0.1}]
    >>> Selection("errors", "error", where={"method": "kha/et"}).value({"errors": rows})
    0.1
    """

    table: str
    column: str
    take: str = "mean"
    where: Mapping[str, Any] = field(default_factory=dict)
    times: float = 1.0

    def narrowed(self, where: Mapping[str, Any]) -> Selection:
        """The same of fewer rows."""
        both = {**self.where, **where}
        return Selection(self.table, self.column, self.take, both, self.times)

    def value(self, tables: Tables) -> float | None:
        """The number; None where no such row was written, or one of them holds no number."""
        cells = [row.get(self.column) for row in self._rows(tables)]
        numbers = [float(cell) for cell in cells if isinstance(cell, int | float)]
        if not cells or len(numbers) < len(cells):
            return None
        return self.times * TAKES[self.take](numbers)

    def _rows(self, tables: Tables) -> Iterable[dict[str, Cell]]:
        for row in tables.get(self.table, []):
            if all(_holds(row.get(name), wanted) for name, wanted in self.where.items()):
                yield row


def _holds(cell: Cell, wanted: Any) -> bool:
    return cell in wanted if isinstance(wanted, list) else cell == wanted
