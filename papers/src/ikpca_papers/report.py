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

from ikpca_papers.claims import (
    KINDS,
    Curves,
    ExperimentSpec,
    Status,
    Verdict,
    evaluate_claim,
    specs,
    stored_verdicts,
)
from ikpca_papers.figures.curves import axis_label, mean_curves, split_panels
from ikpca_papers.figures.drawing import Picture, draw
from ikpca_papers.runner import EXPERIMENTS, Results, ResultsFolder

_MARKS = {Status.HOLDS: "✓", Status.FAILS: "✗", Status.NOT_RUN: "–"}
_CLASSES = {Status.HOLDS: "holds", Status.FAILS: "fails", Status.NOT_RUN: "idle"}
_HEADS = ("claim", "paper", "method", "ours", "verdict", "full size")
#: Rows of a table that the page shows; the rest is in the CSV file.
_SHOWN = 40


def claims_table(verdicts: Sequence[Verdict], full: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table of claims with the paper's values and ours.

    Parameters
    ----------
    verdicts : sequence of Verdict
    full : dict
        Verdicts of the last complete run on the papers' data, by claim.
    """
    body = "".join(_claim(verdict, full.get(verdict.claim.id, {})) for verdict in verdicts)
    heads = "".join(f'<th scope="col">{name}</th>' for name in _HEADS)
    return f'<table class="claims"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def _claim(verdict: Verdict, full: Mapping[str, Any]) -> str:
    claim, status = verdict.claim, verdict.status
    note = f'<small class="note">{escape(claim.note)}</small>' if claim.note else ""
    then = Status(full.get("status", Status.NOT_RUN.value))
    shown = _marked(status)
    if status is Status.FAILS and then is Status.HOLDS:
        shown += '<small class="note">only in the full size</small>'
    figure = "" if then is Status.NOT_RUN else f'<small class="note">{escape(full["ours"])}</small>'
    return (
        f'<tr><td data-label="claim">{escape(claim.sentence)}{note}</td>'
        f'<td data-label="paper">{escape(claim.paper)}</td>'
        f'<td data-label="method">{KINDS[claim.kind]}</td>'
        f'<td data-label="ours">{escape(verdict.ours)}</td>'
        f'<td data-label="verdict" class="verdict {_CLASSES[status]}">{shown}</td>'
        f'<td data-label="full size" class="verdict {_CLASSES[then]}">{_marked(then)}{figure}</td>'
        "</tr>"
    )


def _marked(status: Status) -> str:
    return f'<span aria-hidden="true">{_MARKS[status]}</span> {escape(status.value)}'


def figure_html(picture: Picture, title: str) -> str:
    """Return a figure that can be enlarged; its bytes are embedded."""
    data = base64.b64encode(picture.content).decode()
    text = escape(picture.caption)
    alt = escape(f"{title}: {picture.caption}")
    return (
        f'<figure><button type="button" class="zoom" aria-label="Enlarge: {text}">'
        f'<img src="data:image/png;base64,{data}" alt="{alt}"></button>'
        f"<figcaption>{text}</figcaption></figure>"
    )


def definition_list(pairs: Mapping[str, Any]) -> str:
    """Return a list of names and values."""
    inside = "".join(
        f"<div><dt>{escape(str(name))}</dt><dd>{escape(_text(value))}</dd></div>"
        for name, value in pairs.items()
    )
    return f"<dl>{inside}</dl>"


def rows_table(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a collapsed table; long ones are truncated."""
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
    """Return the curves of the interactive plot: means over repetitions, by panel."""
    parts = split_panels(results.tables[curves.table], curves.panel)
    images = []
    for name, rows in parts.items():
        values = mean_curves(rows, curves.x, curves.y, curves.series)
        times = mean_curves(rows, curves.x, curves.seconds, curves.series) if curves.seconds else {}
        series = [
            {
                "name": method,
                "passes": [place for place, _ in points],
                "seconds": [seconds for _, seconds in times.get(method, [])],
                "values": [value for _, value in points],
            }
            for method, points in values.items()
        ]
        images.append({"name": name, "series": series})
    words = {"label": curves.label, "axis": axis_label(curves.x), "unit": curves.x}
    return {**words, "panels": images}


def embedded_json(value: Any) -> str:
    r"""Format as JSON that cannot end the script element around it.

    Examples
    --------
    >>> print(embedded_json({"name": "</script>"}))
    {"name": "\u003c/script>"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


@dataclass(frozen=True)
class ExperimentResult:
    """Specification of an experiment with its results and verdicts.

    Parameters
    ----------
    spec : ExperimentSpec
    size : str
    results : Results or None
        None where it was not run, or failed.
    verdicts : tuple of Verdict
    pictures : tuple of Picture
    failure : str
        Reason of a failure, or empty.
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
    """Yield every experiment in order, with the results from the folder; claims are evaluated."""
    for spec in _in_order() if known is None else known:
        results = ResultsFolder.of(out, size, spec.id).read()
        tables = None if results is None else results.tables
        yield ExperimentResult(
            spec,
            size,
            results,
            tuple(evaluate_claim(claim, size, tables) for claim in spec.claims),
            () if results is None else tuple(draw(spec, results)),
            (failures or {}).get(spec.id, ""),
        )


def _in_order() -> list[ExperimentSpec]:
    """Return the specs in the order of the registry; unregistered ones come last."""
    all_specs = specs()
    first = [name for name in EXPERIMENTS if name in all_specs]
    return [
        all_specs[name] for name in [*first, *(name for name in all_specs if name not in first)]
    ]


def as_json(results: Sequence[ExperimentResult]) -> str:
    """Format every claim of every experiment as JSON; independent of time."""
    document = [
        {
            "experiment": result.spec.id,
            "title": result.spec.title,
            "size": result.size,
            "paper": result.spec.paper,
            "figure": result.spec.figure,
            "data": None if result.results is None else result.results.document["data"],
            "versions": None if result.results is None else result.results.document["versions"],
            "failure": result.failure or None,
            "claims": [dict(verdict.as_row()) for verdict in result.verdicts],
        }
        for result in results
    ]
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


_ASSETS = files("ikpca_papers") / "assets"


def page(results: Sequence[ExperimentResult]) -> str:
    """Build the page; it contains everything and needs no network."""
    parts = {name: (_ASSETS / name).read_text(encoding="utf-8") for name in
             ("page.html", "page.css", "page.js")}  # fmt: skip
    return Template(parts["page.html"]).substitute(
        style=parts["page.css"],
        script=parts["page.js"],
        size=escape(results[0].size if results else ""),
        counts=_counts(results),
        contents=_contents(results),
        run=_run(results),
        sections="".join(_section(result) for result in results),
    )


def _counts(results: Sequence[ExperimentResult]) -> str:
    statuses = [verdict.status for result in results for verdict in result.verdicts]
    words = {Status.HOLDS: "hold", Status.FAILS: "do not hold", Status.NOT_RUN: "not run"}
    return "".join(
        f'<li class="{_CLASSES[status]}"><b>{statuses.count(status)}</b> {words[status]}</li>'
        for status in Status
    )


def _contents(results: Sequence[ExperimentResult]) -> str:
    lines = []
    for result in results:
        held = sum(verdict.status is Status.HOLDS for verdict in result.verdicts)
        judged = sum(verdict.status is not Status.NOT_RUN for verdict in result.verdicts)
        note = f"{held} of {judged} claims hold" if judged else "not run"
        name = escape(result.spec.id)
        lines.append(
            f'<li><a href="#{name}">{escape(result.spec.title)}</a> '
            f"<small>{name}: {note}</small></li>"
        )
    return "".join(lines)


def _run(results: Sequence[ExperimentResult]) -> str:
    """List versions, threads and seed of all experiments, without duplicates."""
    documents = [result.results.document for result in results if result.results is not None]
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
    return definition_list({**facts, "work in all parts": f"{work:.0f} s"})


def _section(result: ExperimentResult) -> str:
    spec = result.spec
    head = (
        f'<section id="{escape(spec.id)}"><h2>{escape(spec.title)}</h2>'
        f'<p class="source">{escape(spec.id)} · {escape(spec.paper)}, {escape(spec.figure)}</p>'
        f"<p>{escape(spec.about)}</p>"
    )
    stored = stored_verdicts("real")
    full = {claim: row for (experiment, claim), row in stored.items() if experiment == spec.id}
    claims = claims_table(result.verdicts, full)
    if result.results is None:
        why = result.failure or "This experiment was not run at this size."
        return f'{head}{claims}<p class="missing">{escape(why)}</p></section>'
    return f"{head}{claims}{_plots(result)}{_figures(result)}{_details(result)}</section>"


def _plots(result: ExperimentResult) -> str:
    if result.results is None or result.spec.curves is None:
        return ""
    data = embedded_json(plot_data(result.results, result.spec.curves))
    title = escape(result.spec.title)
    return (
        f'<div class="curves" data-title="{title}"><script type="application/json">{data}</script>'
        "<noscript>The interactive plot needs JavaScript; the figure below shows the same."
        "</noscript></div>"
    )


def _figures(result: ExperimentResult) -> str:
    inside = "".join(figure_html(picture, result.spec.title) for picture in result.pictures)
    return f'<div class="figures">{inside}</div>' if inside else ""


def _details(result: ExperimentResult) -> str:
    if result.results is None:
        return ""
    document = result.results.document
    data = document["data"]
    facts = {
        "data": f"{data['name']} ({data['origin']})",
        "data SHA-256": data["sha256"],
        **document["settings"],
        "seconds": sum(part["seconds"] for part in document["parts"]),
    }
    tables = "".join(rows_table(name, rows) for name, rows in document["tables"].items())
    return (
        f"<details><summary>data and settings</summary>{definition_list(facts)}</details>{tables}"
    )
