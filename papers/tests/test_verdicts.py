"""Stored verdicts of complete runs, and the page that shows them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from ikpca_papers.claims import VERDICTS, specs

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "claims.md"
KEPT = ("real", "embedded")
#: Numbers of the figures and tables of each paper.
CONTENTS = {
    "Kim": {"figure": 7, "table": 0},
    "Günter": {"figure": 4, "table": 0},
    "Chin": {"figure": 4, "table": 2},
}
#: Texts of a claim that its verdict repeats.
TEXTS = ("sentence", "paper", "kind", "fails_if", "note")


def kept(size):
    return json.loads((VERDICTS / f"{size}.json").read_text(encoding="utf-8"))


def claims(size):
    """All claims of a file, with the names of their experiments."""
    return [(one["experiment"], claim) for one in kept(size) for claim in one["claims"]]


@pytest.mark.parametrize("size", KEPT)
def test_the_verdicts_are_those_of_the_claims(size):
    written = {(name, row["claim"]): [row[text] for text in TEXTS] for name, row in claims(size)}
    assert written == {
        (spec.id, claim.id): [getattr(claim, text) for text in TEXTS]
        for spec in specs().values()
        for claim in spec.claims
    }
    assert {one["size"] for one in kept(size)} == {size}


@pytest.mark.parametrize("size", KEPT)
def test_a_claim_that_fails_has_a_reason(size):
    failing = [(name, row) for name, row in claims(size) if row["status"] == "does not hold"]
    assert [f"{name}/{row['claim']}" for name, row in failing if not row["note"]] == []


@pytest.mark.parametrize("size", KEPT)
def test_the_runs_were_complete(size):
    judged = {(spec.id, claim.id): size in claim.sizes
              for spec in specs().values() for claim in spec.claims}  # fmt: skip
    assert judged == {
        (name, row["claim"]): row["status"] != "not run" for name, row in claims(size)
    }


@pytest.mark.parametrize("paper", CONTENTS)
def test_every_figure_and_table_of_a_paper_has_an_experiment(paper):
    result = {
        (kind, int(number))
        for one in kept("real") if one["paper"].startswith(paper)
        for kind, numbers in re.findall(r"(figure|table)s? ([\d, and]+)", one["figure"])
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


def test_the_page_shows_every_verdict(extension, tmp_path):
    text, warnings = build(tmp_path)
    assert warnings == ""
    lines = [line.strip() for line in text.splitlines()]
    for size in KEPT:
        for one in kept(size):
            assert any(line.endswith(f": {one['title']}") for line in lines)
        rows = [row for _, row in claims(size)]
        for row in rows:
            shown = [row["sentence"], row["paper"], row["note"]]
            shown += [row["ours"]] if row["status"] != "not run" else []
            assert {*filter(None, shown)} <= {*lines}
    for mark, status in (("✓", "holds"), ("✗", "does not hold")):
        judged = [row for size in KEPT for _, row in claims(size) if row["status"] == status]
        assert lines.count(f"{mark} {status}") == len(judged)


def test_a_missing_file_is_named(extension, tmp_path, monkeypatch):
    monkeypatch.setattr(extension, "VERDICTS", tmp_path / "nowhere")
    _, warnings = build(tmp_path)
    assert "real.json is missing: run ikpca-papers reproduce --real" in warnings
