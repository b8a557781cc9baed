"""Report page: self-contained, with escaped texts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from ikpca_papers import report
from ikpca_papers.claims import Claim, Curves, Drawing, Status, evaluate_claim, specs
from ikpca_papers.figures import Picture, draw
from ikpca_papers.report import ExperimentResult, as_json, page, record
from ikpca_papers.runner import Results

NASTY = "</script><img src=x onerror=alert(1)> & \"quoted\" 'too'"


CLAIMS = [
    Claim.model_validate(
        {"id": f"order-{number}", "class": "B", "setting": "pixels",
         "sentence": f"{kernel}: KHA-SMD is below KHA/et.",
         "paper": f"the order of figure {number}", "fails_if": "KHA-SMD has the larger error.",
         "from": {"table": "gains", "column": "excess_error", "where": {"kernel": kernel}},
         "decreasing": [{"method": "KHA/et"}, {"method": "KHA-SMD"}]}
    )
    for number, kernel in enumerate(("Gaussian", "dot product"))
]  # fmt: skip


@pytest.fixture(autouse=True)
def stored(monkeypatch):
    """Verdicts of the last complete run; empty by default."""
    verdicts = {}
    monkeypatch.setattr(report, "stored_verdicts", lambda size: verdicts)
    return verdicts


def results(method="KHA"):
    """Return results of an experiment with two kernels and two seeds."""
    rows = [
        {"kernel": kernel, "method": name, "seed": seed, "pass": number, "seconds": 0.1 * number,
         "excess_error": 1.0 / number**power}
        for kernel in ("Gaussian", "dot product")
        for name, power in ((method, 1), ("KHA/et", 3))
        for seed in (0, 1)
        for number in range(1, 11)
    ]  # fmt: skip
    gains = [
        {"kernel": kernel, "method": name, "excess_error": error}
        for kernel in ("Gaussian", "dot product")
        for name, error in (("KHA", 4.0), ("KHA/t", 3.0), ("KHA/et", 2.0), ("KHA-SMD", 5.0))
    ]
    return Results(
        {
            "settings": {"passes": 10, "note": method},
            "seed": 0,
            "data": {"name": "digits", "origin": "embedded", "sha256": "abc"},
            "versions": {"python": "3"},
            "sources": "0" * 64,
            "parts": [{"part": "one", "seconds": 1.5, "threads": 1}],
            "tables": {"curves": rows, "gains": gains},
        },
        {},
    )


def experiment_result(**changes):
    spec = specs()["usps-kpca"].model_copy(update={"claims": CLAIMS, **changes})
    actual = results()
    verdicts = tuple(evaluate_claim(claim, "quick", actual.tables) for claim in spec.claims)
    return ExperimentResult(spec, "quick", actual, verdicts, tuple(draw(spec, actual)))


class Reader(HTMLParser):
    """Collects elements, their attributes and texts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def result():
    return experiment_result()


def test_every_claim_is_shown_with_both_figures_and_a_verdict(result):
    html = page([result])
    text = " ".join(Reader(html).texts)
    for verdict in result.verdicts:
        assert verdict.claim.sentence in text
        assert verdict.claim.paper in text
        assert verdict.ours in text
    assert {verdict.status for verdict in result.verdicts} == {Status.FAILS}
    assert html.count('class="verdict fails"') == 2
    assert html.count('class="verdict idle"') == 2
    assert result.spec.finding in text
    assert result.summary in text


def test_the_verdict_of_the_full_size_stands_beside(result, stored):
    first, second = (("usps-kpca", claim.id) for claim in CLAIMS)
    stored[first] = {"status": "holds", "ours": "KHA/et 3.3e-4"}
    stored[second] = {"status": "does not hold", "ours": "KHA/et 7.7e-4"}
    html = page([result])
    assert html.count('class="verdict holds"') == 1
    assert html.count('class="verdict fails"') == 3
    assert "KHA/et 3.3e-4" in html
    assert "KHA/et 7.7e-4" in html


def test_page_loads_nothing_from_the_network(result):
    html = page([result])
    reader = Reader(html)
    sources = [image["src"] for image in reader.all("img")]
    assert sources
    assert all(source.startswith("data:image/") for source in sources)
    assert all(link["href"].startswith(("#", "data:")) for link in
               [*reader.all("a"), *reader.all("link")])  # fmt: skip
    assert not [script for script in reader.all("script") if "src" in script]
    # The namespace of SVG is a name, and not an address.
    assert set(re.findall(r"https?://[^\"' )]+", html)) == {"http://www.w3.org/2000/svg"}


