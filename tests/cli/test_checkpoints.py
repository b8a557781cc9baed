"""``ikpca fit``, interrupted and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

import ikpca as library
from ikpca.estimators.checkpoint import CheckpointFile
from tests.cli.saying import fails, succeeds
from tests.command_line import ikpca
from tests.sameness import same

SOLVERS = ("kha/et", "krylov")


@pytest.fixture
def many(tmp_path, monkeypatch):
    """Rows for several batches."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("many.npy", rng.normal(size=(640, 5)) * [3.0, 2.0, 1.5, 1.0, 0.5])


def fit(solver, *more):
    return ikpca("fit", "many.npy", "-n", 3, "--eigen-solver", solver, "--max-iter", 5, *more)


def interrupting(calls, monkeypatch):
    """Interrupt after a number of steps."""
    count, record = iter([False] * calls + [True]), CheckpointFile.record

    def recorded(self, *arguments):
        if next(count, False):
            os.kill(os.getpid(), signal.SIGINT)
        record(self, *arguments)

    monkeypatch.setattr(CheckpointFile, "record", recorded)


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
@pytest.mark.parametrize("solver", SOLVERS)
def test_an_interrupted_fit_resumes(solver, many, monkeypatch):
    assert fit(solver, "-o", "whole").code == 0
    with monkeypatch.context() as patch:
        interrupting(1, patch)
        kept = ("--checkpoint", "here", "--checkpoint-every", 100, "-o", "model")
        said = fit(solver, *kept)
        assert said.code == 130
        assert said.err == "ikpca: interrupted\n"
        assert not os.path.exists("model")
        # And once more, on the way.
        interrupting(0, patch)
        assert fit(solver, *kept, "--resume").code == 130
    assert fit(solver, *kept, "--resume").code == 0
    one, other = library.load("whole"), library.load("model")
    rows = np.load("many.npy")
    same(one.transform(rows), other.transform(rows))
    # The model file does not hold the checkpoint.
    assert other.checkpoint is None


def test_invalid_options(many):
    def said(*more):
        return fails("fit", "many.npy", "-o", "model", *more, code=2)

    assert "--resume" in said("--resume")
    assert "--checkpoint-every='soon'" in said("--checkpoint", "here", "--checkpoint-every", "soon")
    nowhere = ("--checkpoint", "no/such/folder/here")
    assert "no folder" in fails("fit", "many.npy", "-o", "model", *nowhere)
    succeeds("fit", "many.npy", "-o", "model", "-s", "kha/et", "--max-iter", 2, "--checkpoint", "x")
    other = fails("fit", "many.npy", "-o", "new", "-s", "kha/et", "-n", 2, "--checkpoint", "x",
                  "--resume", code=2)  # fmt: skip
    assert "n_components was 16 and is 2" in other
    # Without --resume, the checkpoint would be lost.
    again = ("fit", "many.npy", "-o", "new", "-s", "kha/et", "--checkpoint", "x")
    assert "x: exists already" in fails(*again, code=2)
    assert "cannot be read" in fails(*again[:-1], "many.npy", "--resume")


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
def test_control_c(many):
    options = ["-s", "kha/et", "--max-iter", "100000", "--checkpoint", "here"]
    code = "from ikpca.cli import main; main()"
    child = subprocess.Popen(
        [sys.executable, "-c", code, "fit", "many.npy", "-o", "model", *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    while child.poll() is None and not os.path.exists("here"):
        threading.Event().wait(0.01)
    child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=60)[1]
    assert child.returncode == 130
    assert said == "ikpca: interrupted\n"
