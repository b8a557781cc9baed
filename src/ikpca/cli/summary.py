"""The table of the demonstration, and what stands below it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from ikpca.experiments import DemoResult, Run

__all__ = ["show"]

#: For pipes and logs, which have no width of their own.
_WIDTH = 100


def show(result: DemoResult, files: Sequence[Path]) -> None:
    """Print to standard output."""
    console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
    console.print()
    console.print(_table(result))
    versions = ", ".join(f"{name} {number}" for name, number in result.versions.items())
    console.print(
        "Each method ran in its own process; compiling and measuring are not counted.\n"
        "Memory is the peak above the loaded data.",
        style="dim",
    )
    console.print(f"BLAS threads: {result.threads} (pinned); seed: {result.spec.seed}")
    console.print(f"Versions: {versions}")
    # Paths are for copying: neither wrapped nor read as markup.
    for path in files:
        console.print(f"Wrote {path}", soft_wrap=True, markup=False)


def _table(result: DemoResult) -> Table:
    spec = result.spec
    table = Table(
        title="[bold]Excess error after so many passes, and what the fit cost[/bold]\n"
        f"Digits, {spec.rows} × {result.features}; Gaussian kernel, σ = {spec.sigma:g}; "
        f"{spec.components} components",
        title_style="",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        # The box has its own space between columns; with no more than that, 80 characters do.
        padding=0,
        pad_edge=False,
    )
    table.add_column("\nmethod")
    for number in spec.checkpoints:
        table.add_column(f"pass\n{number}", justify="right")
    for heading in ("fit\nseconds", "entries\nof K", "\n÷ l²", "peak\nMB"):
        table.add_column(heading, justify="right")
    for run in result.runs:
        table.add_row(*_cells(run, result))
    return table


def _cells(run: Run, result: DemoResult) -> list[str]:
    spec = result.spec
    errors = [run.excess_after(number, spec.passes) for number in spec.checkpoints]
    return [
        run.label,
        *("–" if error is None else f"{error:.1e}" for error in errors),
        f"{run.seconds:.2f}",
        f"{run.entries / 1e6:.1f} M",
        f"{run.entries / spec.rows**2:.2f}",
        "–" if run.peak_megabytes is None else f"{run.peak_megabytes:.1f}",
    ]
