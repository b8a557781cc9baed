"""``ikpca inverse``: rows for projections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ikpca.cli.options import Json, Quiet

__all__ = ["inverse"]


def inverse(
    model: Annotated[Path, typer.Argument(help="A model file that 'ikpca fit' wrote.")],
    projections: Annotated[
        str,
        typer.Argument(help="What 'ikpca transform' wrote: .npy, .npz:member, .csv or .parquet."),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            help="Rows: .npy, .npz, .csv, .parquet; for a model of pictures also a new folder of "
            "them; for one of motion also .amc.",
        ),
    ],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the rows, pictures or frames that projections stand for.

    Example: ikpca inverse faces.ikpca projections.csv --out faces_again/
    """
    from ikpca.cli.models import forms_of, open_model
    from ikpca.cli.report import Report
    from ikpca.cli.waiting import bar
    from ikpca.datasets import check_target, read_table, write_table, written_files
    from ikpca.errors import InvalidInput

    with Report(quiet, as_json) as report:
        fitted = open_model(model, "inverse_transform")
        form = forms_of(fitted)
        # The slash that shells add to a folder is part of no file name.
        out = out.rstrip("/") if len(out) > 1 else out
        table = read_table(projections)
        check_target(out, form, len(table.rows))
        expected = len(fitted.get_feature_names_out())
        if table.rows.shape[1] != expected:
            raise InvalidInput(
                f"{projections}: has {table.rows.shape[1]} columns, and {model} has {expected} "
                "components; pass what 'ikpca transform' wrote."
            )
        with bar("Finding rows", shown=report.shows_progress):
            rows = fitted.inverse_transform(table.rows)
        names = getattr(fitted, "feature_names_in_", None)
        write_table(out, rows, None if names is None else list(names), form)
        report.show(
            {
                "model": str(model),
                "projections": projections,
                "rows": len(rows),
                "columns": rows.shape[1],
            },
            f"{len(rows)} rows × {rows.shape[1]} columns.",
            wrote=written_files(out),
        )
