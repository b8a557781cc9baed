"""Commands that apply and describe models: ``transform``, ``inverse``, ``plot``, ``info``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ikpca.cli import options as opt
from ikpca.cli.models import load_model, read_rows
from ikpca.cli.output import UsageError, check_outputs, reporting

if TYPE_CHECKING:
    from pandas import DataFrame

    from ikpca.columns import Cells
_PICTURE_SUFFIXES = (".png", ".pdf", ".svg")
#: Maximum number of different texts with a color each.
_MAX_COLORS = 20
#: Maximum length of the text of a value.
_MAX_LENGTH = 60


def transform(
    model: opt.Model,
    rows: opt.Rows,
    out: opt.TableOut,
    ids: opt.Id = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Project rows on the components of a model.

    Tables are encoded as they were in the fit.

    Example: ikpca transform faces.ikpca faces.npy --out projections.csv
    """
    from ikpca.cli.files import check_target, write_table

    with reporting(quiet, as_json) as report:
        check_outputs([out], [model, rows], force=force)
        check_target(out, ids)
        fitted, encoder = load_model(model, "transform")
        table = read_rows(rows, encoder, model, ids=ids)
        with report.progress("Projecting"):
            projections = fitted.transform(table.rows)
        names = fitted.get_feature_names_out()
        write_table(out, dict(zip(names, projections.T, strict=True)), table.ids)
        n_rows, n_components = projections.shape
        report.show(
            {"model": model, "input": rows, "rows": n_rows, "components": n_components},
            f"{n_rows} rows on {n_components} components.",
            wrote=[out],
        )


def inverse(
    model: opt.Model,
    projections: Annotated[str, typer.Argument(help="Projections that 'ikpca transform' wrote.")],
    out: opt.TableOut,
    ids: opt.Id = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Transform projections back to rows, in the units of the input.

    Example: ikpca inverse faces.ikpca projections.csv --out faces_again.npy
    """
    from ikpca.cli.files import check_target, write_table
    from ikpca.columns import ColumnEncoder

    with reporting(quiet, as_json) as report:
        check_outputs([out], [model, projections], force=force)
        fitted, encoder = load_model(model, "inverse_transform")
        components = ColumnEncoder(tuple(fitted.get_feature_names_out()), ids=encoder.ids)
        table = read_rows(projections, components, model, ids=ids)
        check_target(out, ids, text=encoder.categories)
        with report.progress("Finding rows"):
            columns = encoder.decode(fitted.inverse_transform(table.rows))
        write_table(out, columns, table.ids, names=not table.ids.empty or encoder.n_columns is None)
        n_rows, n_columns = len(table.rows), len(columns)
        report.show(
            {"model": model, "projections": projections, "rows": n_rows, "columns": n_columns},
            f"{n_rows} rows × {n_columns} columns.",
            wrote=[out],
        )


def plot(
    model: opt.Model,
    rows: opt.Rows,
    out: Annotated[Path, typer.Option("--out", "-o", help="A .png, .pdf or .svg file.")],
    color: Annotated[
        str | None, typer.Option(help="Column of numbers or text that colors the rows.")
    ] = None,
    components: Annotated[tuple[int, int], typer.Option(help="Two components, from 1.")] = (1, 2),
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
        n_components = len(fitted.get_feature_names_out())
        if not all(1 <= number <= n_components for number in components):
            raise UsageError(f"--components: the model has components 1 to {n_components}.")
        table = read_rows(rows, encoder, model, ids=color)
        labels = None if color is None else _labels(color, table.ids, rows)
        with report.progress("Plotting"):
            from ikpca.plotting import score_page

            projections = fitted.transform(table.rows)
            pair = components[0] - 1, components[1] - 1
            page = score_page(fitted, projections, labels, names=table.names, pair=pair)
            save_figure(page, out)
        report.show(
            {"model": model, "input": rows, "rows": len(projections), "components": components},
            f"{len(projections)} rows on components {components[0]} and {components[1]}.",
            wrote=[out],
        )


def check_picture(path: Path, flag: str) -> None:
    """Raise an error, before the work, if a figure could not be drawn."""
    if path.suffix.lower() not in _PICTURE_SUFFIXES:
        raise UsageError(f"{flag}: {path} is not a {', '.join(_PICTURE_SUFFIXES)} file.")
    try:
        import ikpca.plotting  # noqa: F401
    except ImportError as error:
        raise UsageError(str(error)) from None


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure atomically."""
    from ikpca.model_files import atomic_write

    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)


def _labels(color: str, ids: DataFrame, source: str) -> Cells:
    """Return one number or text per row."""
    import numpy as np

    from ikpca.errors import InvalidInput

    if len(ids.columns) != 1:
        raise UsageError(f"--color={color!r}: must be one column, not {', '.join(ids)}.")
    cells = ids.iloc[:, 0]
    cells = cells.where(cells.notna() & (cells != ""), np.nan)
    try:
        numbers = cells.to_numpy(np.float64)
    except (TypeError, ValueError):
        texts = cells.fillna("–").to_numpy(str)
        n_texts = len(np.unique(texts))
        if n_texts > _MAX_COLORS:
            raise InvalidInput(
                f"{source}: column {color!r} has {n_texts} different texts; choose a column of "
                f"numbers, or of at most {_MAX_COLORS} texts."
            ) from None
        return texts
    is_whole = np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()
    return numbers.astype(np.int64) if is_whole else numbers


def info(
    path: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Describe a model file.

    Example: ikpca info faces.ikpca
    """
    from ikpca.model_files import load, read_file

    with reporting(quiet, as_json) as report:
        model = load(path)
        parameters = model.get_params(deep=False)
        fitted = {name for name in vars(model) if not name.startswith("_")} - {*parameters}
        document = {
            "file": path,
            "bytes": path.stat().st_size,
            "class": type(model).__name__,
            "written_by": f"ikpca {read_file(path)[0]['library_version']!r}",
            "parameters": {name: _text(value) for name, value in parameters.items()},
            "attributes": {name: _text(getattr(model, name)) for name in sorted(fitted)},
        }
        report.show(document, *_lines(document))


def _text(value: object) -> str:
    """Return a number or a short text, or type and size of an array or a list."""
    if isinstance(value, list):
        return f"list of {len(value)}"
    if hasattr(value, "dtype") and hasattr(value, "shape") and value.shape:
        return f"{value.dtype} of {' × '.join(map(str, value.shape))}"
    text = " ".join((str if isinstance(value, Real) else repr)(value).split())
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"


def _lines(document: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}"
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{indent + key:<30}{value}"
