"""README: snippets run, links exist, numbers and figure are reproducible."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
LINKS = re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", TEXT)


def test_readme_is_short():
    assert len(TEXT.splitlines()) <= 100


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_snippets_run_without_warnings(number, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SNIPPETS[number]],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("target", "heading"), LINKS)
def test_links_exist(target, heading):
    assert (ROOT / target).exists()
    if heading:
        titles = re.findall(r"^#+ (.+)$", (ROOT / target).read_text(encoding="utf-8"), re.MULTILINE)
        assert heading in [title.lower().replace(" ", "-") for title in titles]


def test_commands_are_targets_of_the_makefile():
    commands = set(re.findall(r"\bmake ([a-z-]+)", TEXT))
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"run", "test", "docs"} <= commands <= {*targets}


def test_figures_are_those_of_the_record():
    record = json.loads((ROOT / "docs/benchmarks/records/frontier_pictures.json").read_text())
    rows = [
        f"| {row['name']} | {row['seconds']:.1f} | {row['peak_bytes'] / 1e6:.0f} "
        f"| {abs(row['excess_error']):.1e} |"
        for row in record["table"]
    ]
    shown = TEXT.partition("## Benchmarks")[2].partition("\n## ")[0]
    lines = [line for line in shown.splitlines() if line.startswith("| ")][2:]
    assert lines
    assert {*lines} <= {*rows}
    assert f"{record['rows']:,} rows of {record['data']}" in shown


def test_figure_equals_output_of_its_script(tmp_path):
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    import numpy as np

    script = ROOT / "docs" / "readme_picture.py"
    subprocess.run([sys.executable, script, tmp_path / "now.png"], check=True)
    kept, now = (
        np.asarray(image.open(path).convert("L"), dtype=float)
        for path in (ROOT / "docs" / "_static" / "one_picture.png", tmp_path / "now.png")
    )
    assert kept.shape == now.shape
    # Another version may place a letter otherwise; another picture differs by tens of gray levels
    # wherever there are points.
    assert np.abs(kept - now).mean() < 2
