"""``ikpca transform``, ``ikpca inverse`` and ``ikpca info``."""

from __future__ import annotations

import os
import platform
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import ikpca
from ikpca.cli.models import stored_input_form
from ikpca.cli.options import Grey, Json, Quiet, Rows
from ikpca.cli.output import reporting

if TYPE_CHECKING:
    from ikpca.estimators.base import SavedEstimator
    from ikpca.tables import Table

_CORE = ("numpy", "scipy", "scikit-learn", "numba", "threadpoolctl", "joblib", "safetensors")
#: A module of each optional dependency for users.
_EXTRAS = {
    "cli": "typer", "plot": "matplotlib", "images": "skimage", "pictures": "PIL",
    "parquet": "pyarrow", "zarr": "zarr", "river": "river", "dask": "distributed",
}  # fmt: skip
_Model: TypeAlias = Annotated[Path, typer.Argument(help="A model file that 'ikpca fit' wrote.")]


def transform(
    model: _Model,
    rows: Rows,
    out: Annotated[
        str, typer.Option("--out", "-o", help="Projections: .npy, .npz, .csv or .parquet.")
    ],
    grey: Grey = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Project rows on the components of a model.

    Pictures are scaled as they were in the fit.

    Example: ikpca transform faces.ikpca faces/ --out projections.csv
    """
    from ikpca.tables import check_target, read_table, write_table

    with reporting(quiet, as_json) as report:
        check_target(out)
        fitted = _load(model, "transform")
        table = read_table(rows, grey=grey)
        _check_columns(fitted, table, rows, model)
        form = stored_input_form(fitted)
        if form is not None and form.scaled:
            table = table.scaled()
        with report.progress("Projecting"), warnings.catch_warnings():
            # Names were compared above and are not part of the array.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            projections = fitted.transform(table.rows)
        n_rows, n_components = projections.shape
        write_table(out, projections, list(fitted.get_feature_names_out()))
        report.show(
            {"model": model, "input": rows, "rows": n_rows, "components": n_components},
            f"{n_rows} rows on {n_components} components.",
            wrote=[out],
        )


def inverse(
    model: _Model,
    projections: Annotated[
        str, typer.Argument(help="Projections: .npy, .npz:member, .csv or .parquet.")
    ],
    out: Annotated[
        str,
        typer.Option("--out", "-o", help="Rows: .npy, .npz, .csv, .parquet; pictures: a folder."),
    ],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Transform projections back to rows or pictures.

    Example: ikpca inverse faces.ikpca projections.csv --out faces_again/
    """
    from ikpca.errors import InvalidInput
    from ikpca.tables import check_target, read_table, write_table

    with reporting(quiet, as_json) as report:
        fitted = _load(model, "inverse_transform")
        form = stored_input_form(fitted)
        # Shells complete folders with a slash.
        out = out.rstrip("/" + os.sep) if len(out) > 1 else out
        table = read_table(projections)
        check_target(out, form, len(table.rows))
        expected = len(fitted.get_feature_names_out())
        if table.rows.shape[1] != expected:
            raise InvalidInput(
                f"{projections}: has {table.rows.shape[1]} columns, and {model} has {expected} "
                "components; pass projections from 'ikpca transform'."
            )
        with report.progress("Finding rows"):
            rows = fitted.inverse_transform(table.rows)
        n_rows, n_columns = rows.shape
        write_table(out, rows, getattr(fitted, "feature_names_in_", None), form)
        report.show(
            {"model": model, "projections": projections, "rows": n_rows, "columns": n_columns},
            f"{n_rows} rows × {n_columns} columns.",
            wrote=[out],
        )


def _load(path: Path, method: str) -> Any:
    """Load a model that has the method of a command."""
    from ikpca.errors import InvalidInput

    model = ikpca.load(path)
    if not hasattr(model, method):
        raise InvalidInput(
            f"{path}: a {type(model).__name__} has no {method}; pass a model that 'ikpca fit' "
            "wrote."
        )
    return model


def _check_columns(model: SavedEstimator, table: Table, source: str, path: Path) -> None:
    """Raise an error if rows have other columns or pictures than the training rows."""
    from ikpca.errors import InvalidInput

    form, wanted = table.form, stored_input_form(model)
    if form is not None and wanted is not None and form.shape != wanted.shape:
        raise InvalidInput(
            f"{source}: pictures are {form.description}, and {path} was fitted on "
            f"{wanted.description}; convert them."
        )
    columns, expected = table.rows.shape[1], model.n_features_in_
    if columns != expected:
        raise InvalidInput(
            f"{source}: has {columns} columns, and {path} was fitted on {expected}; pass rows with "
            "the same columns."
        )
    pairs = zip(table.names or (), getattr(model, "feature_names_in_", ()), strict=False)
    for number, (name, fitted) in enumerate(pairs, start=1):
        if name != fitted:
            raise InvalidInput(
                f"{source}: column {number} is {name!r}, and {path} was fitted on {fitted!r}; "
                "put the columns in the same order."
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

    from ikpca.gram import DEFAULT_MEMORY_FRACTION
    from ikpca.gram.memory import machine_memory

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
