"""``ikpca transform``, ``ikpca inverse`` and ``ikpca info``."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from ikpca.cli.models import (
    check_output,
    load_model,
    read_rows,
    stored_encoder,
    stored_input_form,
    write_results,
    write_rows,
)
from ikpca.cli.options import Force, Gray, Id, Json, Model, Quiet, Rows
from ikpca.cli.output import check_outputs, reporting, rows_without_names

_CORE = ("numpy", "scipy", "scikit-learn", "numba", "threadpoolctl", "joblib", "safetensors")
#: A module of each optional dependency for users.
_EXTRAS = {
    "cli": "typer", "plot": "matplotlib", "images": "skimage", "pictures": "PIL",
    "parquet": "pyarrow", "zarr": "zarr", "dask": "distributed",
}  # fmt: skip


def transform(
    model: Model,
    rows: Rows,
    out: Annotated[
        str, typer.Option("--out", "-o", help="Projections: .npy, .npz, .csv or .parquet.")
    ],
    ids: Id = None,
    gray: Gray = False,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Project rows on the components of a model.

    Tables are encoded, and pictures scaled, as they were in the fit.

    Example: ikpca transform faces.ikpca faces/ --out projections.csv
    """
    with reporting(quiet, as_json) as report:
        check_outputs([out], [model, rows], force=force)
        check_output(out, ids)
        fitted = load_model(model, "transform")
        encoder, form = stored_encoder(fitted), stored_input_form(fitted)
        table = read_rows(rows, encoder, form, model, ids=ids, gray=gray)
        with report.progress("Projecting"), rows_without_names():
            projections = fitted.transform(table.rows)
        n_rows, n_components = projections.shape
        write_rows(out, projections, list(fitted.get_feature_names_out()), table.ids)
        report.show(
            {"model": model, "input": rows, "rows": n_rows, "components": n_components},
            f"{n_rows} rows on {n_components} components.",
            wrote=[out],
        )


def inverse(
    model: Model,
    projections: Annotated[
        str, typer.Argument(help="Projections: .npy, .npz:member, .csv or .parquet.")
    ],
    out: Annotated[
        str,
        typer.Option("--out", "-o", help="Rows: .npy, .npz, .csv, .parquet; pictures: a folder."),
    ],
    ids: Id = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Transform projections back to rows or pictures, in the units of the input.

    Example: ikpca inverse faces.ikpca projections.csv --out faces_again/
    """
    import numpy as np

    from ikpca.columns import ColumnEncoder
    from ikpca.tables import check_target, write_table

    with reporting(quiet, as_json) as report:
        # Shells complete folders with a slash.
        out = out.rstrip("/" + os.sep) if len(out) > 1 else out
        # A folder of pictures must be empty.
        check_outputs([] if os.path.isdir(out) else [out], [model, projections], force=force)
        fitted = load_model(model, "inverse_transform")
        form, encoder = stored_input_form(fitted), stored_encoder(fitted)
        components = ColumnEncoder(tuple(fitted.get_feature_names_out()), ids=encoder.ids)
        table = components.read(projections, ids=ids, model=str(model))
        if form is None:
            check_output(out, ids, text=encoder.categories)
        check_target(out, form, len(table.rows))
        with report.progress("Finding rows"):
            rows = fitted.inverse_transform(table.rows)
        if form is not None:
            write_table(out, rows, form=form)
        elif encoder.categories:
            write_results(out, table.ids, encoder.decode(rows))
        else:
            rows = np.column_stack([*encoder.decode(rows).values()])
            write_rows(out, rows, encoder.names, table.ids, header=encoder.n_columns is None)
        n_rows, n_columns = len(rows), len(encoder.names)
        report.show(
            {"model": model, "projections": projections, "rows": n_rows, "columns": n_columns},
            f"{n_rows} rows × {n_columns} columns.",
            wrote=[out],
        )


def info(
    model: Annotated[
        Path | None, typer.Argument(help="A model file; without it, the installation.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show versions, threads, memory and extras; or describe a model file.

    A model file is checked and described without creating the model.

    Example: ikpca info faces.ikpca
    """
    from ikpca.model_files import describe_model_file

    with reporting(quiet, as_json) as report:
        if model is None:
            document = _installation()
        else:
            description = describe_model_file(model)
            document = {"file": model, "bytes": model.stat().st_size, **description}
        report.show(document, _table(document))


def _installation() -> dict[str, Any]:
    # Loaded, so that threadpoolctl finds their threads.
    import numpy  # noqa: F401
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    from ikpca.gram.memory import DEFAULT_MEMORY_FRACTION, machine_memory

    memory = machine_memory()
    return {
        "versions": {
            "ikpca": version("ikpca"),
            "python": platform.python_version(),
            **{name: version(name) for name in _CORE},
        },
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processors": os.cpu_count(),
            "threads of BLAS and OpenMP": {
                Path(pool["filepath"]).name: pool["num_threads"] for pool in threadpool_info()
            },
            "memory in GB": round(memory / 1e9, 1),
            "memory of a fit in GB": round(DEFAULT_MEMORY_FRACTION * memory / 1e9, 1),
        },
        "extras": {
            extra: f"missing: pip install 'ikpca[{extra}]'"
            if find_spec(name) is None
            else "present"
            for extra, name in _EXTRAS.items()
        },
    }


def _table(document: dict[str, Any]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, padding=(0, 1), pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in document.items():
        if not isinstance(value, dict):
            table.add_row(key, str(value))
            continue
        table.add_row(key, "")
        for name, part in value.items():
            pairs = (
                [f"{key}: {each}" for key, each in part.items()]
                if isinstance(part, dict)
                else [part]
            )
            table.add_row(f"  {name}", ", ".join(map(str, pairs)) or "none")
    return table
