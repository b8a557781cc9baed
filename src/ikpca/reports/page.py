"""The page: what was run, every claim, every figure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from ikpca.experiments.verdicts import Status
from ikpca.reports.chapters import Chapter
from ikpca.reports.fragments import claims_table, definitions, figure, rows_table
from ikpca.reports.plot_data import embedded_json, plot_data

__all__ = ["page"]

_ASSETS = files("ikpca.reports") / "assets"


def page(told: Sequence[Chapter]) -> str:
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


def _counts(told: Sequence[Chapter]) -> str:
    statuses = [verdict.status for chapter in told for verdict in chapter.verdicts]
    words = {Status.HOLDS: "hold", Status.FAILS: "do not hold", Status.NOT_RUN: "not run"}
    classes = {Status.HOLDS: "holds", Status.FAILS: "fails", Status.NOT_RUN: "idle"}
    return "".join(
        f'<li class="{classes[status]}"><b>{statuses.count(status)}</b> {words[status]}</li>'
        for status in Status
    )


def _contents(told: Sequence[Chapter]) -> str:
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


def _run(told: Sequence[Chapter]) -> str:
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


def _chapter(chapter: Chapter) -> str:
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


def _plots(chapter: Chapter) -> str:
    if chapter.results is None or chapter.spec.curves is None:
        return ""
    data = embedded_json(plot_data(chapter.results, chapter.spec.curves))
    title = escape(chapter.spec.title)
    return (
        f'<div class="curves" data-title="{title}"><script type="application/json">{data}</script>'
        "<noscript>The interactive plot needs JavaScript; the figure below shows the same."
        "</noscript></div>"
    )


def _figures(chapter: Chapter) -> str:
    inside = "".join(figure(picture, chapter.spec.title) for picture in chapter.pictures)
    return f'<div class="figures">{inside}</div>' if inside else ""


def _details(chapter: Chapter) -> str:
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
