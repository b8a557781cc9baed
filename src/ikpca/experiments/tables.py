"""Results as text: CSV and JSON, each with all that is needed to run them again."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from typing import Any

from ikpca.experiments.results import DemoResult, Run

__all__ = ["as_csv", "as_json"]


def as_csv(result: DemoResult) -> str:
    """One line per method; settings and versions are repeated on each."""
    settings = {**asdict(result.spec), "threads": result.threads, **result.versions}
    lines = [{**_cells(run, result), **settings} for run in result.runs]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def as_json(result: DemoResult) -> str:
    """The table, and the error after every pass."""
    document = {
        "data": {"name": "digits", "rows": result.spec.rows, "features": result.features},
        "settings": asdict(result.spec),
        "threads": result.threads,
        "versions": result.versions,
        "table": [_cells(run, result) for run in result.runs],
        "excess_error_per_pass": {run.method: run.excess_errors for run in result.runs},
    }
    return json.dumps(document, indent=2) + "\n"


def _cells(run: Run, result: DemoResult) -> dict[str, Any]:
    last = result.spec.passes
    return {
        "method": run.method,
        **{
            f"excess_after_{number}": run.excess_after(number, last)
            for number in result.spec.checkpoints
        },
        "seconds": run.seconds,
        "entries": run.entries,
        "entries_per_l2": run.entries / result.spec.rows**2,
        "peak_megabytes": run.peak_megabytes,
        "outcome": run.outcome,
    }
