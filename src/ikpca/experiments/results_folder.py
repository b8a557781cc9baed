"""Where finished parts and tables are kept: ``<folder>/<size>/<experiment>/``."""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ikpca.experiments.files import write_whole
from ikpca.experiments.parts import Findings, Part
from ikpca.experiments.selections import Tables
from ikpca.experiments.written_tables import as_csv, plain

__all__ = ["Results", "ResultsFolder"]


@dataclass(frozen=True)
class Results:
    """All that a finished experiment wrote.

    Parameters
    ----------
    document : dict
        Settings, seed, data, versions, threads, parts and tables.
    arrays : dict of dict of arrays
        By part.
    """

    document: Mapping[str, Any]
    arrays: Mapping[str, Mapping[str, NDArray[Any]]]

    @property
    def tables(self) -> Tables:
        """Rows by the name of the table."""
        tables: Tables = self.document["tables"]
        return tables


@dataclass(frozen=True)
class ResultsFolder:
    """One experiment in one size; every file is whole or not there."""

    folder: Path

    @classmethod
    def of(cls, out: Path, size: str, experiment: str) -> ResultsFolder:
        """The folder of an experiment, which need not exist."""
        return cls(out / size / experiment)

    def keep_part(self, part: Part, mark: str, findings: Findings, cost: Mapping[str, Any]) -> None:
        """Write a finished part; the JSON comes last, and its being there says that all is."""
        folder = self.folder / "parts"
        folder.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        arrays: dict[str, Any] = dict(findings.arrays)
        np.savez_compressed(content, **arrays)
        stored = content.getvalue()
        write_whole(folder / f"{part.slug}.npz", stored)
        arrays_digest = hashlib.sha256(stored).hexdigest()
        record = {
            "part": part.name,
            "mark": mark,
            **cost,
            "arrays": arrays_digest,
            "tables": plain(findings.tables),
        }
        write_whole(folder / f"{part.slug}.json", json.dumps(record, indent=1, allow_nan=False))

    def part(self, part: Part, mark: str) -> Mapping[str, Any] | None:
        """The record of a finished part with this mark, or None; a damaged one is none."""
        path = self.folder / "parts" / f"{part.slug}.json"
        try:
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(record, dict) or record.get("mark") != mark or "tables" not in record:
            return None
        return record if record.get("arrays") == _digest_of(path.with_suffix(".npz")) else None

    def write(self, document: Mapping[str, Any]) -> None:
        """Write tables as CSV, and everything as JSON."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, rows in document["tables"].items():
            write_whole(self.folder / f"{name}.csv", as_csv(rows))
        text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        write_whole(self.folder / "results.json", text)

    def read(self) -> Results | None:
        """What was written, or None where nothing is, or nothing whole."""
        try:
            document = json.loads((self.folder / "results.json").read_text(encoding="utf-8"))
            arrays = {one["part"]: self._arrays(one["file"]) for one in document["parts"]}
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile, zlib.error):
            return None
        return Results(document, arrays)

    def forget(self, mark: str) -> None:
        """Remove a result with another mark: it answers another question."""
        found = self.read()
        if found is not None and found.document["mark"] != mark:
            (self.folder / "results.json").unlink()

    def _arrays(self, slug: str) -> dict[str, NDArray[Any]]:
        with np.load(self.folder / "parts" / f"{slug}.npz", allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}


def _digest_of(path: Path) -> str | None:
    """SHA-256 of a file; None where there is none."""
    try:
        status = path.stat()
        return _digest(path, status.st_mtime_ns, status.st_size)
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _digest(path: Path, changed: int, size: int) -> str:
    """Read once, as long as the file does not change: parts are asked for over and over."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
