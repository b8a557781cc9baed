"""``ikpca transform`` and ``ikpca inverse``."""

from __future__ import annotations

from typing import Annotated

import typer

from ikpca.cli import options as opt
from ikpca.cli.models import load_model, read_rows
from ikpca.cli.output import check_outputs, reporting


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
        n_rows, n_components = projections.shape
        names = fitted.get_feature_names_out()
        write_table(out, dict(zip(names, projections.T, strict=True)), table.ids)
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
        write_table(out, columns, table.ids, names=bool(table.ids) or encoder.n_columns is None)
        n_rows, n_columns = len(table.rows), len(columns)
        report.show(
            {"model": model, "projections": projections, "rows": n_rows, "columns": n_columns},
            f"{n_rows} rows × {n_columns} columns.",
            wrote=[out],
        )
