"""Command line of ikpca-papers: ``reproduce``."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from ikpca.cli.errors import FAILED, CommandError, UsageError, as_usage_errors, check_matplotlib
from ikpca_papers.claims import Status, specs
from ikpca_papers.runner import Announce

if TYPE_CHECKING:
    from ikpca_papers.report import ExperimentResult
    from ikpca_papers.runner import Job


@contextmanager
def bars(names: Sequence[str], *, silent: bool) -> Iterator[Announce]:
    """Show the bars on standard error; yields the function that moves them."""
    columns = (
        TextColumn("{task.description:<24}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=silent) as shown:
        everything = shown.add_task("all parts", total=None)
        tasks = {name: shown.add_task(name, total=None) for name in names}
        counts: dict[str, tuple[int, int]] = {}

        def announce(name: str, done: int, total: int) -> None:
            counts[name] = (done, total)
            shown.update(tasks[name], completed=done, total=total)
            if done == total:
                shown.stop_task(tasks[name])
            whole = [sum(column) for column in zip(*counts.values(), strict=True)]
            shown.update(everything, completed=whole[0], total=whole[1])

        yield announce


#: For pipes and logs, which have no width of their own.
_WIDTH = 120
_STYLES = {Status.HOLDS: "green", Status.FAILS: "bold red", Status.NOT_RUN: "dim"}


def show_claims(told: Sequence[ExperimentResult]) -> None:
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


_INTERRUPTED = 130


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
    jobs: Annotated[int, typer.Option(help="Parts side by side; 0: one per core.")] = 0,
    seed: Annotated[int, typer.Option(help="Of starts, noise and splits.")] = 0,
    listed: Annotated[bool, typer.Option("--list", help="Name the experiments and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the page.")] = False,
) -> None:
    """Run the papers' experiments and write one page with every claim.

    Finished parts are kept: the same command goes on where it stopped. The exit code is 0 when
    everything ran, whether or not the claims hold; 1 when an experiment failed; 2 for a mistake in
    the command line; 130 after an interrupt.
    """
    # What it takes is imported when it is needed: asking for help costs no numerics.
    size = _size(quick=quick, embedded=embedded, real=real)
    if listed:
        show_list(as_json)
        return
    check_matplotlib()
    with as_usage_errors():
        prepared = _prepare(names or [], size, out, data, seed)
    failures = _run(prepared, jobs, quiet or as_json, size, out)
    page, told = _write_page(out, size, failures)
    _print_summary(page, told, as_json, quiet)
    for reason in failures.values():
        typer.echo(f"ikpca reproduce: {reason}", err=True)
    if failures:
        raise typer.Exit(FAILED)


def _size(*, quick: bool, embedded: bool, real: bool) -> str:
    wanted = {"quick": quick, "embedded": embedded, "real": real}
    chosen = [name for name, asked in wanted.items() if asked]
    if len(chosen) > 1:
        both = " and ".join(f"--{name}" for name in chosen)
        raise UsageError(f"{both} exclude each other; choose one size.")
    return chosen[0] if chosen else "quick"


def _prepare(names: list[str], size: str, out: Path, data: Path | None, seed: int) -> list[Job]:
    """Everything that can be refused is refused here, before any work."""
    from ikpca_papers.claims import find_spec
    from ikpca_papers.runner import EXPERIMENTS, prepare, prepare_folder

    for name in names:
        find_spec(name)
    if data is not None and not data.is_dir():
        raise UsageError(f"--data {data}: is no folder; name the folder of the data.")
    try:
        prepare_folder(out)
    except OSError as error:
        reason = f"{error.strerror}".lower()
        raise UsageError(f"--out {out}: {reason}; name a folder to write to.") from error
    wanted = dict.fromkeys(names) or EXPERIMENTS
    return [prepare(name, size, out, data, seed) for name in wanted]


def _run(prepared: list[Job], jobs: int, silent: bool, size: str, out: Path) -> dict[str, str]:
    from joblib import cpu_count

    from ikpca_papers.runner import run_jobs

    try:
        with (
            warnings.catch_warnings(),
            bars([job.spec.id for job in prepared], silent=silent) as announce,
        ):
            # After an interrupt joblib wonders why so much was started.
            warnings.filterwarnings("ignore", message=".*still being processed by the workers")
            return run_jobs(prepared, jobs if jobs > 0 else cpu_count(), announce)
    except KeyboardInterrupt:
        sentence = f"finished parts are kept in {out / size}: run the same command again to go on."
        raise CommandError(sentence, _INTERRUPTED) from None
    except OSError as error:
        raise CommandError(f"cannot write to {out}: {error.strerror}.") from error


def _write_page(
    out: Path, size: str, failures: dict[str, str]
) -> tuple[Path, list[ExperimentResult]]:
    from ikpca_papers import report
    from ikpca_papers.runner import write_bytes

    told = list(report.experiment_results(out, size, failures))
    place = out / size
    try:
        place.mkdir(parents=True, exist_ok=True)
        for chapter in told:
            for picture in chapter.pictures:
                write_bytes(place / chapter.spec.id / picture.name, picture.content)
        write_bytes(place / "claims.json", report.as_json(told))
        write_bytes(place / "index.html", report.page(told))
    except OSError as error:
        raise CommandError(f"cannot write to {out}: {error.strerror}.") from error
    return place / "index.html", told


def _print_summary(page: Path, told: list[ExperimentResult], as_json: bool, quiet: bool) -> None:
    from ikpca_papers import report

    if as_json:
        typer.echo(report.as_json(told), nl=False)
        return
    if not quiet:
        show_claims(told)
    typer.echo(f"Page: {page}")
