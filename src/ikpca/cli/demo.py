"""``ikpca demo``: the Hebbian family on handwritten digits, against the exact solution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ikpca.cli.failures import check_drawing

if TYPE_CHECKING:
    from ikpca.experiments import DemoResult, DemoSpec

__all__ = ["demo"]

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
    check_drawing()
    # Imported here, so that asking for help costs no numerics and no plotting.
    from ikpca.cli.summary import show
    from ikpca.errors import InvalidInput
    from ikpca.experiments import ContestantFailed, DemoSpec

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
    from ikpca.experiments import prepare_folder

    try:
        prepare_folder(out)
    except OSError as error:
        reason = "is not a folder" if _on_a_file(out) else f"{error.strerror}".lower()
        raise _stop(f"--out {out}: {reason}; name a folder to write to.", _MISTAKE) from error


def _on_a_file(out: Path) -> bool:
    return any(part.exists() and not part.is_dir() for part in (out, *out.parents))


def _run(spec: DemoSpec) -> DemoResult:
    from ikpca.cli.progress import progress
    from ikpca.experiments import run_demo

    with progress(spec) as announce:
        return run_demo(spec, announce)


def _write(result: DemoResult, out: Path) -> list[Path]:
    """Table and plot; a disk that fills up meanwhile is told of in one sentence, too."""
    from ikpca.experiments import as_csv, as_json, write_whole
    from ikpca.figures import demo_convergence, png

    contents: dict[Path, str | bytes] = {
        out / "convergence.png": png(demo_convergence(result)),
        out / "table.csv": as_csv(result),
        out / "table.json": as_json(result),
    }
    try:
        for path, content in contents.items():
            write_whole(path, content)
    except OSError as error:
        raise _stop(f"cannot write to {out}: {error.strerror}.", _FAILED) from error
    return list(contents)


def _stop(sentence: str, code: int) -> typer.Exit:
    typer.echo(f"ikpca demo: {sentence}", err=True)
    return typer.Exit(code)
