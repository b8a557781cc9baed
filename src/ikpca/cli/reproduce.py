"""``ikpca reproduce``: the papers' experiments, their claims, and one page."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ikpca.cli.failures import FAILED, Mistake, Stop, check_drawing, naming_mistakes

if TYPE_CHECKING:
    from ikpca.experiments.runner import Job
    from ikpca.reports import Chapter

__all__ = ["reproduce"]

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
        from ikpca.cli.claims import show_list

        show_list(as_json)
        return
    check_drawing()
    with naming_mistakes():
        prepared = _prepare(names or [], size, out, data, seed)
    failures = _run(prepared, jobs, quiet or as_json, size, out)
    page, told = _write(out, size, failures)
    _tell(page, told, as_json, quiet)
    for reason in failures.values():
        typer.echo(f"ikpca reproduce: {reason}", err=True)
    if failures:
        raise typer.Exit(FAILED)


def _size(*, quick: bool, embedded: bool, real: bool) -> str:
    wanted = {"quick": quick, "embedded": embedded, "real": real}
    chosen = [name for name, asked in wanted.items() if asked]
    if len(chosen) > 1:
        both = " and ".join(f"--{name}" for name in chosen)
        raise Mistake(f"{both} exclude each other; choose one size.")
    return chosen[0] if chosen else "quick"


def _prepare(names: list[str], size: str, out: Path, data: Path | None, seed: int) -> list[Job]:
    """Everything that can be refused is refused here, before any work."""
    from ikpca.experiments import prepare_folder
    from ikpca.experiments.registry import EXPERIMENTS
    from ikpca.experiments.runner import prepare
    from ikpca.experiments.specification import find_spec

    for name in names:
        find_spec(name)
    if data is not None and not data.is_dir():
        raise Mistake(f"--data {data}: is no folder; name the folder of the data.")
    try:
        prepare_folder(out)
    except OSError as error:
        reason = f"{error.strerror}".lower()
        raise Mistake(f"--out {out}: {reason}; name a folder to write to.") from error
    wanted = dict.fromkeys(names) or EXPERIMENTS
    return [prepare(name, size, out, data, seed) for name in wanted]


def _run(prepared: list[Job], jobs: int, silent: bool, size: str, out: Path) -> dict[str, str]:
    from joblib import cpu_count

    from ikpca.cli.bars import bars
    from ikpca.experiments.runner import run_jobs

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
        raise Stop(sentence, _INTERRUPTED) from None
    except OSError as error:
        raise Stop(f"cannot write to {out}: {error.strerror}.") from error


def _write(out: Path, size: str, failures: dict[str, str]) -> tuple[Path, list[Chapter]]:
    from ikpca import reports
    from ikpca.experiments import write_whole

    told = list(reports.chapters(out, size, failures))
    place = out / size
    try:
        place.mkdir(parents=True, exist_ok=True)
        for chapter in told:
            for picture in chapter.pictures:
                write_whole(place / chapter.spec.id / picture.name, picture.content)
        write_whole(place / "claims.json", reports.as_json(told))
        write_whole(place / "index.html", reports.page(told))
    except OSError as error:
        raise Stop(f"cannot write to {out}: {error.strerror}.") from error
    return place / "index.html", told


def _tell(page: Path, told: list[Chapter], as_json: bool, quiet: bool) -> None:
    from ikpca import reports
    from ikpca.cli.claims import show_claims

    if as_json:
        typer.echo(reports.as_json(told), nl=False)
        return
    if not quiet:
        show_claims(told)
    typer.echo(f"Page: {page}")
