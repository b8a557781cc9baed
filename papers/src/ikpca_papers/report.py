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
    CLASSES,
    Curves,
    ExperimentSpec,
    Paper,
    Status,
    Verdict,
    evaluate_claim,
    papers,
    specs,
    stored_verdicts,
)
from ikpca_papers.figures.curves import axis_label, mean_curves, split_panels
from ikpca_papers.figures.drawing import Picture, draw
from ikpca_papers.runner import EXPERIMENTS, Results, ResultsFolder, write_file

_MARKS = {
    Status.HOLDS: "✓", Status.ELSEWHERE: "✓", Status.FAILS: "✗", Status.NOT_RUN: "–",
}  # fmt: skip
_STYLES = {
    Status.HOLDS: "holds", Status.ELSEWHERE: "elsewhere", Status.FAILS: "fails",
    Status.NOT_RUN: "idle",
}  # fmt: skip
_HEADS = ("claim", "paper", "this run", "the papers' data")
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
    claim = verdict.claim
    remarks = [
        f"Class {claim.reason}: {CLASSES[claim.reason]}." if claim.reason else "",
        claim.note,
    ]
    notes = "".join(f'<small class="note">{escape(one)}</small>' for one in remarks if one)
    cells = [
        (verdict.status, verdict.ours, verdict.setting),
        (Status(full.get("status", "not run")), full.get("ours", ""), full.get("setting", "")),
    ]
    return (
        f'<tr><td data-label="claim">{escape(claim.sentence)}{notes}</td>'
        f'<td data-label="paper">{escape(claim.paper)}</td>'
        + "".join(_outcome(name, *cell) for name, cell in zip(_HEADS[2:], cells, strict=True))
        + "</tr>"
    )


def _outcome(name: str, status: Status, ours: str, setting: str) -> str:
    texts = [] if status is Status.NOT_RUN else [ours, setting]
    inside = "".join(f'<small class="note">{escape(text)}</small>' for text in texts if text)
    mark = f'<span aria-hidden="true">{_MARKS[status]}</span> {escape(status.value)}'
    return f'<td data-label="{escape(name)}" class="verdict {_STYLES[status]}">{mark}{inside}</td>'


def numbers_table(numbers: Sequence[Mapping[str, str]]) -> str:
    """Return the paper's numbers beside ours."""
    heads = ("", "paper", "as printed", "beside it")
    columns = ("name", "paper", "as_printed", "variant")
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(row[column])}</td>" for column in columns) + "</tr>"
        for row in numbers
    )
    names = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        f'<div class="wide"><table class="numbers"><thead><tr>{names}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


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


def rows_table(name: str, rows: Sequence[Mapping[str, Any]], *, shown: bool = False) -> str:
    """Return a table, collapsed unless it is ``shown``; long ones are truncated."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(_row(row, columns) for row in rows[:_SHOWN])
    cut = f"<p>{_SHOWN} of {len(rows)} rows; all are in {escape(name)}.csv.</p>"
    return (
        f"<details{' open' if shown else ''}>"
        f"<summary>table {escape(name)}, {len(rows)} rows</summary>"
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

    @property
    def numbers(self) -> list[dict[str, str]]:
        """The paper's numbers beside ours."""
        tables = {} if self.results is None else self.results.tables
        rows = [number.row(tables) for number in self.spec.numbers]
        return [row for row in rows if row["as_printed"] != "–"]

    @property
    def summary(self) -> str:
        """The verdict in one sentence."""
        if self.failure:
            return f"Failed: {self.failure}"
        judged = [one for one in self.verdicts if one.status is not Status.NOT_RUN]
        if not judged:
            return "Not run."
        fails = [one.claim.sentence for one in judged if one.status is Status.FAILS]
        elsewhere = [one.setting for one in judged if one.status is Status.ELSEWHERE]
        held = len(judged) - len(fails)
        text = f"{held} of {len(judged)} claims hold" if fails else _all_hold(held)
        if elsewhere:
            settings = "; ".join(dict.fromkeys(elsewhere))
            some = "only" if len(elsewhere) == held else f"{len(elsewhere)} of them only"
            text += f", {some} at another setting ({settings})"
        failing = f" Does not hold: {' '.join(fails)}" if fails else ""
        return f"{text}.{failing}"

    def as_record(self) -> dict[str, Any]:
        """Return what is stored of a complete run; independent of time."""
        document = {} if self.results is None else self.results.document
        return {
            "experiment": self.spec.id,
            "size": self.size,
            "data": document.get("data"),
            "versions": document.get("versions"),
            "failure": self.failure or None,
            "verdict": self.summary,
            "numbers": self.numbers,
            "claims": [verdict.as_row() for verdict in self.verdicts],
        }


