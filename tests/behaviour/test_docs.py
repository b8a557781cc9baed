"""Every code block of the site runs as it stands and prints what the page says.

The gallery and the drawings are run by ``make docs``; the examples of the reference are doctests.
"""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib").use("Agg")

from tests.command_line import ikpca  # noqa: E402
from tests.doc_pages import blocks_of, differs, run  # noqa: E402
from tests.reference_names import listed_names  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    page for page in DOCS.rglob("*.md") if not {"gallery", "examples"} & set(page.parts[:-1])
)
RUN = {"python", "console"}
RUNNING = [page for page in PAGES if any(block.language in RUN for block in blocks_of(page))]


def name_of(page):
    return str(page.relative_to(DOCS))


def test_there_are_pages():
    assert len(PAGES) >= 20
    assert len(RUNNING) >= 10


@pytest.mark.parametrize("page", RUNNING, ids=name_of)
def test_blocks_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks_of(page):
        if block.language in RUN:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                printed = run(block, names, ikpca)
            assert not differs(block, printed), differs(block, printed)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_block_escapes(page):
    """A block of any other language has to be one that a page may show without running it."""
    languages = re.findall(r"^(?:```|~~~)(\S*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    directives = {name for name in languages if name.startswith("{")}
    assert {*languages} - directives <= {"python", "console", "text", "sh", ""}


def shell_lines():
    """Commands that install something or take minutes, which no test runs."""
    for page in [*PAGES, ROOT / "README.md"]:
        for block in blocks_of(page):
            if block.language == "sh":
                yield from (shlex.split(line, comments=True) for line in block.code.splitlines())


@pytest.mark.parametrize("words", list(shell_lines()), ids=" ".join)
def test_shell_commands_are_there(words):
    match words:
        case ["make", *targets]:
            subprocess.run(["make", "-n", *targets], cwd=ROOT, check=True, capture_output=True)
        case ["pip", "install", what]:
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
            named = re.fullmatch(r"\.(?:\[(.+)\])?", what)[1]
            assert named is None or {*named.split(",")} <= {*extras["optional-dependencies"]}
        case ["python", script, *_]:
            command = [sys.executable, script, "--help"]
            subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        case ["ikpca", verb, *given]:
            said = ikpca(verb, "--help")
            assert said.code == 0
            assert all(word in said.out for word in given if word.startswith("--"))
        case _:
            pytest.fail(f"nobody knows {words}")


GALLERY = sorted((DOCS / "examples").rglob("plot_*.py"))


def test_the_gallery_has_its_examples():
    assert len(GALLERY) >= 12
    assert len([path for path in GALLERY if path.parent.name == "tasks"]) >= 3


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_examples_begin_with_a_title_and_need_no_data(path):
    text = path.read_text(encoding="utf-8")
    title = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert title[1] == "=" * len(title[0])
    assert "IKPCA_DATA" not in text
    assert "fetch" not in text


ROOMS = (
    "kernels", "gains", "preimages", "reduced_sets", "measures", "applications", "datasets",
    "figures", "errors", "dask",
)  # fmt: skip
PUBLIC = ("ikpca", *(f"ikpca.{room}" for room in ROOMS))


@pytest.mark.parametrize("room", PUBLIC)
def test_every_public_name_is_in_the_reference(room):
    listed = listed_names()
    names = {name for name in importlib.import_module(room).__all__ if name != "__version__"}
    missing = {name for name in names if f"{room}.{name}" not in listed}
    assert not missing, f"add to docs/reference: {sorted(missing)}"
