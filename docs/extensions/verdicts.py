"""Verdicts on the papers' claims, from the records of complete runs in ``ikpca_papers``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

from ikpca_papers.claims import KINDS, VERDICTS, Status

#: Sizes of the columns, and their headings.
SIZES = {"real": "the papers' data", "embedded": "embedded data"}
_MARKS = {Status.HOLDS.value: "✓", Status.FAILS.value: "✗", Status.NOT_RUN.value: "–"}
_CLASSES = {Status.HOLDS.value: "holds", Status.FAILS.value: "fails", Status.NOT_RUN.value: "idle"}


def setup(app: Any) -> dict[str, Any]:
    """Register ``verdicts`` (the experiments of a paper) and ``verdict-counts`` (all of them)."""
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
                f"{path.name} is missing: run ikpca-papers reproduce --{size} and copy its "
                f"claims.json to papers/src/ikpca_papers/verdicts/{size}.json."
            )
        experiments = json.loads(path.read_text(encoding="utf-8"))
        runs[size] = {one["experiment"]: one for one in experiments}
    return runs


class Verdicts(Directive):
    """Sections of the experiments whose paper starts with the argument."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        runs = _runs(self)
        chosen = [one for one in runs["real"].values()
                  if one["paper"].startswith(self.arguments[0])]  # fmt: skip
        if not chosen:
            raise self.error(f"no experiment is of a paper by {self.arguments[0]!r}")
        return [self._section(one, runs) for one in sorted(chosen, key=_place)]

    def _section(self, experiment: Any, runs: Any) -> nodes.section:
        name = experiment["experiment"]
        figure = experiment["figure"]
        heading = f"{figure[0].upper()}{figure[1:]}: {experiment['title']}"
        section = nodes.section(ids=[name], names=[name])
        self.state.document.note_explicit_target(section, section)
        section += nodes.title(heading, heading)
        section += _table(list(_claims(name, runs)))
        return section


def _place(experiment: Any) -> tuple[bool, str]:
    """Order by the first number of a figure, then of a table."""
    figure = experiment["figure"]
    return figure.startswith("table"), re.sub(r"\D", "", figure)


def _claims(name: str, runs: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield every claim with its verdicts by size."""
    by_size = {
        size: {claim["claim"]: claim for claim in run[name]["claims"]}
        for size, run in runs.items() if name in run
    }  # fmt: skip
    for claim, row in by_size["real"].items():
        yield row, {size: claims.get(claim) for size, claims in by_size.items()}


def _table(claims: list[tuple[Any, dict[str, Any]]]) -> nodes.table:
    table = nodes.table(classes=["verdicts", "colwidths-given"])
    group = nodes.tgroup(cols=4)
    group += [nodes.colspec(colwidth=width) for width in (36, 20, 22, 22)]
    head, body = nodes.thead(), nodes.tbody()
    head += _row([_entry([text]) for text in ("claim", "in the paper", *SIZES.values())])
    for claim, verdicts in claims:
        statement = [claim["sentence"], KINDS[claim["kind"]], claim["note"]]
        cells = [_entry(statement), _entry([claim["paper"]])]
        body += _row([*cells, *(_verdict(verdicts.get(size)) for size in SIZES)])
    group += [head, body]
    table += group
    return table


def _verdict(claim: Any) -> nodes.entry:
    status = Status.NOT_RUN.value if claim is None else claim["status"]
    ours = "" if claim is None or claim["status"] == Status.NOT_RUN.value else claim["ours"]
    entry = _entry([f"{_MARKS[status]} {status}", ours])
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
    """Table of the numbers of claims that hold, by kind and size, and the versions of the runs."""

    def run(self) -> list[nodes.Node]:
        runs = _runs(self)
        table = nodes.table(classes=["verdicts"])
        group = nodes.tgroup(cols=5)
        group += [nodes.colspec(colwidth=1) for _ in range(5)]
        head, body = nodes.thead(), nodes.tbody()
        statuses = [status.value for status in Status]
        head += _row([_entry([text]) for text in ("claims", "size", *statuses)])
        for kind, label in KINDS.items():
            for size, words in SIZES.items():
                counts = [str(_count(runs[size], kind, status)) for status in statuses]
                body += _row([_entry([text]) for text in (label, words, *counts)])
        group += [head, body]
        table += group
        text = _versions(runs)
        return [table, nodes.paragraph(text, text, classes=["provenance"])]


def _count(run: Any, kind: str, status: str) -> int:
    claims = [claim for one in run.values() for claim in one["claims"]]
    return sum(claim["kind"] == kind and claim["status"] == status for claim in claims)


def _versions(runs: Any) -> str:
    made = [one["versions"] for run in runs.values() for one in run.values() if one["versions"]]
    libraries = dict.fromkeys(
        f"{name} {number}" for versions in made for name, number in versions.items()
    )
    return f"Complete runs with {', '.join(libraries)}."
