"""``ikpca demo``: a small one from end to end, and what it says when something is wrong."""

from __future__ import annotations

import csv
import functools
import json
import multiprocessing.spawn
import operator
import os
import shutil
import signal
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
image = pytest.importorskip("matplotlib.image")

from ikpca_papers.demo import DemoResult, DemoSpec, Run, as_csv  # noqa: E402
from ikpca_papers.figures import demo_convergence  # noqa: E402
from ikpca_papers.runner import write_bytes  # noqa: E402
from ikpca_papers.subprocesses import (
    ContestantFailed,  # noqa: E402
    run_alone,  # noqa: E402
)
from tests.command_line import ikpca  # noqa: E402

METHODS = ["kha", "kha/t", "kha/et", "kha-smd", "dense"]
LABELS = ["KHA", "KHA/t", "KHA/et", "KHA-SMD", "dense"]
ROWS, PASSES = 300, 6


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "made" / "on demand"
    said = ikpca(
        "demo", "--out", folder, "--rows", ROWS, "--passes", PASSES, "--components", 4, "--seed", 3
    )
    assert said.code == 0, said.err
    return SimpleNamespace(
        folder=folder,
        said=said,
        json=json.loads((folder / "table.json").read_text()),
        csv=list(csv.DictReader((folder / "table.csv").read_text().splitlines())),
    )


def test_prints_a_line_per_method_with_every_column(small):
    lines = [line.split() for line in small.said.out.splitlines() if line.strip()]
    rows = {line[0]: line[1:] for line in lines if line[0] in LABELS}
    assert list(rows) == LABELS
    for label, (first, fifth, last, seconds, entries, unit, share, peak) in rows.items():
        assert (first, fifth) == ("–", "–") if label == "dense" else float(fifth) < float(first)
        assert float(last) < 1
        assert "e-" in last
        assert float(seconds) >= 0
        assert float(entries) >= 0
        assert unit == "M"
        assert float(share) >= 1
        assert peak == "–" or float(peak) >= 0


def test_no_cell_is_cut_short(small):
    assert "…" not in small.said.out


def test_says_threads_versions_and_files(small):
    assert "BLAS threads: 1 (pinned)" in small.said.out
    assert f"numpy {version('numpy')}" in small.said.out
    for name in ("convergence.png", "table.csv", "table.json"):
        assert f"Wrote {small.folder / name}" in small.said.out
    assert sorted(path.name for path in small.folder.iterdir()) == [
        "convergence.png",
        "table.csv",
        "table.json",
    ]


def test_shows_a_bar_per_method(small):
    for label in LABELS[:-1]:
        assert any(f"{PASSES}/{PASSES}" in line for line in small.said.err.splitlines()
                   if line.startswith(f"{label} "))  # fmt: skip


def test_excess_error_falls_and_the_reference_has_none(small):
    errors = small.json["excess_error_per_pass"]
    assert list(errors) == METHODS
    assert [len(errors[method]) for method in METHODS] == [PASSES] * 4 + [1]
    assert (np.diff(errors["kha/et"]) < 0).all()
    assert errors["kha/et"][-1] < 0.1 * errors["kha/et"][0]
    assert errors["kha/et"][-1] < errors["kha"][-1]
    assert all(errors[method][-1] > 1e-12 for method in METHODS[:-1])
    assert abs(errors["dense"][0]) < 1e-12


def test_csv_and_json_tell_the_same_and_how_to_repeat_it(small):
    assert small.json["settings"] == {
        "components": 4, "passes": PASSES, "sigma": 2.0, "seed": 3, "threads": 1, "rows": ROWS,
    }  # fmt: skip
    assert small.json["threads"] == 1
    assert small.json["versions"]["numba"] == version("numba")
    for line, row in zip(small.csv, small.json["table"], strict=True):
        assert line["method"] == row["method"]
        assert (line["seed"], line["threads"]) == ("3", "1")
        assert line["scikit-learn"] == version("scikit-learn")
        for name in (f"excess_after_{PASSES}", "seconds", "entries", "entries_per_l2"):
            assert float(line[name]) == row[name]


def test_counts_what_every_method_evaluated(small):
    entries = {row["method"]: row["entries"] for row in small.json["table"]}
    # One tile covers so few rows: K once, or once for the means, its diagonals, and every pass.
    assert entries["dense"] == ROWS**2
    for method in METHODS[:-1]:
        assert 0 <= entries[method] - (PASSES + 1) * ROWS**2 <= 4 * ROWS


def test_memory_is_counted_on_linux(small):
    if not Path("/proc/self/status").exists():
        pytest.skip("no count of resident memory")
    peaks = [row["peak_megabytes"] for row in small.json["table"]]
    kernel_matrix = 8e-6 * ROWS**2
    assert all(0 < peak < 100 for peak in peaks)
    assert peaks[-1] > kernel_matrix


def test_plot_is_an_image_with_curves_in_it(small):
    pixels = image.imread(small.folder / "convergence.png")
    assert min(pixels.shape[:2]) > 500
    # White paper, and on it enough that is neither white nor grey.
    coloured = np.ptp(pixels[..., :3], axis=2) > 0.2
    assert 0.001 < coloured.mean() < 0.2


