"""Tables as text: CSV, and values that JSON knows."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ikpca.experiments.selections import Cell, Rows, Tables

__all__ = ["as_csv", "plain"]


def as_csv(rows: Rows) -> str:
    r"""Columns in the order in which they first appear.

    Examples
    --------
    >>> as_csv([{"method": "kha", "error": 0.5}, {"method": "pca", "rank": 3}])
    'method,error,rank\nkha,0.5,\npca,,3\n'
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def plain(tables: Mapping[str, Any]) -> Tables:
    """Numbers of NumPy become Python's; what is not finite becomes None, as JSON has no name."""
    return {
        name: [{column: _cell(value) for column, value in row.items()} for row in rows]
        for name, rows in tables.items()
    }


def _cell(value: Any) -> Cell:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    known: Cell = value
    return known
