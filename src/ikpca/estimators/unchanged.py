"""Rows on disk, which somebody else may write to while a fit reads them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ikpca.errors import DataChanged
from ikpca.estimators.fingerprint import rows_digest
from ikpca.loop import Observer

__all__ = ["UnchangedRows", "watch_rows"]

#: Rows that are read again after every pass: few, so that it costs nothing, and fewer where each
#: takes a whole chunk to be decompressed.
_MAPPED_SAMPLE, _CHUNKED_SAMPLE = 32, 3


class UnchangedRows:
    """An observer that compares, after every pass, a sample of rows and the age of their file.

    Parameters
    ----------
    X : rows
        On disk.
    """

    def __init__(self, X: Any) -> None:
        self._X = X
        self._file = _mapped_file(X)
        number = _CHUNKED_SAMPLE if self._file is None else _MAPPED_SAMPLE
        self._places = np.unique(np.linspace(0, X.shape[0] - 1, number).astype(np.intp))
        self._before = self._look()

    def see(self, state: object, report: object) -> None:
        """Raise if anything is not what it was."""
        if self._look() != self._before:
            where = "X" if self._file is None else f"X ({self._file})"
            raise DataChanged(
                f"{where} was written to while the fit read it: what was found belongs to no data "
                "set at all; copy the rows or wait for whoever writes them, and fit again."
            )

    def _look(self) -> tuple[Any, ...]:
        sample = np.concatenate([self._X[place : place + 1] for place in self._places])
        return (*_age(self._file), rows_digest(sample))


def watch_rows(X: Any) -> list[Observer[Any, Any]]:
    """The observer for rows that others may write to; none for rows in memory."""
    return [UnchangedRows(X)] if _is_elsewhere(X) else []


def _is_elsewhere(X: Any) -> bool:
    in_memory = isinstance(X, np.ndarray) or hasattr(X, "tocsr")
    return not in_memory or _mapped_file(X) is not None


def _mapped_file(X: Any) -> str | None:
    """The file of a memory map, also of a view of one."""
    while X is not None:
        if isinstance(X, np.memmap):
            return None if X.filename is None else str(X.filename)
        X = getattr(X, "base", None)
    return None


def _age(file: str | None) -> tuple[int, ...]:
    if file is None:
        return ()
    try:
        status = os.stat(file)
    except FileNotFoundError:
        # A map outlives the name of its file, and nobody can write to it any more.
        return (-1,)
    return status.st_size, status.st_mtime_ns, status.st_ino
