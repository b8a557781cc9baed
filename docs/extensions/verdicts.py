"""Verdicts on the papers' claims, from the records of complete runs in ``ikpca_papers``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

from ikpca_papers.claims import CLASSES, VERDICTS, ExperimentSpec, Status, papers, specs
from ikpca_papers.report import heading

#: Sizes of the columns, and their headings.
SIZES = {"real": "the papers' data", "embedded": "embedded data"}
_MARKS = {
    Status.HOLDS.value: "✓", Status.ELSEWHERE.value: "✓", Status.FAILS.value: "✗",
    Status.NOT_RUN.value: "–",
}  # fmt: skip
_CLASSES = {
    Status.HOLDS.value: "holds", Status.ELSEWHERE.value: "holds", Status.FAILS.value: "fails",
    Status.NOT_RUN.value: "idle",
}  # fmt: skip


def setup(app: Any) -> dict[str, Any]:
    """Register ``findings``, ``verdicts`` (of a paper) and ``verdict-counts`` (of all)."""
    app.add_directive("findings", Findings)
    app.add_directive("verdicts", Verdicts)
    app.add_directive("verdict-counts", Counts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _runs(directive: Directive) -> dict[str, Any]:
    """Return the experiments of every size by id."""
    runs = {}
    for size in SIZES:
        path = VERDICTS / f"{size}.json"
        directive.state.document.settings.env.note_dependency(str(path))
        if not path.exists():
            raise directive.error(
                f"{path.name} is missing: run ikpca-papers reproduce --{size} --record "
                f"papers/src/ikpca_papers/verdicts/{size}.json."
            )
        experiments = json.loads(path.read_text(encoding="utf-8"))
        runs[size] = {one["experiment"]: one for one in experiments}
    return runs


class Findings(Directive):
    """Sentences on every paper."""

    def run(self) -> list[nodes.Node]:
        found: list[nodes.Node] = []
        for paper in papers():
            name = f"{paper.name}, {paper.title}"
            found.append(nodes.paragraph("", "", nodes.strong(name, name)))
            points = nodes.bullet_list()
            for finding in paper.findings:
                points += nodes.list_item("", nodes.paragraph(finding.text, finding.text))
            found.append(points)
        return found


class Verdicts(Directive):
    """Sections of the experiments whose paper starts with the argument."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        runs = _runs(self)
        chosen = [one for one in specs().values() if one.paper.startswith(self.arguments[0])]
        if not chosen:
            raise self.error(f"no experiment is of a paper by {self.arguments[0]!r}")
        return [self._section(one, runs) for one in sorted(chosen, key=_place)]

    def _section(self, spec: ExperimentSpec, runs: Any) -> nodes.section:
        section = nodes.section(ids=[spec.id], names=[spec.id])
        self.state.document.note_explicit_target(section, section)
        title = heading(spec)
        section += nodes.title(title, title)
        real = runs["real"][spec.id]
        sentence = nodes.paragraph("", "", nodes.strong(spec.finding, spec.finding))
        section += [sentence, nodes.paragraph(real["verdict"], real["verdict"])]
        if real["numbers"]:
            section += _numbers(real["numbers"])
        section += nodes.raw("", "<details><summary>Claims and settings</summary>", format="html")
        section += nodes.paragraph(spec.about, spec.about)
        section += _table(spec, runs)
        section += nodes.raw("", "</details>", format="html")
        return section


def _place(spec: ExperimentSpec) -> tuple[bool, str]:
    """Order by the first number of a figure, then of a table."""
    return spec.figure.startswith("table"), re.sub(r"\D", "", spec.figure)


def _make_table(widths: Sequence[int], heads: Sequence[str], rows: Sequence[nodes.row]) -> Any:
    table = nodes.table(classes=["verdicts", "colwidths-given"])
    group = nodes.tgroup(cols=len(widths))
    group += [nodes.colspec(colwidth=width) for width in widths]
    head, body = nodes.thead(), nodes.tbody()
    head += _row([_entry([text]) for text in heads])
    body += list(rows)
    group += [head, body]
    table += group
    return table


def _numbers(numbers: Sequence[Mapping[str, str]]) -> nodes.table:
    columns = ("name", "paper", "as_printed", "variant")
    rows = [_row([_entry([row[column]]) for column in columns]) for row in numbers]
    return _make_table((46, 22, 16, 16), ("", "in the paper", "as printed", "beside it"), rows)


def _table(spec: ExperimentSpec, runs: Any) -> nodes.table:
    verdicts = {
        size: {row["claim"]: row for row in run[spec.id]["claims"]} for size, run in runs.items()
    }
    rows = []
    for claim in spec.claims:
        reason = f"Class {claim.reason}: {CLASSES[claim.reason]}." if claim.reason else ""
        statement = _entry([claim.sentence, reason, claim.note])
        sizes = [_verdict(verdicts[size].get(claim.id)) for size in SIZES]
        rows.append(_row([statement, _entry([claim.paper]), *sizes]))
    return _make_table((36, 20, 22, 22), ("claim", "in the paper", *SIZES.values()), rows)


def _verdict(row: Any) -> nodes.entry:
    status = Status.NOT_RUN.value if row is None else row["status"]
    texts = [f"{_MARKS[status]} {status}"]
    if row is not None and status != Status.NOT_RUN.value:
        texts += [row["ours"], row["setting"], "earlier run" if row.get("earlier") else ""]
    entry = _entry(texts)
    entry["classes"] = [_CLASSES[status]]
    return entry


def _entry(texts: Iterable[str]) -> nodes.entry:
    """Return a cell: the first text, and the others as remarks below it."""
    entry = nodes.entry()
    for number, text in enumerate(texts):
        if text:
            entry += nodes.paragraph(text, text, classes=["remark"] if number else [])
    return entry


def _row(entries: Iterable[nodes.entry]) -> nodes.row:
    row = nodes.row()
    row += list(entries)
    return row


class Counts(Directive):
    """Table of the numbers of claims by status and class, and the versions of the runs."""

    def run(self) -> list[nodes.Node]:
        runs = _runs(self)
        statuses = [status.value for status in Status]
        heads = ("size", *statuses, *(f"class {name}" for name in CLASSES))
        rows = []
        for size, words in SIZES.items():
            claims = [claim for one in runs[size].values() for claim in one["claims"]]
            counts = [sum(one["status"] == status for one in claims) for status in statuses]
            judged = [one for one in claims if one["status"] != Status.NOT_RUN.value]
            counts += [sum(one["class"] == name for one in judged) for name in CLASSES]
            rows.append(_row([_entry([text]) for text in (words, *map(str, counts))]))
        text = _versions(runs)
        return [_make_table([1] * len(heads), heads, rows),
                nodes.paragraph(text, text, classes=["provenance"])]  # fmt: skip


def _versions(runs: Any) -> str:
    made = [one["versions"] for run in runs.values() for one in run.values() if one["versions"]]
    libraries = dict.fromkeys(
        f"{name} {number}" for versions in made for name, number in versions.items()
    )
    return f"Complete runs with {', '.join(libraries)}."
