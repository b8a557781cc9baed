"""Help, completion, interrupts, progress bars and ``info``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from ikpca.cli import options
from ikpca.cli.output import Report
from ikpca.estimators.validation import KERNEL_NAMES
from ikpca.preimages import PREIMAGE_NAMES
from ikpca.solvers.adaptive import SOLVERS
from tests.cli.saying import fails, succeeds
from tests.command_line import ikpca

VERBS = ["fit", "transform", "inverse", "plot", "detect", "cluster", "info"]


def test_every_command_has_help():
    whole = succeeds("--help").out
    for verb in VERBS:
        assert verb in whole
        text = succeeds(verb, "--help").out
        assert "Example: ikpca" in text
        assert "--json" in text
        assert "--quiet" in text


def test_help_imports_no_numerical_packages():
    code = "import sys; from ikpca.cli.app import run; run(['--help']); print(*sys.modules)"
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in finished.stdout.splitlines()[-1].split()}
    assert not loaded & {"numpy", "scipy", "sklearn", "numba", "matplotlib", "PIL"}


def test_choices_of_options_are_those_of_the_library():
    assert set(get_args(options.SolverName)) == set(SOLVERS)
    assert set(get_args(options.PreimageName)) == set(PREIMAGE_NAMES)
    # polynomial is another name of poly.
    assert set(get_args(options.KernelName)) == {*KERNEL_NAMES, "precomputed"} - {"polynomial"}


def test_completion_lists_commands_and_choices(monkeypatch):
    def completed(words):
        monkeypatch.setenv("_IKPCA_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
        return ikpca().out.split()

    assert "transform" in completed("ikpca tr")
    assert completed("ikpca fit --kernel lap") == ["laplacian"]


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
def test_an_interrupt_ends_with_130_and_writes_nothing(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "rows.npy", rng.normal(size=(3000, 5)))
    code = """if True:
        import signal, sys
        # A shell's background jobs ignore interrupts, and so would whatever they start.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from ikpca.solvers import RunSettings
        outcome = RunSettings.outcome

        def announced(self, records):
            if len(records) == 2:
                print("a pass is done", flush=True)
            return outcome(self, records)

        RunSettings.outcome = announced
        from ikpca.cli import main
        main()
    """
    fit = ["fit", "rows.npy", "-o", "m.ikpca", "-s", "kha", "--max-iter", "1000000", "-n", "4"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *fit], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline() == "a pass is done\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "ikpca: interrupted\n")
    assert os.listdir(tmp_path) == ["rows.npy"]


def test_unexpected_error_has_a_traceback(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", np.eye(4))

    def fit(*_):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("ikpca.KernelPCA.fit", fit)
    monkeypatch.setattr(sys, "argv", ["ikpca", "fit", "rows.npy", "-o", "m.ikpca"])
    from ikpca.cli import main

    with pytest.raises(ZeroDivisionError, match="ours"):
        main()


def test_progress_shows_the_finished_fraction(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with Report(quiet=False, as_json=False).progress("Passes") as move:
        move(3, 10)
    told = capsys.readouterr().err
    assert "Passes" in told
    assert "30%" in told
    with Report(quiet=True, as_json=False).progress("Passes") as move:
        move(3, 10)
    assert capsys.readouterr().err == ""


def test_info_describes_a_model_and_checks_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", np.random.default_rng(0).normal(size=(20, 3)))
    succeeds("fit", "rows.npy", "-o", "m.ikpca", "-n", 2, "--gamma", 0.5, "-q")
    document = succeeds("info", "m.ikpca", "--json")
    assert document["class"] == "KernelPCA"
    assert document["parameters"]["gamma"] == "0.5"
    assert document["attributes"]["eigenvalues_"] == "float64 of 2"
    assert document["bytes"] == (tmp_path / "m.ikpca").stat().st_size
    damaged = bytearray((tmp_path / "m.ikpca").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "m.ikpca").write_bytes(damaged)
    assert "checksum" in fails("info", "m.ikpca")