def test_every_image_has_a_text(result):
    assert all(len(image["alt"]) > 10 for image in Reader(page([result])).all("img"))


def test_texts_are_escaped(result):
    nasty = dict.fromkeys(["sentence", "paper", "note", "title", "about", "figure"], NASTY)
    claim = result.spec.claims[0].model_copy(update=nasty)
    spec = result.spec.model_copy(update={"id": "x", **nasty})
    actual = results(method=NASTY)
    picture = Picture("a.png", b"", NASTY)
    verdict = replace(result.verdicts[0], claim=claim, ours=NASTY)
    spoilt = ExperimentResult(spec, NASTY, actual, (verdict,), (picture,))
    failed = ExperimentResult(spec, NASTY, None, (verdict,), (), NASTY)
    html = page([spoilt, failed])
    assert not [element for element in Reader(html).all("img") if "onerror" in element]
    assert "<img src=x" not in html
    assert len(Reader(html).all("script")) == len(Reader(page([result])).all("script"))


def test_curves_are_means_over_seeds_and_survive_embedding(result):
    html = page([result])
    inside = re.search(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    data = json.loads(inside.group(1))
    assert [panel["name"] for panel in data["panels"]] == ["Gaussian", "dot product"]
    series = data["panels"][0]["series"][1]
    assert series["name"] == "KHA/et"
    assert series["values"] == [1 / number**3 for number in range(1, 11)]
    assert series["seconds"] == pytest.approx([0.1 * number for number in range(1, 11)])


def test_skipped_claims_are_listed():
    spec = specs()["motion"]
    idle = ExperimentResult(
        spec, "quick", None, tuple(evaluate_claim(c, "quick", None) for c in spec.claims), ()
    )
    text = " ".join(Reader(page([idle])).texts)
    assert spec.title in text
    assert "This experiment was not run at this size." in text


def test_verdict_of_a_claim_that_holds_at_another_setting(result):
    other = {"setting": "ρ0 = 0", "decreasing": [{"method": "KHA/t"}, {"method": "KHA/et"}]}
    claim = Claim.model_validate(
        {**result.spec.claims[0].model_dump(by_alias=True, exclude_none=True), "elsewhere": other}
    )
    verdict = evaluate_claim(claim, "quick", result.results.tables)
    assert (verdict.status, verdict.setting) == (Status.ELSEWHERE, "ρ0 = 0")
    both = replace(result, verdicts=(verdict, result.verdicts[1]))
    assert both.summary.startswith(
        "1 of 2 claims hold, only at another setting (ρ0 = 0). Does not hold: dot product"
    )
    assert 'class="verdict elsewhere"' in page([both])


def test_a_record_changes_only_the_entries_of_experiments_that_ran(result, tmp_path):
    path = tmp_path / "real.json"
    record(path, [experiment_result()])
    first = json.loads(path.read_text(encoding="utf-8"))
    idle = ExperimentResult(specs()["motion"], "quick", None, (), ())
    record(path, [idle])
    assert json.loads(path.read_text(encoding="utf-8")) == first
    ran = replace(result, spec=specs()["motion"], verdicts=())
    record(path, [ran])
    assert [one["experiment"] for one in json.loads(path.read_text(encoding="utf-8"))] == [
        "usps-kpca", "motion",
    ]  # fmt: skip
    assert set(first[0]["claims"][0]) == {"claim", "status", "class", "setting", "ours"}


def test_page_and_json_are_the_same_for_the_same_results(result):
    assert page([result]) == page([experiment_result()])
    assert as_json([result]) == as_json([experiment_result()])
    claims = json.loads(as_json([result]))[0]["claims"]
    assert [claim["status"] for claim in claims] == ["does not hold"] * 2


def test_a_figure_that_nothing_draws_is_refused(result):
    spec = result.spec.model_copy(update={"drawings": [Drawing(draw="sculpture", caption="A")]})
    with pytest.raises(ValueError, match=r"usps-kpca.toml: nothing draws 'sculpture'"):
        list(draw(spec, results()))


def test_curves_without_repetitions_or_panels():
    curves = Curves(table="curves", x="pass", y="excess_error", series="method", label="E")
    spec = specs()["usps-kpca"].model_copy(update={"curves": curves})
    picture = next(draw(spec, results()))
    assert picture.content.startswith(b"\x89PNG")
