"""Verdicts as JSON, the same bytes for the same results."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ikpca.reports.chapters import Chapter

__all__ = ["as_json"]


def as_json(told: Sequence[Chapter]) -> str:
    """Every claim of every experiment; nothing in it depends on the clock."""
    document = [
        {
            "experiment": chapter.spec.id,
            "size": chapter.size,
            "paper": chapter.spec.paper,
            "figure": chapter.spec.figure,
            "data": None if chapter.results is None else chapter.results.document["data"],
            "failure": chapter.failure or None,
            "claims": [dict(verdict.as_row()) for verdict in chapter.verdicts],
        }
        for chapter in told
    ]
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
