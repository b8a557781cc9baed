"""Spec files, and errors for invalid ones."""

from __future__ import annotations

import re

import pytest

from ikpca.errors import InvalidInput
from ikpca_papers.claims import SIZES, find_spec, read_spec, specs
from ikpca_papers.inputs import VIEWS, is_embedded
from ikpca_papers.runner import EXPERIMENTS

#: Of the table of experiments; a row that is missing is a paper that is not reproduced.
IDS = {
    "toy-contours", "usps-kpca", "lena-multipatch", "usps-clustering", "motion", "online-toy",
    "face-hyperresolution", "natural-components", "natural-hyperresolution", "incremental-toy",
    "manifolds", "kernel-eigenfaces",
}  # fmt: skip

GOOD = """
id = "one"
title = "T"
about = "A"
paper = "P"
figure = "F"
finding = "H"
[sizes.quick]
data = "digits"
[sizes.embedded]
data = "digits"
[sizes.real]
data = "usps"
[[claims]]
id = "c"
sentence = "S"
paper = "1"
fails_if = "F"
from = { table = "t", column = "c" }
is = ">"
than = 0
"""
CLAIM = GOOD[GOOD.index("[[claims]]") :]

FAULTS = {
    "no TOML": ("id = ", "is not TOML"),
    "unknown key": ('color = "red"\n' + GOOD, "color is 'red': Extra inputs are not permitted"),
    "missing key": (GOOD.replace('title = "T"\n', ""), "title is .*: Field required"),
    "number for text": (GOOD.replace('"T"', "3"), "title is 3: .* valid string"),
    "other id": (GOOD.replace('id = "one"', 'id = "two"'), "has the id 'two'"),
    "no claims": ("claims = []\n" + GOOD.replace(CLAIM, ""), r"claims is \[\]: .*at least 1"),
    "claims missing": (GOOD.replace(CLAIM, ""), "claims is .*: Field required"),
    "claim twice": (GOOD + CLAIM, "claims is .*: .*give every claim its own id"),
    "size missing": (GOOD.replace('[sizes.real]\ndata = "usps"\n', ""), "sizes is .*at least 3"),
    "no data": (GOOD.replace('data = "usps"', "rows = 1"), "sizes.real.data is .*: Field required"),
    "claim without form": (GOOD.replace('is = ">"\nthan = 0\n', ""), "claims.0 is .*is and than"),
    "claim that cannot fail": (
        GOOD.replace('fails_if = "F"\n', ""),
        "claims.0.fails_if is .*required",
    ),
    "no word on failure": (
        GOOD.replace('fails_if = "F"', 'fails_if = ""'),
        "claims.0.fails_if is ''",
    ),
    "unknown comparison": (
        GOOD.replace('">"', '"!="'),
        r"claims.0.is is '!=': Input should be '>='",
    ),
    "unknown take": (GOOD.replace('"c" }', '"c", take = "mode" }'), "claims.0.from.take is 'mode'"),
    "unknown key of a claim": (GOOD + "eval = 1\n", "claims.0.eval is 1: Extra inputs"),
    "bound of text": (GOOD.replace("than = 0", 'than = "x"'), "claims.0.than.float is 'x'"),
    "order of one": (
        GOOD.replace('is = ">"\nthan = 0', "decreasing = [{ a = 1 }]"),
        "claims.0.decreasing is .*at least 2 items",
    ),
    "unknown size": (GOOD + 'sizes = ["huge"]\n', "claims.0.sizes.0 is 'huge'"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_errors_name_the_file(tmp_path, fault):
    text, message = FAULTS[fault]
    path = tmp_path / "one.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        read_spec(path)
    sentence = str(refused.value)
    assert sentence.startswith("one.toml: ")
    assert re.search(message, sentence), sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_valid_spec_is_read(tmp_path):
    path = tmp_path / "one.toml"
    path.write_text(GOOD, encoding="utf-8")
    (claim,) = read_spec(path).claims
    assert claim.check({"t": [{"c": 1}]}) == (True, "1")


def test_every_experiment_of_the_papers_has_a_spec():
    assert set(specs()) == IDS


def test_every_registered_experiment_has_a_spec():
    assert set(EXPERIMENTS) <= IDS


@pytest.mark.parametrize("name", sorted(IDS))
def test_small_sizes_need_no_downloads(name):
    spec = specs()[name]
    assert all(is_embedded(spec.sizes[size].data) for size in SIZES[:2])
    assert spec.sizes["real"].data in VIEWS


@pytest.mark.parametrize(
    ("typed", "meant"), [("usps-pca", "usps-kpca"), ("Motion", "motion"), ("faces", None)]
)
def test_unknown_experiment_suggests_the_nearest(typed, meant):
    with pytest.raises(
        InvalidInput, match=re.escape(f"there is no experiment {typed!r}")
    ) as raised:
        find_spec(typed)
    if meant is not None:
        assert f"did you mean {meant!r}" in str(raised.value)
