"""Damaged tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ikpca.cli.files import read_table
from ikpca.columns import ColumnEncoder
from tests.faults.mutations import damaged, damaged_text

_CSV = "height,weight,age\n1.8,75,33\n1.6,5.5e1,41\n-0.5,+60,.5\n\n2,3,4\n"
_TSV = '"a b"\t"c\td"\n1\t2\n3\t4\n'


@dataclass(frozen=True)
class TextCase:
    """Text file, other files that it needs, and the function that reads it."""

    name: str
    path: Path
    content: bytes
    load: Callable[[Path], Any]
    check: Callable[[Any], str]
    changes: tuple[Callable[..., bytes], ...] = (damaged, damaged_text)

    def damage(self, rng):
        """Damaged copy of the file, and the check of its content."""
        change = self.changes[int(rng.integers(len(self.changes)))]
        self.path.write_bytes(change(self.content, rng))
        return self.path, self.check


def text_cases(folder):
    """Return CSV, TSV and NumPy files."""
    folder = Path(folder)
    texts = [
        TextCase(name, folder / f"damaged.{name}", text.encode(), _read_complete, _valid_table)
        for name, text in (("csv", _CSV), ("tsv", _TSV))
    ]
    return texts + [_array(folder, name) for name in ("npy", "npz")]


def _array(folder, kind):
    path, rows = folder / f"damaged.{kind}", np.arange(12.0).reshape(4, 3)
    if kind == "npy":
        np.save(path, rows)
    else:
        np.savez_compressed(path, rows=rows)
    return TextCase(kind, path, path.read_bytes(), read_table, _valid_array)


def _read_complete(path):
    """Read a table as the commands do, which reject empty cells and text."""
    table, _ = ColumnEncoder.fit(read_table(path))
    return table


def _valid_table(table):
    assert np.isfinite(table.rows).all()
    return _valid_array(table)


def _valid_array(table):
    """Check the numbers of rows; NaN is rejected by the estimator."""
    assert table.rows.ndim == 2
    assert table.rows.size
    assert table.rows.dtype.kind == "f"
    return "loaded"
