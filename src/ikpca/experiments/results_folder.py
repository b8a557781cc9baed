"""Where finished parts and tables are kept: ``<folder>/<size>/<experiment>/``."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
        write_whole(folder / f"{part.slug}.npz", content.getvalue())
        record = {"part": part.name, "mark": mark, **cost, "tables": plain(findings.tables)}
        write_whole(folder / f"{part.slug}.json", json.dumps(record, indent=1, allow_nan=False))

    def part(self, part: Part, mark: str) -> Mapping[str, Any] | None:
        """The record of a finished part with this mark, or None."""
        path = self.folder / "parts" / f"{part.slug}.json"
        try:
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        whole = record.get("mark") == mark and path.with_suffix(".npz").exists()
        return record if whole else None

    def write(self, document: Mapping[str, Any]) -> None:
        """Write tables as CSV, and everything as JSON."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, rows in document["tables"].items():
            write_whole(self.folder / f"{name}.csv", as_csv(rows))
        text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        write_whole(self.folder / "results.json", text)

    def read(self) -> Results | None:
        """What was written, or None where nothing is."""
        try:
            text = (self.folder / "results.json").read_text(encoding="utf-8")
        except OSError:
            return None
        document = json.loads(text)
        arrays = {one["part"]: self._arrays(one["file"]) for one in document["parts"]}
        return Results(document, arrays)

    def forget(self, mark: str) -> None:
        """Remove a result with another mark: it answers another question."""
        found = self.read()
        if found is not None and found.document["mark"] != mark:
            (self.folder / "results.json").unlink()

    def _arrays(self, slug: str) -> dict[str, NDArray[Any]]:
        with np.load(self.folder / "parts" / f"{slug}.npz", allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
