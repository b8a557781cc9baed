"""``ikpca transform``, ``ikpca inverse`` and ``ikpca info``."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ikpca.cli import options as opt
from ikpca.cli.models import check_output, load_model, read_rows, stored_encoder
from ikpca.cli.output import check_outputs, reporting, rows_without_names

if TYPE_CHECKING:
    from rich.table import Table

_CORE = ("numpy", "scipy", "scikit-learn", "numba", "threadpoolctl", "joblib", "safetensors")
#: A module of each optional dependency for users.
_EXTRAS = {
    "cli": "typer", "plot": "matplotlib", "parquet": "pyarrow", "zarr": "zarr",
    "dask": "distributed",
}  # fmt: skip


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
    from ikpca.cli.files import write_table

    with reporting(quiet, as_json) as report:
        check_outputs([out], [model, rows], force=force)
        check_output(out, ids)
        fitted = load_model(model, "transform")
        table = read_rows(rows, stored_encoder(fitted), model, ids=ids)
        with report.progress("Projecting"), rows_without_names():
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
    from ikpca.cli.files import write_table
    from ikpca.columns import ColumnEncoder

    with reporting(quiet, as_json) as report:
        check_outputs([out], [model, projections], force=force)
        fitted = load_model(model, "inverse_transform")
        encoder = stored_encoder(fitted)
        components = ColumnEncoder(tuple(fitted.get_feature_names_out()), ids=encoder.ids)
        table = read_rows(projections, components, model, ids=ids)
        check_output(out, ids, text=encoder.categories)
        with report.progress("Finding rows"):
            columns = encoder.decode(fitted.inverse_transform(table.rows))
        write_table(out, columns, table.ids, names=bool(table.ids) or encoder.n_columns is None)
        n_rows, n_columns = len(table.rows), len(columns)
        report.show(
            {"model": model, "projections": projections, "rows": n_rows, "columns": n_columns},
            f"{n_rows} rows × {n_columns} columns.",
            wrote=[out],
        )


def info(
    model: Annotated[
        Path | None, typer.Argument(help="A model file; without it, the installation.")
    ] = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
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


def _table(document: dict[str, Any]) -> Table:
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