def a_result(*errors):
    spec = DemoSpec(components=2, passes=3, rows=10)
    runs = tuple(Run("kha", "KHA", tuple(e), 1.0, 100, None, "PASS_LIMIT") for e in errors)
    return DemoResult(spec, 64, runs, 1, {"python": "3"})


def test_plot_draws_what_it_is_given_on_a_logarithmic_axis():
    axes = demo_convergence(a_result([0.5, 0.1, 1e-3], [0.4, 0.0, -1e-16])).axes[0]
    first, second = (line.get_ydata() for line in axes.get_lines())
    assert axes.get_yscale() == "log"
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    np.testing.assert_array_equal(first, [0.5, 0.1, 1e-3])
    np.testing.assert_array_equal(second, [0.4, np.nan, np.nan])
    assert sum(text.get_text() == "KHA" for text in axes.texts) == 2


def test_a_run_that_ended_early_leaves_gaps():
    header, line = as_csv(a_result([0.5])).splitlines()
    cells = dict(zip(header.split(","), line.split(","), strict=True))
    assert (cells["excess_after_1"], cells["excess_after_3"]) == ("0.5", "")
    assert cells["peak_megabytes"] == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--passes", 0], "--passes=0"),
        (["--components", 300, "--rows", 300], "--components=300"),
        (["--sigma", -1], "--sigma=-1.0"),
        (["--sigma", "nan"], "--sigma=nan"),
        (["--rows", 5000], "1797"),
        (["--threads", 0], "--threads=0"),
        (["--passes", "many"], "--passes"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, told, tmp_path):
    said = ikpca("demo", "--out", tmp_path / "none", *arguments)
    assert said.code == 2
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert told in said.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("below", [".", "folder"])
def test_out_that_is_a_file_is_refused(below, tmp_path):
    (tmp_path / "taken").write_text("mine")
    said = ikpca("demo", "--out", tmp_path / "taken" / below)
    assert said.code == 2
    assert len(said.err.splitlines()) == 1
    assert "not a folder" in said.err
    assert (tmp_path / "taken").read_text() == "mine"


def test_help_and_version():
    assert ikpca("--version").out == f"ikpca {version('ikpca')}\n"
    assert ikpca("--help").code == ikpca().code == 0
    assert "demo" in ikpca().out
    assert "--sigma" in ikpca("demo", "--help").out


def test_names_the_remedy_for_what_is_missing(monkeypatch):
    monkeypatch.setattr("ikpca.cli.find_spec", lambda name: None if name == "rich" else object())
    said = ikpca("demo")
    assert said.code == 1
    assert said.err == "ikpca: the command line needs rich; run: pip install 'ikpca[cli]'.\n"


def test_only_what_draws_needs_the_drawing_package(monkeypatch):
    monkeypatch.setattr("ikpca.cli.errors.find_spec", lambda name: None)
    said = ikpca("demo")
    assert said.code == 1
    assert "pip install 'ikpca[plot]'" in said.err


def test_interrupt_exits_with_130(monkeypatch, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ikpca_papers.demo.run_demo", interrupted)
    said = ikpca("demo", "--out", tmp_path)
    assert said.code == 130
    assert said.err.splitlines()[-1] == "ikpca: interrupted"


class Dies:
    """Ends the process that unpickles it."""

    def __init__(self, code):
        self.code = code

    def __reduce__(self):
        return os._exit, (self.code,)


def tells(message):
    """A task, importable anywhere, that tells one thing and returns None."""
    return operator.methodcaller("__call__", message)


def test_a_child_that_dies_is_an_error_and_not_a_wait():
    with pytest.raises(ContestantFailed, match=r"KHA.*exit code 3"):
        run_alone("KHA", Dies(3), print)


@pytest.fixture
def alarm():
    """Ends a wait that would never end."""

    def rung(*_):
        raise AssertionError("still waiting")

    before = signal.signal(signal.SIGALRM, rung)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(os.name == "nt", reason="alarms as on Unix")
def test_a_child_that_dies_before_it_took_its_task_is_no_wait_either(alarm, monkeypatch):
    large = functools.partial(len, bytes(20_000_000))
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", os.fsencode(shutil.which("false")))
    with pytest.raises(ContestantFailed, match=r"KHA.*exit code 1"):
        run_alone("KHA", large, print)


@pytest.mark.skipif(os.name == "nt", reason="alarms as on Unix")
def test_a_child_that_dies_over_a_large_task(alarm):
    with pytest.raises(ContestantFailed, match=r"KHA.*exit code 3"):
        run_alone("KHA", functools.partial(print, Dies(3), bytes(20_000_000)), print)


def test_a_child_that_raises_says_why():
    with pytest.raises(ContestantFailed, match=r"KHA: AttributeError.*no_such_thing"):
        run_alone("KHA", operator.attrgetter("no_such_thing"), print)


def test_an_interrupt_takes_the_child_along():
    def interrupted(message):
        assert message == "first pass"
        raise KeyboardInterrupt

    ours = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_alone("KHA", tells("first pass"), interrupted)
    assert multiprocessing.active_children() == []
    # And it is ours again afterwards.
    assert signal.getsignal(signal.SIGINT) is ours


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    write_bytes(tmp_path / "table.csv", "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_bytes(tmp_path / "table.csv", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert (tmp_path / "table.csv").read_text() == "old"
