"""``ikpca-papers reproduce``: one small experiment, and errors."""

from __future__ import annotations

import json

import pytest

from ikpca_papers import runner
from ikpca_papers.claims import specs
from papers.tests.command_line import ikpca_papers


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduced")
    captured = ikpca_papers("reproduce", "toy-contours", "--quick", "--out", out, "--jobs", 1)
    assert captured.code == 0, captured.err
    return out, captured


def test_run_writes_page_tables_and_figures(small):
    out, captured = small
    page = out / "quick" / "index.html"
    assert captured.out.splitlines()[-1] == f"Page: {page}"
    assert page.read_text(encoding="utf-8").count("<section") == len(specs())
    folder = out / "quick" / "toy-contours"
    assert {"results.json", "correlations.csv", "toy-contours-1-contours.png"} <= {
        path.name for path in folder.iterdir()
    }
    claims = json.loads((out / "quick" / "claims.json").read_text(encoding="utf-8"))
    assert {one["experiment"] for one in claims} == set(specs())


def test_a_line_per_figure_is_printed(small):
    _, said = small
    line = next(line for line in said.out.splitlines() if "toy-contours" in line)
    assert line.strip().endswith("Kim figure 1                      The claim holds.")
    assert said.out.count("Not run.") == len(specs()) - 1


def test_second_run_uses_stored_results(small, monkeypatch):
    out, _ = small

    def refuse(*arguments):
        raise AssertionError("a finished part was run again")

    monkeypatch.setattr(runner, "_run_part", refuse)
    before = (out / "quick" / "index.html").read_bytes()
    captured = ikpca_papers("reproduce", "toy-contours", "--out", out, "--jobs", 1, "--json")
    assert captured.code == 0
    assert captured.err == ""
    assert (out / "quick" / "index.html").read_bytes() == before
    assert captured.out == (out / "quick" / "claims.json").read_text(encoding="utf-8")


def test_quiet_prints_the_page_and_nothing_else(small):
    out, _ = small
    captured = ikpca_papers("reproduce", "toy-contours", "--out", out, "--jobs", 1, "--quiet")
    assert captured.out == f"Page: {out / 'quick' / 'index.html'}\n"
    assert captured.err == ""


def test_verdicts_are_recorded(small, tmp_path):
    out, _ = small
    path = tmp_path / "quick.json"
    said = ikpca_papers(
        "reproduce", "toy-contours", "--out", out, "--jobs", 1, "--quiet", "--record", path
    )
    assert said.code == 0
    (entry,) = json.loads(path.read_text(encoding="utf-8"))
    assert entry["verdict"] == "The claim holds."


def test_lists_every_experiment():
    captured = ikpca_papers("reproduce", "--list", "--json")
    assert captured.code == 0
    assert {one["id"] for one in json.loads(captured.out)} == set(specs())
    assert "usps-kpca" in ikpca_papers("reproduce", "--list").out


MISTAKES = {
    "unknown": (["usps-kpcs"], "there is no experiment 'usps-kpcs'; did you mean 'usps-kpca'?"),
    "two sizes": (["--quick", "--real"], "--quick and --real exclude each other"),
    "no data folder": (
        ["motion", "--real", "--data", "nowhere"],
        "--data nowhere: is not a folder",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_errors_are_one_sentence_and_write_nothing(tmp_path, mistake):
    arguments, sentence = MISTAKES[mistake]
    captured = ikpca_papers("reproduce", *arguments, "--out", tmp_path / "out")
    assert captured.code == 2
    assert sentence in captured.err
    assert len(captured.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_results_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    captured = ikpca_papers("reproduce", "toy-contours", "--out", tmp_path / "file" / "below")
    assert captured.code == 2
    assert captured.err.startswith(f"ikpca-papers reproduce: --out {tmp_path / 'file' / 'below'}: ")


def test_missing_data_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("IKPCA_OFFLINE", "1")
    monkeypatch.setenv("IKPCA_CACHE", str(tmp_path / "cache"))
    captured = ikpca_papers("reproduce", "lena-multipatch", "--real", "--data", tmp_path, "--out",
                 tmp_path / "out")  # fmt: skip
    assert captured.code == 1
    assert "test_images_512" in captured.err
    assert len(captured.err.splitlines()) == 1


def test_experiments_without_data_do_not_stop_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv("IKPCA_OFFLINE", "1")
    monkeypatch.setenv("IKPCA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(runner, "_run_part", lambda *arguments: ("toy-contours", ""))
    said = ikpca_papers("reproduce", "lena-multipatch", "toy-contours", "--real", "--data",
                        tmp_path, "--out", tmp_path / "out", "--quiet", "--jobs", 1)  # fmt: skip
    assert said.code == 1
    assert "lena-multipatch: " in said.err
    assert "test_images_512" in said.err
    assert "Page: " in said.out


def test_interrupt_prints_how_to_resume(tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "_run_part", interrupted)
    captured = ikpca_papers("reproduce", "toy-contours", "--out", tmp_path, "--jobs", 1, "--quiet")
    assert captured.code == 130
    assert (
        f"finished parts are kept in {tmp_path / 'quick'}: run the same command again"
        in captured.err
    )


def test_failure_is_on_the_page_and_in_the_exit_status(tmp_path, monkeypatch):
    reason = "toy-contours, contours: ValueError: no luck"
    monkeypatch.setattr(runner, "_run_part", lambda *arguments: ("toy-contours", reason))
    captured = ikpca_papers("reproduce", "toy-contours", "--out", tmp_path, "--jobs", 1, "--quiet")
    assert captured.code == 1
    assert captured.err == f"ikpca-papers reproduce: {reason}\n"
    assert reason in (tmp_path / "quick" / "index.html").read_text(encoding="utf-8")
