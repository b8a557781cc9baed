"""Command line: ``ikpca-papers``."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ikpca.cli.output import FAILED, CommandError, UsageError, run_app
from ikpca_papers.application_commands import denoise, upscale
from ikpca_papers.data_commands import as_usage_errors, data_app
from ikpca_papers.errors import DataUnavailable, SubprocessFailed

if TYPE_CHECKING:
    from rich.console import Console

    from ikpca_papers.report import ExperimentResult
    from ikpca_papers.runner import Job

#: For pipes and logs, which have no width of their own.
_WIDTH = 120


class Interrupted(CommandError):
    """Interrupt of a run that can be resumed."""

    code = 130


app = typer.Typer(
    name="ikpca-papers",
    help="Experiments and applications of three papers on kernel PCA.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success, 1 a failure, 2 an error in the command line, 130 Ctrl-C.",
)
app.add_typer(data_app, name="data")
app.command()(denoise)
app.command()(upscale)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"ikpca-papers {version('ikpca-papers')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Experiments and applications of three papers on iterative and incremental kernel PCA."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: list[str]) -> int:
    """Run the application and return its exit code."""
    return run_app(app, arguments, "ikpca-papers", (DataUnavailable, SubprocessFailed))


def main() -> None:
    """Run ``ikpca-papers``; an expected error is one sentence on standard error.

    The exit code is 0 for success, 1 for a failure, 2 for an error in the command line, 130 for an
    interrupt.
    """
    sys.exit(run(sys.argv[1:]))


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[IDS]...", help="Experiments; all by default.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small, nothing to download.")] = False,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="Full size, nothing to download.")
    ] = False,
    real: Annotated[bool, typer.Option("--real", help="The papers' data.")] = False,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the papers' data; IKPCA_DATA by default.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and the page.")] = Path(
        "results/reproduce"
    ),
    jobs: Annotated[int, typer.Option(help="Parts in parallel; 0: one per core.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of initial values, noise and splits.")] = 0,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the page.")] = False,
    record: Annotated[
        Path | None, typer.Option(help="File of verdicts; entries of these experiments change.")
    ] = None,
) -> None:
    """Run the papers' experiments and write one page with every figure.

    Finished parts are kept: the same command resumes an interrupted run. The exit code is 0 when
    everything ran, whether or not the claims hold; 1 when an experiment failed; 2 for an error in
    the command line; 130 after an interrupt.
    """
    # Imports are inside functions, so that help does not load numerical packages.
    size = _size(quick=quick, embedded=embedded, real=real)
    if listed:
        _print_experiments(as_json)
        return
    with as_usage_errors():
        prepared, failures = _prepare(names or [], size, out, data, seed)
    failures |= _run(prepared, jobs, quiet or as_json, size, out)
    page, results = _write_page(out, size, failures)
    if record is not None:
        _record(record, results, [job.spec.id for job in prepared])
    _print_summary(page, results, as_json, quiet)
    for reason in failures.values():
        typer.echo(f"ikpca-papers reproduce: {reason}", err=True)
    if failures:
        raise typer.Exit(FAILED)


def _size(*, quick: bool, embedded: bool, real: bool) -> str:
    flags = {"quick": quick, "embedded": embedded, "real": real}
    chosen = [name for name, is_set in flags.items() if is_set]
    if len(chosen) > 1:
        both = " and ".join(f"--{name}" for name in chosen)
        raise UsageError(f"{both} exclude each other; choose one size.")
    return chosen[0] if chosen else "quick"


def _print_experiments(as_json: bool) -> None:
    from ikpca_papers.claims import specs

    experiments = specs().values()
    if as_json:
        rows = [
            {"id": spec.id, "title": spec.title, "paper": spec.paper, "figure": spec.figure,
             "data": {size: chosen.data for size, chosen in spec.sizes.items()}}
            for spec in experiments
        ]  # fmt: skip
        typer.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    _print_table(
        ("id", "title", "from", "data"),
        [
            (spec.id, spec.title, f"{spec.paper}, {spec.figure}",
             f"{spec.sizes['quick'].data}; real: {spec.sizes['real'].data}")
            for spec in experiments
        ],
    )  # fmt: skip


def _prepare(
    names: list[str], size: str, out: Path, data: Path | None, seed: int
) -> tuple[list[Job], dict[str, str]]:
    """Check all arguments and plan the experiments, before any work.

    Experiments without their data fail, and the others run; if there are none, that is an error.
    """
    from ikpca_papers.claims import find_spec
    from ikpca_papers.runner import EXPERIMENTS, prepare

    for name in names:
        find_spec(name)
    if data is not None and not data.is_dir():
        raise UsageError(f"--data {data}: is not a folder; name the folder of the data.")
    _prepare_out(out)
    wanted = dict.fromkeys(names) or EXPERIMENTS
    jobs: list[Job] = []
    failures: dict[str, str] = {}
    for name in wanted:
        try:
            jobs.append(prepare(name, size, out, data, seed))
        except DataUnavailable as error:
            if len(failures) == len(wanted) - 1:
                raise
            failures[name] = f"{name}: {error}"
    return jobs, failures


def _prepare_out(out: Path) -> None:
    from ikpca_papers.runner import prepare_folder

    try:
        prepare_folder(out)
    except OSError as error:
        on_file = any(part.exists() and not part.is_dir() for part in (out, *out.parents))
        reason = "is not a folder" if on_file else f"{error.strerror}".lower()
        raise UsageError(f"--out {out}: {reason}; name a folder to write to.") from error


def _run(prepared: list[Job], jobs: int, silent: bool, size: str, out: Path) -> dict[str, str]:
    from joblib import cpu_count

    from ikpca_papers.runner import run_jobs

    try:
        with (
            warnings.catch_warnings(),
            _progress_bars([job.spec.id for job in prepared], silent=silent) as on_progress,
        ):
            # After an interrupt joblib warns about tasks that were started and not finished.
            warnings.filterwarnings("ignore", message=".*still being processed by the workers")
            return run_jobs(prepared, jobs if jobs > 0 else cpu_count(), on_progress)
    except KeyboardInterrupt:
        sentence = f"finished parts are kept in {out / size}: run the same command again to resume."
        raise Interrupted(sentence) from None
    except OSError as error:
        raise CommandError(f"cannot write to {out}: {error.strerror}.") from error


@contextmanager
def _progress_bars(
    names: Sequence[str], *, silent: bool
) -> Iterator[Callable[[str, int, int], None]]:
    """Show progress bars on standard error; yield the function that updates them."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<24}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=silent) as bars:
        total_task = bars.add_task("all parts", total=None)
        tasks = {name: bars.add_task(name, total=None) for name in names}
        counts: dict[str, tuple[int, int]] = {}

        def on_progress(name: str, done: int, total: int) -> None:
            counts[name] = (done, total)
            bars.update(tasks[name], completed=done, total=total)
            if done == total:
                bars.stop_task(tasks[name])
            all_done, all_parts = (sum(column) for column in zip(*counts.values(), strict=True))
            bars.update(total_task, completed=all_done, total=all_parts)

        yield on_progress


