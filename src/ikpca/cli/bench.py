"""``ikpca bench``: ways to do kernel PCA, side by side on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ikpca.cli.options import Json, Quiet

if TYPE_CHECKING:
    from ikpca.experiments.bench import BenchResult

__all__ = ["bench"]


def bench(
    rows: Annotated[int, typer.Option("--rows", help="How many rows.")] = 2000,
    components: Annotated[
        int, typer.Option("--n-components", "-n", help="How many components.")
    ] = 16,
    threads: Annotated[int, typer.Option("--threads", help="Threads, in every process.")] = 1,
    full: Annotated[bool, typer.Option("--full", help="With further contestants.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            envvar="IKPCA_DATA",
            help="Folder that has mnist.npz; without it, scikit-learn's digits with noise.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write the table to a .json file.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Time kernel PCA of ikpca, scikit-learn and others, each in a process of its own.

    Example: ikpca bench --rows 5000 --threads 2
    """
    import json

    from ikpca.cli.report import Report
    from ikpca.cli.waiting import bar
    from ikpca.errors import InvalidInput
    from ikpca.experiments.bench import BenchSpec, run_bench
    from ikpca.storage import check_place, written_whole

    with Report(quiet, as_json) as report:
        spec = BenchSpec(rows, components, threads, full, data)
        if data is not None and not data.is_dir():
            raise InvalidInput(f"{data}: there is no such folder; name one that has mnist.npz.")
        if out is not None:
            check_place(out)
        with bar("Contestants", shown=report.shows_progress) as move:
            result = run_bench(spec, lambda done, total, name: move(done, total))
        if out is not None:
            with written_whole(out) as file:
                file.write((json.dumps(result.document(), indent=2) + "\n").encode())
        report.show(
            result.document(),
            f"{result.data}, {rows} rows, Gaussian kernel, {components} components, "
            f"{threads} thread{'s' * (threads != 1)}",
            _table(result),
            *[f"{name} is left out of so many rows." for name in result.left_out],
            wrote=[] if out is None else [out],
        )


def _table(result: BenchResult) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("method")
    for head in ("seconds", "entries ÷ l²", "peak MB", "excess error"):
        table.add_column(head, justify="right")
    for row in result.rows:
        table.add_row(
            row.name,
            f"{row.seconds:.2f}",
            "–" if row.entries is None else f"{row.entries:.2f}",
            "–" if row.peak_bytes is None else f"{row.peak_bytes / 1e6:.0f}",
            f"{row.excess_error:.1e}",
        )
    return table