def _all_hold(number: int) -> str:
    return {1: "The claim holds", 2: "Both claims hold"}.get(number, f"All {number} claims hold")


def experiment_results(
    out: Path,
    size: str,
    failures: Mapping[str, str] | None = None,
    known: Sequence[ExperimentSpec] | None = None,
) -> Iterator[ExperimentResult]:
    """Yield every experiment in order, with the results from the folder; claims are evaluated."""
    for spec in [specs()[name] for name in EXPERIMENTS] if known is None else known:
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


def as_json(results: Sequence[ExperimentResult]) -> str:
    """Format the records of all experiments as JSON."""
    return _dump([result.as_record() for result in results])


def _dump(records: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(records, indent=1, ensure_ascii=False) + "\n"


def record(path: Path, results: Sequence[ExperimentResult]) -> None:
    """Replace the records of the experiments that were run; the others stay as they are."""
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    kept = {one["experiment"]: one for one in stored}
    kept |= {one.spec.id: one.as_record() for one in results if one.results is not None}
    write_file(path, _dump([kept[name] for name in EXPERIMENTS if name in kept]))


_ASSETS = files("ikpca_papers") / "assets"


def page(results: Sequence[ExperimentResult]) -> str:
    """Build the page; it contains everything and needs no network."""
    parts = {name: (_ASSETS / name).read_text(encoding="utf-8") for name in
             ("page.html", "page.css", "page.js")}  # fmt: skip
    return Template(parts["page.html"]).substitute(
        style=parts["page.css"],
        script=parts["page.js"],
        size=escape(results[0].size if results else ""),
        findings="".join(_findings(paper) for paper in papers()),
        contents="".join(_content_line(result) for result in results),
        run=_run(results),
        sections="".join(_section(result) for result in results),
    )


def _findings(paper: Paper) -> str:
    lines = "".join(f"<li>{escape(finding.text)}</li>" for finding in paper.findings)
    return f"<h3>{escape(paper.name)}: <i>{escape(paper.title)}</i></h3><ul>{lines}</ul>"


def _content_line(result: ExperimentResult) -> str:
    spec = result.spec
    return (
        f'<li><a href="#{escape(spec.id)}">{escape(heading(spec))}</a> '
        f"<small>{escape(result.summary)}</small></li>"
    )


def heading(spec: ExperimentSpec) -> str:
    """Return figure and title of an experiment."""
    return f"{spec.paper.split(',')[0]} {spec.paper[-4:]}, {spec.figure}: {spec.title}"


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
        f'<section id="{escape(spec.id)}"><h2>{escape(heading(spec))}</h2>'
        f'<p class="verdict-sentence">{escape(result.summary)}</p>'
        f'<p class="source">On the paper\'s data, full size: {escape(spec.finding)}</p>'
    )
    if result.results is None:
        why = result.failure or "This experiment was not run at this size."
        return f'{head}<p class="missing">{escape(why)}</p>{_claims(result)}</section>'
    numbers = numbers_table(result.numbers) if result.numbers else ""
    return (
        f"{head}{_figures(result)}{numbers}{_shown_tables(result)}{_claims(result)}"
        f"{_plots(result)}{_details(result)}</section>"
    )


def _claims(result: ExperimentResult) -> str:
    stored = stored_verdicts("real")
    full = {claim: row for (name, claim), row in stored.items() if name == result.spec.id}
    table = claims_table(result.verdicts, full)
    return f"<details><summary>claims, {len(result.verdicts)}</summary>{table}</details>"


def _shown_tables(result: ExperimentResult) -> str:
    tables = {} if result.results is None else result.results.tables
    return "".join(
        rows_table(name, tables[name], shown=True) for name in result.spec.shown if name in tables
    )


def _plots(result: ExperimentResult) -> str:
    if result.results is None or result.spec.curves is None:
        return ""
    data = embedded_json(plot_data(result.results, result.spec.curves))
    title = escape(result.spec.title)
    return (
        f'<details open><summary>interactive curves</summary><div class="curves" '
        f'data-title="{title}"><script type="application/json">{data}</script>'
        "<noscript>The interactive plot needs JavaScript; the figure above shows the same."
        "</noscript></div></details>"
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
    tables = "".join(rows_table(name, rows) for name, rows in document["tables"].items()
                     if name not in result.spec.shown)  # fmt: skip
    return (
        f"<details><summary>data and settings</summary><p>{escape(result.spec.about)}</p>"
        f"{definition_list(facts)}</details>"
        f"<details><summary>all tables</summary>{tables}</details>"
    )
