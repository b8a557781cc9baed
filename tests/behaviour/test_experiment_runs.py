"""Experiments in parts: what is kept, what is run again, what is written."""

from __future__ import annotations

import csv
import json
from functools import partial

import numpy as np
import pytest

from ikpca.experiments.parts import Experiment, Findings, Part
from ikpca.experiments.results_folder import ResultsFolder
from ikpca.experiments.runner import prepare, run_jobs
from ikpca.experiments.specification import read_spec
from ikpca.experiments.verdicts import Status, judge

SPEC = """
id = "fake"
title = "Squares"
about = "Squares of numbers."
paper = "nobody"
figure = "none"

[settings]
numbers = [1, 2, 3]

[sizes.quick]
data = "generated"
[sizes.embedded]
data = "generated"
numbers = [1, 2, 3, 4]
[sizes.real]
data = "usps"

[[claims]]
id = "true"
sentence = "The largest square is 9."
paper = "9"
from = { table = "squares", column = "square", take = "max" }
is = ">="
than = 9

[[claims]]
id = "false"
sentence = "Squares fall."
paper = "1 > 9"
from = { table = "squares", column = "square" }
decreasing = [{ number = 1 }, { number = 3 }]

[[claims]]
id = "absent"
sentence = "Cubes are large."
paper = "27"
from = { table = "cubes", column = "cube" }
is = ">"
than = 1
"""


def square(number, diary, broken):
    """Notes that it was run; the second number fails as long as the file ``broken`` is there."""
    with diary.open("a") as lines:
        lines.write(f"{number}\n")
    if number == 2 and broken.exists():
        broken.unlink()
        raise KeyboardInterrupt if broken.name == "interrupt" else ValueError("two is odd")
    rows = [{"number": number, "square": np.float64(number**2), "nothing": float("nan")}]
    return Findings({"squares": rows}, {"picture": np.full((2, 2), number)})


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "fake.toml"
    path.write_text(SPEC, encoding="utf-8")
    return read_spec(path)


@pytest.fixture
def job(tmp_path, spec):
    """A function that plans the experiment into a folder of the given name."""

    def planned(out="out", size="quick", seed=0, broken="nothing"):
        def plan(request):
            return [
                Part(f"number {n}", partial(square, n, tmp_path / "diary", tmp_path / broken))
                for n in request.settings["numbers"]
            ]

        def summary(tables):
            return {"total": [{"sum": sum(row["square"] for row in tables["squares"])}]}

        experiments = {"fake": Experiment(plan, summary)}
        return prepare("fake", size, tmp_path / out, None, seed, experiments, spec)

    return planned


def diary(tmp_path):
    return [int(line) for line in (tmp_path / "diary").read_text().split()]


def written(job):
    return {path.name: path.read_bytes() for path in sorted(job.folder.folder.glob("*.csv"))}


def test_tables_are_written_as_csv_and_json_with_what_they_were_made_with(job):
    asked = job(seed=4)
    assert run_jobs([asked]) == {}
    found = asked.folder.read()
    assert [row["square"] for row in found.tables["squares"]] == [1, 4, 9]
    assert found.tables["total"] == [{"sum": 14}]
    lines = csv.DictReader((asked.folder.folder / "squares.csv").read_text().splitlines())
    assert [float(line["square"]) for line in lines] == [1, 4, 9]
    document = found.document
    assert document["seed"] == 4
    assert document["settings"] == {"numbers": [1, 2, 3]}
    assert document["data"]["sha256"] == asked.request.inputs.checksum
    assert {"python", "numpy", "ikpca"} <= set(document["versions"])
    assert all(part["threads"] >= 1 for part in document["parts"])
    assert found.arrays["number 3"]["picture"].tolist() == [[3, 3], [3, 3]]
    # What is no number has no place in JSON.
    assert found.tables["squares"][0]["nothing"] is None


def test_finished_parts_are_not_run_again(job, tmp_path):
    run_jobs([job()])
    run_jobs([job()])
    assert diary(tmp_path) == [1, 2, 3]


def test_goes_on_after_an_interrupt_and_ends_with_the_same_tables(job, tmp_path):
    (tmp_path / "interrupt").touch()
    with pytest.raises(KeyboardInterrupt):
        run_jobs([job(broken="interrupt")])
    assert diary(tmp_path) == [1, 2]
    assert job().folder.read() is None
    assert run_jobs([job()]) == {}
    assert diary(tmp_path) == [1, 2, 2, 3]
    whole = job(out="whole")
    run_jobs([whole])
    assert written(job()) == written(whole)
    assert written(whole)


def test_a_part_that_fails_is_told_of_and_the_others_are_kept(job, tmp_path):
    (tmp_path / "error").touch()
    failures = run_jobs([job(broken="error")])
    assert failures == {"fake": "fake, number 2: ValueError: two is odd"}
    assert job().folder.read() is None
    assert run_jobs([job()]) == {}
    assert diary(tmp_path) == [1, 2, 3, 2]


@pytest.mark.parametrize("other", [{"seed": 1}, {"size": "embedded"}])
def test_other_settings_or_seeds_are_other_results(job, tmp_path, other):
    run_jobs([job()])
    run_jobs([job(**other)])
    assert len(diary(tmp_path)) > 5


def test_a_result_of_other_settings_is_gone_when_a_new_run_is_interrupted(job, tmp_path):
    run_jobs([job()])
    (tmp_path / "interrupt").touch()
    with pytest.raises(KeyboardInterrupt):
        run_jobs([job(seed=1, broken="interrupt")])
    assert job().folder.read() is None


@pytest.mark.parametrize("damage", ["", "{"])
def test_a_damaged_part_is_run_again(job, tmp_path, damage):
    run_jobs([job()])
    part = next((job().folder.folder / "parts").glob("number-2*.json"))
    part.write_text(damage)
    run_jobs([job()])
    assert diary(tmp_path) == [1, 2, 3, 2]


def test_parts_side_by_side_give_the_same_tables(job):
    alone, together = job(out="one"), job(out="two")
    run_jobs([alone], n_jobs=1)
    run_jobs([together], n_jobs=2)
    assert written(alone) == written(together)


def test_claims_hold_fail_or_wait(job, spec):
    asked = job()
    assert [judge(claim, "quick", None).status for claim in spec.claims] == [Status.NOT_RUN] * 3
    run_jobs([asked])
    verdicts = [judge(claim, "quick", asked.folder.read().tables) for claim in spec.claims]
    assert [one.status for one in verdicts] == [Status.HOLDS, Status.FAILS, Status.NOT_RUN]
    assert [one.ours for one in verdicts] == ["9", "1 1, 3 9", "–"]


def test_claims_are_judged_from_the_written_tables(job, spec, tmp_path):
    asked = job()
    run_jobs([asked])
    path = asked.folder.folder / "results.json"
    document = json.loads(path.read_text())
    document["tables"]["squares"][2]["square"] = 8.0
    path.write_text(json.dumps(document))
    tables = ResultsFolder.of(tmp_path / "out", "quick", "fake").read().tables
    assert judge(spec.claims[0], "quick", tables).status is Status.FAILS


def test_seeds_and_versions_aside_two_runs_write_the_same_json(job):
    def without_costs(asked):
        document = dict(asked.folder.read().document)
        parts = [{key: part[key] for key in ("part", "file", "threads")}
                 for part in document.pop("parts")]  # fmt: skip
        return json.dumps([document, parts])

    one, other = job(out="one"), job(out="other")
    run_jobs([one])
    run_jobs([other])
    assert without_costs(one) == without_costs(other)
