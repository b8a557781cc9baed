"""Runner of experiments: stored parts, repeated parts, files."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import signal
from functools import partial

import numpy as np
import pytest

from ikpca_papers.claims import Status, evaluate_claim, read_spec
from ikpca_papers.experiment import Experiment, Findings, Part
from ikpca_papers.runner import ResultsFolder, prepare, run_jobs, write_file

SPEC = """
id = "fake"
title = "Squares"
about = "Squares of numbers."
paper = "nobody"
figure = "none"
finding = "Squares are large."

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
fails_if = "The largest square is below 9."
from = { table = "squares", column = "square", take = "max" }
is = ">="
than = 9

[[claims]]
id = "false"
sentence = "Squares fall."
paper = "1 > 9"
fails_if = "The square of 3 is not below that of 1."
from = { table = "squares", column = "square" }
decreasing = [{ number = 1 }, { number = 3 }]

[[claims]]
id = "absent"
sentence = "Cubes are large."
paper = "27"
fails_if = "The mean cube is at most 1."
from = { table = "cubes", column = "cube" }
is = ">"
than = 1
"""


def square(number, diary, broken):
    """Record the call; the second number fails while the file ``broken`` exists."""
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
    """Return a function that plans the experiment into a folder of the given name."""

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
    task = job(seed=4)
    assert run_jobs([task]) == {}
    result = task.folder.read()
    assert [row["square"] for row in result.tables["squares"]] == [1, 4, 9]
    assert result.tables["total"] == [{"sum": 14}]
    lines = csv.DictReader((task.folder.folder / "squares.csv").read_text().splitlines())
    assert [float(line["square"]) for line in lines] == [1, 4, 9]
    document = result.document
    assert document["seed"] == 4
    assert document["settings"] == {"numbers": [1, 2, 3]}
    assert document["data"]["sha256"] == task.request.inputs.checksum
    assert {"python", "numpy", "ikpca"} <= set(document["versions"])
    assert all(part["threads"] >= 1 for part in document["parts"])
    assert result.arrays["number 3"]["picture"].tolist() == [[3, 3], [3, 3]]
    # JSON has no NaN or infinity.
    assert result.tables["squares"][0]["nothing"] is None


def test_finished_parts_are_not_run_again(job, tmp_path):
    run_jobs([job()])
    run_jobs([job()])
    assert diary(tmp_path) == [1, 2, 3]


def test_interrupted_run_resumes_with_the_same_tables(job, tmp_path):
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


def test_failed_part_is_reported_and_others_are_kept(job, tmp_path):
    (tmp_path / "error").touch()
    failures = run_jobs([job(broken="error")])
    assert failures == {"fake": "fake, number 2: ValueError: two is odd"}
    assert job().folder.read() is None
    assert run_jobs([job()]) == {}
    assert diary(tmp_path) == [1, 2, 3, 2]


@pytest.mark.parametrize("other", [{"seed": 1}, {"size": "embedded"}])
def test_settings_and_seeds_have_separate_results(job, tmp_path, other):
    run_jobs([job()])
    run_jobs([job(**other)])
    assert len(diary(tmp_path)) > 5


def test_interrupted_run_removes_the_result_of_other_settings(job, tmp_path):
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


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_damaged_arrays_are_computed_again(job, tmp_path, damage):
    run_jobs([job()])
    path = next((job().folder.folder / "parts").glob("number-2*.npz"))
    content = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(content[:-10])
    elif damage == "changed":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    else:
        path.unlink()
    run_jobs([job()])
    assert diary(tmp_path) == [1, 2, 3, 2]
    assert job().folder.read().arrays["number 2"]["picture"].tolist() == [[2, 2], [2, 2]]


def test_a_damaged_result_is_written_again(job, tmp_path):
    run_jobs([job()])
    path = job().folder.folder / "results.json"
    whole = json.loads(path.read_text())["tables"]
    path.write_text(path.read_text()[:100])
    assert job().folder.read() is None
    assert run_jobs([job()]) == {}
    assert job().folder.read().tables == whole
    assert diary(tmp_path) == [1, 2, 3]


def random_sum(number, seed, folder):
    """Kill this process when the second number is requested for the first time."""
    if number == 2 and (folder / "inside").exists():
        (folder / "inside").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    rng = np.random.default_rng([seed, number])
    rows = [{"number": number, "square": float(rng.normal(size=1000).sum())}]
    return Findings({"squares": rows}, {"picture": rng.normal(size=(4, 4))})


def plan_sums(folder, request):
    return [Part(f"number {n}", partial(random_sum, n, request.seed, folder))
            for n in request.settings["numbers"]]  # fmt: skip


def run_sums(folder, out, *, between=False):
    """Run the experiment in a process that may be killed in or before its second part."""

    def on_progress(name, done, total):
        if between and done == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    experiments = {"fake": Experiment(partial(plan_sums, folder))}
    spec = read_spec(folder / "fake.toml")
    planned = prepare("fake", "quick", folder / out, None, 0, experiments, spec)
    assert run_jobs([planned], on_progress=on_progress) == {}
    return planned


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
@pytest.mark.parametrize("where", ["inside", "between"])
def test_killed_run_resumes_to_the_same_bits(spec, tmp_path, where):
    if where == "inside":
        (tmp_path / "inside").touch()
    child = multiprocessing.get_context("spawn").Process(
        target=run_sums, args=(tmp_path, "out"), kwargs={"between": where == "between"}
    )
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    kept = sorted(path.stem for path in (tmp_path / "out").rglob("number*.json"))
    assert [name[:8] for name in kept] == ["number-1"]
    again, whole = run_sums(tmp_path, "out"), run_sums(tmp_path, "whole")
    assert written(again) == written(whole)
    assert written(whole)
    one, other = again.folder.read(), whole.folder.read()
    assert one.tables == other.tables
    for name, arrays in other.arrays.items():
        assert one.arrays[name]["picture"].tobytes() == arrays["picture"].tobytes()


def test_parts_side_by_side_give_the_same_tables(job):
    alone, together = job(out="one"), job(out="two")
    run_jobs([alone], n_jobs=1)
    run_jobs([together], n_jobs=2)
    assert written(alone) == written(together)


def test_claims_hold_fail_or_are_not_run(job, spec):
    task = job()
    assert [evaluate_claim(claim, "quick", None).status for claim in spec.claims] == [
        Status.NOT_RUN
    ] * 3
    run_jobs([task])
    verdicts = [evaluate_claim(claim, "quick", task.folder.read().tables) for claim in spec.claims]
    assert [one.status for one in verdicts] == [Status.HOLDS, Status.FAILS, Status.NOT_RUN]
    assert [one.ours for one in verdicts] == ["9", "1 1, 3 9", "–"]


def test_claims_are_judged_from_the_written_tables(job, spec, tmp_path):
    task = job()
    run_jobs([task])
    path = task.folder.folder / "results.json"
    document = json.loads(path.read_text())
    document["tables"]["squares"][2]["square"] = 8.0
    path.write_text(json.dumps(document))
    tables = ResultsFolder.of(tmp_path / "out", "quick", "fake").read().tables
    assert evaluate_claim(spec.claims[0], "quick", tables).status is Status.FAILS


def test_seeds_and_versions_aside_two_runs_write_the_same_json(job):
    def without_costs(task):
        document = dict(task.folder.read().document)
        parts = [{key: part[key] for key in ("part", "file", "threads")}
                 for part in document.pop("parts")]  # fmt: skip
        return json.dumps([document, parts])

    one, other = job(out="one"), job(out="other")
    run_jobs([one])
    run_jobs([other])
    assert without_costs(one) == without_costs(other)


def test_files_are_replaced_atomically(tmp_path, monkeypatch):
    write_file(tmp_path / "table.csv", "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_file(tmp_path / "table.csv", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert (tmp_path / "table.csv").read_text() == "old"
