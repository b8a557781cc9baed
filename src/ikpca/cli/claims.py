"""Claims and experiments on the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ikpca.experiments.specification import specs
from ikpca.experiments.verdicts import Status

if TYPE_CHECKING:
    # The list of experiments can be had without what draws them.
    from ikpca.reports import Chapter

__all__ = ["show_claims", "show_list"]

#: For pipes and logs, which have no width of their own.
_WIDTH = 120
_STYLES = {Status.HOLDS: "green", Status.FAILS: "bold red", Status.NOT_RUN: "dim"}


def show_claims(told: Sequence[Chapter]) -> None:
    """A line per claim: the experiment, what the paper has, what was found."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("experiment", "claim", "paper", "ours", "verdict"):
        table.add_column(heading, overflow="fold")
    for chapter in told:
        for verdict in chapter.verdicts:
            texts = (chapter.spec.id, verdict.claim.id, verdict.claim.paper, verdict.ours)
            mark = Text(verdict.status.value, style=_STYLES[verdict.status])
            table.add_row(*(Text(text) for text in texts), mark)
    _console().print(table)


def show_list(as_json: bool) -> None:
    """The experiments there are, and what each runs on."""
    known = specs().values()
    if as_json:
        rows = [
            {"id": spec.id, "title": spec.title, "paper": spec.paper, "figure": spec.figure,
             "data": {size: chosen.data for size, chosen in spec.sizes.items()}}
            for spec in known
        ]  # fmt: skip
        typer.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("id", "title", "from", "data"):
        table.add_column(heading, overflow="fold")
    for spec in known:
        data = f"{spec.sizes['quick'].data}; real: {spec.sizes['real'].data}"
        texts = (spec.id, spec.title, f"{spec.paper}, {spec.figure}", data)
        table.add_row(*(Text(text) for text in texts))
    _console().print(table)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
