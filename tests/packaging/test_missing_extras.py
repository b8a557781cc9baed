"""Without an extra: one sentence with the command that installs it, and never a traceback.

Here extras are hidden from an interpreter that has them. ``make package`` does the same in an empty
environment, where they are truly absent.
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
    """What the script prints where these modules cannot be imported, in all its processes."""
    hide = f"import sys\nsys.modules.update(dict.fromkeys({hidden!r}))\n"
    (folder / "sitecustomize.py").write_text(hide)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, plain.__file__, part],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("part", "hidden", "number"),
    [
        ("library", EXTRAS + CLI, len(plain.LIBRARY) + 3),
        ("verbs", EXTRAS, len(plain.VERBS) + 3),
    ],
)
def test_what_is_missing_is_told_in_one_sentence(part, hidden, number, tmp_path):
    pytest.importorskip("typer")
    if not Path(sys.executable).with_name("ikpca").exists():
        pytest.skip("ikpca is not installed beside this interpreter")
    code, lines = lines_of(part, hidden, tmp_path)
    assert not [line for line in lines if not line.startswith("good")]
    assert len(lines) == number
    assert code == 0


def test_something_wrong_is_seen(monkeypatch, capsys, tmp_path):
    """With matplotlib there, nothing is missing for figures: the script has to say so."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plain, "LIBRARY", {"plots": plain.LIBRARY["plots"]})
    monkeypatch.setattr(plain, "FITS", "raise SystemExit(3)")
    monkeypatch.setattr(plain, "_ikpca", lambda line: plain.Seen(1, "", "Traceback\nOops"))
    wrong = plain._told(plain.library())
    assert {"plots", "fit, stream, save and load", "ikpca --help", "ikpca info"} <= {*wrong}
    assert "good" not in capsys.readouterr().out