def _write_page(
    out: Path, size: str, failures: dict[str, str]
) -> tuple[Path, list[ExperimentResult]]:
    from ikpca_papers import report
    from ikpca_papers.runner import write_file

    results = list(report.experiment_results(out, size, failures))
    folder = out / size
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for result in results:
            for picture in result.pictures:
                write_file(folder / result.spec.id / picture.name, picture.content)
        write_file(folder / "claims.json", report.as_json(results))
        write_file(folder / "index.html", report.page(results))
    except OSError as error:
        raise CommandError(f"cannot write to {out}: {error.strerror}.") from error
    return folder / "index.html", results


def _record(path: Path, results: Sequence[ExperimentResult], names: Sequence[str]) -> None:
    from ikpca_papers import report

    try:
        report.record(path, [result for result in results if result.spec.id in names])
    except OSError as error:
        raise CommandError(f"cannot write to {path}: {error.strerror}.") from error


def _print_summary(
    page: Path, results: Sequence[ExperimentResult], as_json: bool, quiet: bool
) -> None:
    from ikpca_papers import report

    if as_json:
        typer.echo(report.as_json(results), nl=False)
        return
    if not quiet:
        _print_figures(results)
    typer.echo(f"Page: {page}")


def _print_figures(results: Sequence[ExperimentResult]) -> None:
    """Print one line per figure: the experiment, its figure, the verdict."""
    from rich.text import Text

    from ikpca_papers.claims import Status

    def style(result: ExperimentResult) -> str:
        failed = result.failure or any(one.status is Status.FAILS for one in result.verdicts)
        return "dim" if result.results is None else "bold red" if failed else "green"

    _print_table(
        ("experiment", "figure", "verdict"),
        [
            (result.spec.id, f"{result.spec.paper.split(',')[0]} {result.spec.figure}",
             Text(result.summary, style=style(result)))
            for result in results
        ],
    )  # fmt: skip


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    _console().print(table)


def _console() -> Console:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
