"""A missing extra raises an error of one sentence with the command that installs it.

The extras are hidden from this interpreter; ``make package`` runs the same checks in an environment
without them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging import plain_installation as plain

pytestmark = pytest.mark.slow

EXTRAS = ["matplotlib", "zarr", "dask", "distributed"]
CLI = ["typer", "rich", "pandas", "pyarrow", "openpyxl"]


def lines_of(part, hidden, folder):
    """Return exit status and output of the script, which cannot import the hidden modules."""
    hide = f"import sys\nsys.modules.update(dict.fromkeys({hidden!r}))\n"
    (folder / "sitecustomize.py").write_text(hide)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, plain.__file__, part],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert "Traceback" not in result.stderr
    return result.returncode, result.stdout.splitlines()


@pytest.mark.parametrize(
    ("part", "hidden", "number"),
    [
        ("library", EXTRAS + CLI, len(plain.LIBRARY) + 3),
        ("commands", EXTRAS, len(plain.COMMANDS) + 3),
    ],
)
def test_missing_extras_raise_one_sentence(part, hidden, number, tmp_path):
    pytest.importorskip("typer")
    if not Path(sys.executable).with_name("ikpca").exists():
        pytest.skip("ikpca is not installed beside this interpreter")
    status, lines = lines_of(part, hidden, tmp_path)
    assert not [line for line in lines if not line.startswith("passed")]
    assert len(lines) == number
    assert status == 0


def test_failed_checks_are_reported(monkeypatch, capsys, tmp_path):
    """With matplotlib installed, plots raise no error, which the script must report."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plain, "LIBRARY", {"plots": plain.LIBRARY["plots"]})
    monkeypatch.setattr(plain, "FITS", "raise SystemExit(3)")
    monkeypatch.setattr(plain, "_ikpca", lambda line: plain.Result(1, "", "Traceback\nOops"))
    failed = plain._report(plain.library())
    assert {"plots", "fit, stream, save and load", "ikpca --help", "ikpca info model.ikpca"} <= {
        *failed
    }
    assert "passed" not in capsys.readouterr().out
