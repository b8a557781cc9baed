"""Pieces of HTML; every text that comes from elsewhere is escaped here."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from ikpca.experiments.verdicts import Status, Verdict
from ikpca.figures import Picture

__all__ = ["claims_table", "definitions", "figure", "rows_table"]

_MARKS = {Status.HOLDS: "✓", Status.FAILS: "✗", Status.NOT_RUN: "–"}
_CLASSES = {Status.HOLDS: "holds", Status.FAILS: "fails", Status.NOT_RUN: "idle"}
#: Rows of a table that the page shows; the rest is in the CSV file.
_SHOWN = 40


def claims_table(verdicts: Sequence[Verdict]) -> str:
    """Every claim with the paper's figure and ours."""
    body = "".join(_claim(verdict) for verdict in verdicts)
    heads = "".join(
        f'<th scope="col">{name}</th>' for name in ("claim", "paper", "ours", "verdict")
    )
    return f'<table class="claims"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def _claim(verdict: Verdict) -> str:
    claim, status = verdict.claim, verdict.status
    note = f'<small class="note">{escape(claim.note)}</small>' if claim.note else ""
    return (
        f'<tr class="{_CLASSES[status]}"><td data-label="claim">{escape(claim.sentence)}{note}</td>'
        f'<td data-label="paper">{escape(claim.paper)}</td>'
        f'<td data-label="ours">{escape(verdict.ours)}</td>'
        f'<td data-label="verdict" class="verdict"><span aria-hidden="true">{_MARKS[status]}</span>'
        f" {escape(status.value)}</td></tr>"
    )


def figure(picture: Picture, title: str) -> str:
    """A picture that grows when clicked; its bytes are in the page."""
    data = base64.b64encode(picture.content).decode()
    text = escape(picture.caption)
    alt = escape(f"{title}: {picture.caption}")
    return (
        f'<figure><button type="button" class="zoom" aria-label="Enlarge: {text}">'
        f'<img src="data:image/{picture.kind};base64,{data}" alt="{alt}"></button>'
        f"<figcaption>{text}</figcaption></figure>"
    )


def definitions(pairs: Mapping[str, Any]) -> str:
    """Names and what they stand for."""
    inside = "".join(
        f"<div><dt>{escape(str(name))}</dt><dd>{escape(_text(value))}</dd></div>"
        for name, value in pairs.items()
    )
    return f"<dl>{inside}</dl>"


def rows_table(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A written table, folded away; long ones are cut, and say so."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(_row(row, columns) for row in rows[:_SHOWN])
    cut = f"<p>{_SHOWN} of {len(rows)} rows; all are in {escape(name)}.csv.</p>"
    return (
        f"<details><summary>table {escape(name)}, {len(rows)} rows</summary>"
        f'<div class="wide" tabindex="0" role="region" aria-label="table {escape(name)}">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
        f"{cut if len(rows) > _SHOWN else ''}</details>"
    )


def _row(row: Mapping[str, Any], columns: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<td>{escape(_text(row.get(one)))}</td>" for one in columns) + "</tr>"


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(_text(one) for one in value)
    return str(value)
