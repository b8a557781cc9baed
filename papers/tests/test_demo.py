"""``ikpca-papers demo``: a small run, and errors."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import image

from ikpca_papers.demo import DemoResult, DemoSpec, Run, as_json
from ikpca_papers.errors import SubprocessFailed
from ikpca_papers.figures import demo_convergence
from papers.tests.command_line import ikpca_papers

METHODS = ["kha", "kha/t", "kha/et", "kha-smd", "dense"]
LABELS = ["KHA", "KHA/t", "KHA/et", "KHA-SMD", "dense"]
ROWS, PASSES = 300, 6


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "made" / "on demand"
    said = ikpca_papers(
        "demo", "--out", folder, "--rows", ROWS, "--passes", PASSES, "--components", 4, "--seed", 3
    )
    assert said.code == 0, said.err
    return SimpleNamespace(
        folder=folder,
        said=said,
        json=json.loads((folder / "table.json").read_text()),
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
    for name in ("convergence.png", "table.json"):
        assert f"Wrote {small.folder / name}" in small.said.out
    assert sorted(path.name for path in small.folder.iterdir()) == [
        "convergence.png",
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


def test_json_has_the_settings_and_versions(small):
    assert small.json["settings"] == {
        "components": 4, "passes": PASSES, "sigma": 2.0, "seed": 3, "threads": 1, "rows": ROWS,
    }  # fmt: skip
    assert small.json["threads"] == 1
    assert small.json["versions"]["numba"] == version("numba")
    for row in small.json["table"]:
        assert (
            row[f"excess_after_{PASSES}"] == small.json["excess_error_per_pass"][row["method"]][-1]
        )
        assert row["entries_per_l2"] == row["entries"] / ROWS**2


def test_counts_what_every_method_evaluated(small):
    entries = {row["method"]: row["entries"] for row in small.json["table"]}
    # One tile covers so few rows: K once, or once for the means, its diagonals, and for every pass
    # once, and twice for its certificate.
    assert entries["dense"] == ROWS**2
    for method in METHODS[:-1]:
        assert 0 <= entries[method] - (3 * PASSES + 1) * ROWS**2 <= 4 * ROWS


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
    # White paper, and on it enough that is neither white nor gray.
    colored = np.ptp(pixels[..., :3], axis=2) > 0.2
    assert 0.001 < colored.mean() < 0.2


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
    (row,) = json.loads(as_json(a_result([0.5])))["table"]
    assert (row["excess_after_1"], row["excess_after_3"]) == (0.5, None)
    assert row["peak_megabytes"] is None


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
    said = ikpca_papers("demo", "--out", tmp_path / "none", *arguments)
    assert said.code == 2
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert told in said.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("below", [".", "folder"])
def test_out_that_is_a_file_is_refused(below, tmp_path):
    (tmp_path / "taken").write_text("mine")
    said = ikpca_papers("demo", "--out", tmp_path / "taken" / below)
    assert said.code == 2
    assert len(said.err.splitlines()) == 1
    assert "not a folder" in said.err
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_failed_process_is_one_sentence(monkeypatch, tmp_path):
    def failed(*_):
        raise SubprocessFailed("KHA: its process ended without a result.")

    monkeypatch.setattr("ikpca_papers.demo.run_demo", failed)
    result = ikpca_papers("demo", "--out", tmp_path)
    assert result.code == 1
    sentence = "ikpca-papers demo: KHA: its process ended without a result."
    assert result.err.splitlines()[-1] == sentence


def test_interrupt_exits_with_130(monkeypatch, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ikpca_papers.demo.run_demo", interrupted)
    said = ikpca_papers("demo", "--out", tmp_path)
    assert said.code == 130
    assert said.err.splitlines()[-1] == "ikpca-papers: interrupted"
