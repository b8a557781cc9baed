"""Stored verdicts of complete runs, and the page that shows them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from ikpca_papers.claims import VERDICTS, papers, specs

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "reproduction.md"
KEPT = ("real", "embedded")
#: Numbers of the figures and tables of each paper.
CONTENTS = {
    "Kim": {"figure": 7, "table": 0},
    "Günter": {"figure": 4, "table": 0},
    "Chin": {"figure": 4, "table": 2},
}


def kept(size):
    return json.loads((VERDICTS / f"{size}.json").read_text(encoding="utf-8"))


def claims(size):
    """All claims of a file, with the names of their experiments."""
    return [(one["experiment"], claim) for one in kept(size) for claim in one["claims"]]


@pytest.mark.parametrize("size", KEPT)
def test_the_verdicts_are_those_of_the_claims(size):
    written = {(name, row["claim"]): row["class"] for name, row in claims(size)}
    assert written == {
        (spec.id, claim.id): claim.reason for spec in specs().values() for claim in spec.claims
    }
    assert {one["size"] for one in kept(size)} == {size}


def test_a_claim_that_fails_on_the_papers_data_has_a_class_and_a_reason():
    given = {(spec.id, claim.id): claim for spec in specs().values() for claim in spec.claims}
    failing = [key for name, row in claims("real") if row["status"] != "holds"
               if row["status"] != "not run" for key in [(name, row["claim"])]]  # fmt: skip
    assert [key for key in failing if not (given[key].reason and given[key].setting)] == []


def test_findings_name_claims():
    known = {f"{spec.id}/{claim.id}" for spec in specs().values() for claim in spec.claims}
    assert all(known.issuperset(finding.claims)
               for paper in papers() for finding in paper.findings)  # fmt: skip
    assert [len(paper.findings) for paper in papers()] == [5, 5, 5]


@pytest.mark.parametrize("paper", CONTENTS)
def test_every_figure_and_table_of_a_paper_has_an_experiment(paper):
    result = {
        (kind, int(number))
        for one in specs().values() if one.paper.startswith(paper)
        for kind, numbers in re.findall(r"(figure|table)s? ([\d, and]+)", one.figure)
        for number in re.findall(r"\d+", numbers)
    }  # fmt: skip
    assert result == {
        (kind, number)
        for kind, count in CONTENTS[paper].items()
        for number in range(1, count + 1)
    }  # fmt: skip


@pytest.fixture
def extension(monkeypatch):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    import verdicts

    yield verdicts
    del sys.modules["verdicts"]


def build(folder):
    """Build the page; return its text and the warnings."""
    from io import StringIO

    from sphinx.application import Sphinx

    (folder / "index.md").write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    settings = {"extensions": ["myst_parser", "verdicts"], "myst_enable_extensions": ["deflist"],
                "smartquotes": False}  # fmt: skip
    warnings = StringIO()
    app = Sphinx(folder, None, folder / "out", folder / "trees", "pseudoxml", settings,
                 status=None, warning=warnings)  # fmt: skip
    app.build()
    return (folder / "out" / "index.pseudoxml").read_text(encoding="utf-8"), warnings.getvalue()


def test_the_page_shows_every_figure_and_verdict(extension, tmp_path):
    text, warnings = build(tmp_path)
    assert warnings == ""
    lines = {line.strip() for line in text.splitlines()}
    for spec in specs().values():
        assert any(line.endswith(f": {spec.title}") for line in lines)
        assert {spec.finding, *(claim.sentence for claim in spec.claims)} <= lines
    rows = [row for size in KEPT for _, row in claims(size) if row["status"] != "not run"]
    assert {row["ours"] for row in rows} <= lines
    assert {finding.text for paper in papers() for finding in paper.findings} <= lines


def test_a_missing_file_is_named(extension, tmp_path, monkeypatch):
    monkeypatch.setattr(extension, "VERDICTS", tmp_path / "nowhere")
    _, warnings = build(tmp_path)
    assert "real.json is missing: run ikpca-papers reproduce --real" in warnings
