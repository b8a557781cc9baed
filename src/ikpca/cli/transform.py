"""``ikpca transform``: rows as a model's components see them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from ikpca.cli.options import Asf, Grey, Json, Quiet, Rows

__all__ = ["transform"]


def transform(
    model: Annotated[Path, typer.Argument(help="A model file that 'ikpca fit' wrote.")],
    rows: Rows,
    out: Annotated[
        str, typer.Option("--out", "-o", help="Projections: .npy, .npz, .csv or .parquet.")
    ],
    grey: Grey = False,
    asf: Asf = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Project rows on the components of a model.

    Pictures are scaled as they were in the fit.

    Example: ikpca transform faces.ikpca faces/ --out projections.csv
    """
    from ikpca.cli.models import check_columns, forms_of, open_model
    from ikpca.cli.report import Report
    from ikpca.cli.waiting import bar
    from ikpca.datasets import PictureForm, check_target, read_table, write_table

    with Report(quiet, as_json) as report:
        check_target(out)
        fitted = open_model(model, "transform")
        table = read_table(rows, grey=grey, asf=asf)
        check_columns(fitted, table, rows, model)
        form = forms_of(fitted)
        if isinstance(form, PictureForm) and form.scaled:
            table = table.scaled()
        with bar("Projecting", shown=report.shows_progress), warnings.catch_warnings():
            # That rows come without names is our doing; they were compared above.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            projections = fitted.transform(table.rows)
        write_table(out, projections, _names(fitted, projections.shape[1]))
        report.show(
            {
                "model": str(model),
                "input": rows,
                "rows": len(projections),
                "components": projections.shape[1],
            },
            f"{len(projections)} rows on {projections.shape[1]} components.",
            wrote=[out],
        )


def _names(fitted: object, n_components: int) -> list[str]:
    """As scikit-learn names them: kernelpca0, kernelpca1 and so on."""
    ask = getattr(fitted, "get_feature_names_out", None)
    if ask is None:
        return [f"component{number}" for number in range(n_components)]
    return [str(name) for name in ask()]
