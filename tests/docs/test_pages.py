"""Every code block of the site runs and prints what the page shows.

The gallery and the drawings are run by ``make docs``; the examples of the reference are doctests.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib").use("Agg")

from tests.command_line import ikpca  # noqa: E402
from tests.docs.doc_pages import blocks_of, differs, run  # noqa: E402
from tests.docs.reference_names import listed_names  # noqa: E402

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    page for page in DOCS.rglob("*.md") if not {"gallery", "examples"} & set(page.parts[:-1])
)
RUN = {"python", "console"}
RUNNING = [page for page in PAGES if any(block.language in RUN for block in blocks_of(page))]


def name_of(page):
    return str(page.relative_to(DOCS))


def ikpca_papers(*arguments):
    """Run the second command line: exit code, standard output, standard error."""
    command = [sys.executable, "-c", "from ikpca_papers.cli import main; main()", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)


PROGRAMS = {"ikpca": ikpca, "ikpca-papers": ikpca_papers}


@pytest.mark.parametrize("page", RUNNING, ids=name_of)
def test_blocks_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks_of(page):
        without_river = "from river" in block.code and find_spec("river") is None
        if block.language in RUN and not without_river:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                printed = run(block, names, PROGRAMS)
            assert not differs(block, printed), differs(block, printed)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_other_languages_are_not_used(page):
    """Blocks of other languages are not tested."""
    languages = re.findall(r"^(?:```|~~~)(\S*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    directives = {name for name in languages if name.startswith("{")}
    assert {*languages} - directives <= {"python", "console", "text", "sh", ""}


def shell_lines():
    """Commands that install something or take minutes."""
    for page in [*PAGES, ROOT / "README.md"]:
        for block in blocks_of(page):
            if block.language == "sh":
                yield from (shlex.split(line, comments=True) for line in block.code.splitlines())


@pytest.mark.parametrize("words", list(shell_lines()), ids=" ".join)
def test_shell_commands_exist(words):
    match words:
        case ["make", *targets]:
            subprocess.run(["make", "-n", *targets], cwd=ROOT, check=True, capture_output=True)
        case ["pip", "install", *paths]:
            for path in paths:
                folder, named = re.fullmatch(r"([\w./]+)(?:\[(.+)\])?", path).groups()
                project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))
                extras = project["project"].get("optional-dependencies", {})
                assert named is None or {*named.split(",")} <= {*extras}
        case ["python", script, *_]:
            command = [sys.executable, script, "--help"]
            subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        case [program, command, *given] if program in PROGRAMS:
            said = PROGRAMS[program](command, "--help")
            assert said.code == 0
            assert all(word in said.out for word in given if word.startswith("--"))
        case _:
            pytest.fail(f"unknown command: {words}")


GALLERY = sorted((DOCS / "examples").rglob("plot_*.py"))


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_examples_have_a_title_and_need_no_data(path):
    text = path.read_text(encoding="utf-8")
    title = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert title[1] == "=" * len(title[0])
    assert "IKPCA_DATA" not in text
    assert "fetch" not in text


PUBLIC = (
    "ikpca", "ikpca.kernels", "ikpca.preimages", "ikpca.reduced_sets",
    "ikpca.metrics", "ikpca.plotting", "ikpca.dask",
    "ikpca.errors", "ikpca_papers.applications", "ikpca_papers.data", "ikpca_papers.mocap",
    "ikpca_papers.figures",
)  # fmt: skip


def documented_names(module):
    """Return the public functions and classes of a module that have an example."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    values = {name: getattr(module, name) for name in names}
    return {
        name
        for name, value in values.items()
        if (inspect.isclass(value) or inspect.isfunction(value))
        and ">>>" in (inspect.getdoc(value) or "")
    }


@pytest.mark.parametrize("name", PUBLIC)
def test_every_documented_name_is_in_the_reference(name):
    listed = listed_names()
    names = documented_names(importlib.import_module(name))
    # Names of the top level are listed there.
    missing = {part for part in names if not {f"{name}.{part}", f"ikpca.{part}"} & listed.keys()}
    assert names
    assert not missing, f"add to docs/reference: {sorted(missing)}"
