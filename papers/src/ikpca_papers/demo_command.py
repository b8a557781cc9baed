"""``ikpca-papers demo``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from ikpca.cli.errors import check_matplotlib
from ikpca_papers.demo import CONTESTANTS, DENSE, DemoResult, DemoSpec, Run


@contextmanager
def progress(spec: DemoSpec) -> Iterator[Callable[[str, int, float], None]]:
    """Show the bars on standard error; yields the function that moves them."""
    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        TextColumn("{task.fields[seconds]:6.2f} s", style="progress.elapsed"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        # The reference runs first, so it stands first.
        tasks = {
            method: bars.add_task(
                CONTESTANTS[method], total=1 if method == DENSE else spec.passes, seconds=0.0
            )
            for method in sorted(CONTESTANTS, key=lambda method: method != DENSE)
        }

        def announce(method: str, done: int, seconds: float) -> None:
            bars.update(tasks[method], completed=done, seconds=seconds)

        yield announce


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


_FAILED, _MISTAKE = 1, 2


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the plot and the tables.")] = Path(
        "results/demo"
    ),
    passes: Annotated[int, typer.Option(help="Passes over the data.")] = 50,
    components: Annotated[int, typer.Option(help="Principal components.")] = 16,
    sigma: Annotated[float, typer.Option(help="Width of the Gaussian kernel.")] = 2.0,
    seed: Annotated[int, typer.Option(help="Of the start and the order of patterns.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads of BLAS, in every process.")] = 1,
    rows: Annotated[int, typer.Option(help="Use only the first so many digits.")] = 1797,
) -> None:
    """Compare KHA, KHA/t, KHA/et and KHA-SMD with the exact components of handwritten digits."""
    check_matplotlib()
    # Imported here, so that asking for help costs no numerics and no plotting.
    from ikpca.errors import InvalidInput
    from ikpca_papers.demo import DemoSpec
    from ikpca_papers.subprocesses import ContestantFailed

    try:
        spec = DemoSpec(components, passes, sigma, seed, threads, rows)
        _prepare(out)
        result = _run(spec)
    except InvalidInput as error:
        raise _stop(f"--{error}", _MISTAKE) from error
    except ContestantFailed as error:
        raise _stop(str(error), _FAILED) from error
    show(result, _write(result, out))


def _prepare(out: Path) -> None:
    from ikpca_papers.runner import prepare_folder

    try:
        prepare_folder(out)
    except OSError as error:
        reason = "is not a folder" if _on_a_file(out) else f"{error.strerror}".lower()
        raise _stop(f"--out {out}: {reason}; name a folder to write to.", _MISTAKE) from error


def _on_a_file(out: Path) -> bool:
    return any(part.exists() and not part.is_dir() for part in (out, *out.parents))


def _run(spec: DemoSpec) -> DemoResult:
    from ikpca_papers.demo import run_demo

    with progress(spec) as announce:
        return run_demo(spec, announce)


def _write(result: DemoResult, out: Path) -> list[Path]:
    """Table and plot; a disk that fills up meanwhile is told of in one sentence, too."""
    from ikpca_papers.demo import as_csv, as_json
    from ikpca_papers.figures.curves import demo_convergence
    from ikpca_papers.figures.style import png
    from ikpca_papers.runner import write_bytes

    contents: dict[Path, str | bytes] = {
        out / "convergence.png": png(demo_convergence(result)),
        out / "table.csv": as_csv(result),
        out / "table.json": as_json(result),
    }
    try:
        for path, content in contents.items():
            write_bytes(path, content)
    except OSError as error:
        raise _stop(f"cannot write to {out}: {error.strerror}.", _FAILED) from error
    return list(contents)


def _stop(sentence: str, code: int) -> typer.Exit:
    typer.echo(f"ikpca demo: {sentence}", err=True)
    return typer.Exit(code)
