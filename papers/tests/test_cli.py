"""Help and version of ``ikpca-papers``."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

from papers.tests.command_line import ikpca_papers


def test_help_and_version():
    assert ikpca_papers("--version").out == f"ikpca-papers {version('ikpca-papers')}\n"
    assert ikpca_papers("--help").code == ikpca_papers().code == 0
    assert ikpca_papers().out == ikpca_papers("--help").out
    for command in ("reproduce", "data", "denoise"):
        assert f" {command} " in ikpca_papers().out


@pytest.mark.parametrize(
    ("command", "option"),
    [("reproduce", "--quick"), ("upscale", "--factor"), ("data list", "--json"),
     ("data fetch", "--data"), ("data where", "--data")],
)  # fmt: skip
def test_every_command_has_help(command, option):
    assert option in ikpca_papers(*command.split(), "--help").out


def test_help_loads_no_numerical_packages():
    code = "import sys; from ikpca_papers.cli import run; run(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert not loaded & {"numpy", "scipy", "sklearn", "numba", "matplotlib", "PIL"}


def test_unknown_command_is_one_sentence():
    result = ikpca_papers("reproduced")
    assert result.code == 2
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith("ikpca-papers: No such command")
