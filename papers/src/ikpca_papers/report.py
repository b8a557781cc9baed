"""HTML report of a run."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from ikpca_papers.claims import Curves, ExperimentSpec, Status, Verdict, judge, specs
from ikpca_papers.figures.drawing import Picture, draw
from ikpca_papers.figures.style import averaged, axis_words, panels
from ikpca_papers.runner import EXPERIMENTS, Results, ResultsFolder

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


def plot_data(results: Results, curves: Curves) -> dict[str, Any]:
    """Panels of series; the means over repetitions, in passes and in seconds."""
    parts = panels(results.tables[curves.table], curves.panel)
    found = []
    for name, rows in parts.items():
        values = averaged(rows, curves.x, curves.y, curves.series)
        times = averaged(rows, curves.x, curves.seconds, curves.series) if curves.seconds else {}
        series = [
            {
                "name": method,
                "passes": [place for place, _ in points],
                "seconds": [seconds for _, seconds in times.get(method, [])],
                "values": [value for _, value in points],
            }
            for method, points in values.items()
        ]
        found.append({"name": name, "series": series})
    words = {"label": curves.label, "axis": axis_words(curves.x), "unit": curves.x}
    return {**words, "panels": found}


def embedded_json(value: Any) -> str:
    r"""JSON that cannot end the script element around it.

    Examples
    --------
    >>> print(embedded_json({"name": "</script>"}))
    {"name": "\u003c/script>"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


@dataclass(frozen=True)
class ExperimentResult:
    """A spec with what became of it.

    Parameters
    ----------
    spec : ExperimentSpec
    size : str
    results : Results or None
        None where it was not run, or failed.
    verdicts : tuple of Verdict
    pictures : tuple of Picture
    failure : str
        Why there are no results, where it was tried.
    """

    spec: ExperimentSpec
    size: str
    results: Results | None
    verdicts: tuple[Verdict, ...]
    pictures: tuple[Picture, ...]
    failure: str = ""


def experiment_results(
    out: Path,
    size: str,
    failures: Mapping[str, str] | None = None,
    known: Sequence[ExperimentSpec] | None = None,
) -> Iterator[ExperimentResult]:
    """Every experiment in order, from what the results folder holds; claims are judged anew."""
    for spec in _in_order() if known is None else known:
        results = ResultsFolder.of(out, size, spec.id).read()
        tables = None if results is None else results.tables
        yield ExperimentResult(
            spec,
            size,
            results,
            tuple(judge(claim, size, tables) for claim in spec.claims),
            () if results is None else tuple(draw(spec, results)),
            (failures or {}).get(spec.id, ""),
        )


def _in_order() -> list[ExperimentSpec]:
    """As the registry has them; what is not registered yet comes last."""
    found = specs()
    first = [name for name in EXPERIMENTS if name in found]
    return [found[name] for name in [*first, *(name for name in found if name not in first)]]


def as_json(told: Sequence[ExperimentResult]) -> str:
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


_ASSETS = files("ikpca_papers") / "assets"


def page(told: Sequence[ExperimentResult]) -> str:
    """Build the whole page; it asks nothing of the network and needs no other file."""
    parts = {name: (_ASSETS / name).read_text(encoding="utf-8") for name in
             ("page.html", "page.css", "page.js")}  # fmt: skip
    return Template(parts["page.html"]).substitute(
        style=parts["page.css"],
        script=parts["page.js"],
        size=escape(told[0].size if told else ""),
        counts=_counts(told),
        contents=_contents(told),
        run=_run(told),
        chapters="".join(_chapter(chapter) for chapter in told),
    )


def _counts(told: Sequence[ExperimentResult]) -> str:
    statuses = [verdict.status for chapter in told for verdict in chapter.verdicts]
    words = {Status.HOLDS: "hold", Status.FAILS: "do not hold", Status.NOT_RUN: "not run"}
    classes = {Status.HOLDS: "holds", Status.FAILS: "fails", Status.NOT_RUN: "idle"}
    return "".join(
        f'<li class="{classes[status]}"><b>{statuses.count(status)}</b> {words[status]}</li>'
        for status in Status
    )


def _contents(told: Sequence[ExperimentResult]) -> str:
    lines = []
    for chapter in told:
        held = sum(verdict.status is Status.HOLDS for verdict in chapter.verdicts)
        judged = sum(verdict.status is not Status.NOT_RUN for verdict in chapter.verdicts)
        note = f"{held} of {judged} claims hold" if judged else "not run"
        name = escape(chapter.spec.id)
        lines.append(
            f'<li><a href="#{name}">{escape(chapter.spec.title)}</a> '
            f"<small>{name}: {note}</small></li>"
        )
    return "".join(lines)


def _run(told: Sequence[ExperimentResult]) -> str:
    """Versions, threads and seed, once for all experiments that ran with the same."""
    documents = [chapter.results.document for chapter in told if chapter.results is not None]
    if not documents:
        return "<p>Nothing was run.</p>"
    gathered: dict[str, list[str]] = {}
    for document in documents:
        facts = {
            **document["versions"],
            "sources (SHA-256)": document["sources"][:16],
            "seed": document["seed"],
            "BLAS threads per part": max(part["threads"] for part in document["parts"]),
        }
        for name, value in facts.items():
            gathered.setdefault(name, []).append(str(value))
    facts = {name: list(dict.fromkeys(values)) for name, values in gathered.items()}
    work = sum(part["seconds"] for document in documents for part in document["parts"])
    return definitions({**facts, "work in all parts": f"{work:.0f} s"})


def _chapter(chapter: ExperimentResult) -> str:
    spec = chapter.spec
    head = (
        f'<section id="{escape(spec.id)}"><h2>{escape(spec.title)}</h2>'
        f'<p class="source">{escape(spec.id)} · {escape(spec.paper)}, {escape(spec.figure)}</p>'
        f"<p>{escape(spec.about)}</p>"
    )
    claims = claims_table(chapter.verdicts)
    if chapter.results is None:
        why = chapter.failure or "This experiment was not run at this size."
        return f'{head}{claims}<p class="missing">{escape(why)}</p></section>'
    return f"{head}{claims}{_plots(chapter)}{_figures(chapter)}{_details(chapter)}</section>"


def _plots(chapter: ExperimentResult) -> str:
    if chapter.results is None or chapter.spec.curves is None:
        return ""
    data = embedded_json(plot_data(chapter.results, chapter.spec.curves))
    title = escape(chapter.spec.title)
    return (
        f'<div class="curves" data-title="{title}"><script type="application/json">{data}</script>'
        "<noscript>The interactive plot needs JavaScript; the figure below shows the same."
        "</noscript></div>"
    )


def _figures(chapter: ExperimentResult) -> str:
    inside = "".join(figure(picture, chapter.spec.title) for picture in chapter.pictures)
    return f'<div class="figures">{inside}</div>' if inside else ""


def _details(chapter: ExperimentResult) -> str:
    if chapter.results is None:
        return ""
    document = chapter.results.document
    data = document["data"]
    facts = {
        "data": f"{data['name']} ({data['origin']})",
        "data SHA-256": data["sha256"],
        **document["settings"],
        "seconds": sum(part["seconds"] for part in document["parts"]),
    }
    tables = "".join(rows_table(name, rows) for name, rows in document["tables"].items())
    return f"<details><summary>data and settings</summary>{definitions(facts)}</details>{tables}"
