"""``ikpca plot``: scores, spectrum and loadings of a model as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ikpca.cli import options as opt
from ikpca.cli.models import load_model, read_rows
from ikpca.cli.output import UsageError, check_outputs, reporting

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SUFFIXES = (".png", ".pdf", ".svg")
#: Maximum number of different texts with a color each.
_MAX_COLORS = 20


def plot(
    model: opt.Model,
    rows: opt.Rows,
    out: Annotated[Path, typer.Option("--out", "-o", help="A .png, .pdf or .svg file.")],
    color: Annotated[
        str | None, typer.Option(help="Column of numbers or text that colors the rows.")
    ] = None,
    components: Annotated[str, typer.Option(help="Two or three components, such as 1,3.")] = "1,2",
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Plot the scores of rows, the explained variance, and the loadings of columns.

    The loading of a column is its change, from two standard deviations below the mean to two above
    it along a component, computed from pre-images.

    Example: ikpca plot wine.ikpca wine.csv --color cultivar --out scores.png
    """
    with reporting(quiet, as_json) as report:
        check_outputs([out], [model, rows], force=force)
        check_picture(out, "--out")
        fitted, encoder = load_model(model, "transform")
        numbers = _parse_components(components, len(fitted.get_feature_names_out()))
        table = read_rows(rows, encoder, model, ids=color)
        labels = None if color is None else _labels(color, table.ids, rows)
        with report.progress("Plotting"):
            projections = fitted.transform(table.rows)
            figure = plotting().score_page(
                fitted,
                projections,
                labels,
                names=table.names,
                numbers=numbers,
            )
            save_figure(figure, out)
        report.show(
            {"model": model, "input": rows, "rows": len(projections), "components": components},
            f"{len(projections)} rows on components {components}.",
            wrote=[out],
        )


def plotting() -> Any:
    """Import the plots, or raise an error with the install command."""
    try:
        from ikpca import plotting as module
    except ImportError as error:
        raise UsageError(str(error)) from None
    return module


def check_picture(path: Path, flag: str) -> None:
    """Raise an error, before the work, if a figure could not be drawn."""
    if path.suffix.lower() not in _SUFFIXES:
        raise UsageError(f"{flag}: {path} is not a {', '.join(_SUFFIXES)} file.")
    plotting()


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure atomically."""
    from ikpca.model_files import atomic_write

    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)


def _parse_components(text: str, n_components: int) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (2, 3) or not all(part.isdecimal() for part in parts):
        raise UsageError(f"--components={text!r}: must be two or three numbers, such as 1,2.")
    numbers = [int(part) for part in parts]
    if not all(1 <= number <= n_components for number in numbers):
        raise UsageError(f"--components={text!r}: the model has components 1 to {n_components}.")
    return [number - 1 for number in numbers]


def _labels(color: str, columns: Any, source: str) -> NDArray[Any]:
    """Return one number or text per row."""
    import numpy as np

    from ikpca.errors import InvalidInput

    if len(columns) != 1:
        raise UsageError(f"--color={color!r}: must be one column, not {', '.join(columns)}.")
    (values,) = columns.values()
    empty = np.array([value is None or value == "" for value in values])
    try:
        numbers = np.where(empty, np.nan, values).astype(np.float64)
    except ValueError:
        texts = np.where(empty, "–", values).astype(str)
        different = len(np.unique(texts))
        if different > _MAX_COLORS:
            raise InvalidInput(
                f"{source}: column {color!r} has {different} different texts; choose a column of "
                f"numbers, or of at most {_MAX_COLORS} texts."
            ) from None
        return texts
    whole = np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()
    return numbers.astype(np.int64) if whole else numbers
