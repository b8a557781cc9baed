"""``ikpca transform``, ``ikpca inverse`` and ``ikpca info``."""

from __future__ import annotations

import os
import platform
import warnings
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Any

import typer

from ikpca.cli.options import Grey, Json, Quiet, Rows

_CORE = ("numpy", "scipy", "scikit-learn", "numba", "threadpoolctl", "joblib", "safetensors")
#: Optional dependencies for users, without those for developers.
_EXTRAS = ("cli", "plot", "images", "pictures", "parquet", "zarr", "data", "river", "dask")


def transform(
    model: Annotated[Path, typer.Argument(help="A model file that 'ikpca fit' wrote.")],
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
    from ikpca.cli.models import check_columns, open_model, stored_input_form
    from ikpca.cli.output import Report, progress_bar
    from ikpca.tables import PictureFormat, check_target, read_table, write_table

    with Report(quiet, as_json) as report:
        check_target(out)
        fitted = open_model(model, "transform")
        table = read_table(rows, grey=grey)
        check_columns(fitted, table, rows, model)
        form = stored_input_form(fitted)
        if isinstance(form, PictureFormat) and form.scaled:
            table = table.scaled()
        with progress_bar("Projecting", shown=report.shows_progress), warnings.catch_warnings():
            # Names were compared above and are not part of the array.
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
    """Return names as in scikit-learn: kernelpca0, kernelpca1 and so on."""
    feature_names = getattr(fitted, "get_feature_names_out", None)
    if feature_names is None:
        return [f"component{number}" for number in range(n_components)]
    return [str(name) for name in feature_names()]


def inverse(
    model: Annotated[Path, typer.Argument(help="A model file that 'ikpca fit' wrote.")],
    projections: Annotated[
        str,
        typer.Argument(
            help="Projections from 'ikpca transform': .npy, .npz:member, .csv or .parquet."
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            help="Rows: .npy, .npz, .csv, .parquet; for a model of pictures also a new folder.",
        ),
    ],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Transform projections back to rows or pictures.

    Example: ikpca inverse faces.ikpca projections.csv --out faces_again/
    """
    from ikpca.cli.models import open_model, stored_input_form
    from ikpca.cli.output import Report, progress_bar
    from ikpca.errors import InvalidInput
    from ikpca.tables import check_target, read_table, write_table

    with Report(quiet, as_json) as report:
        fitted = open_model(model, "inverse_transform")
        form = stored_input_form(fitted)
        # Shells complete folders with a slash.
        out = out.rstrip("/") if len(out) > 1 else out
        table = read_table(projections)
        check_target(out, form, len(table.rows))
        expected = len(fitted.get_feature_names_out())
        if table.rows.shape[1] != expected:
            raise InvalidInput(
                f"{projections}: has {table.rows.shape[1]} columns, and {model} has {expected} "
                "components; pass projections from 'ikpca transform'."
            )
        with progress_bar("Finding rows", shown=report.shows_progress):
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
    from ikpca.cli.output import Report

    with Report(quiet, as_json) as report:
        document = _installation() if model is None else _describe_model(model)
        report.show(document, _table(document))


def _installation() -> dict[str, Any]:
    # Loaded, so that threadpoolctl finds their threads.
    import numpy  # noqa: F401
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    from ikpca.gram import DEFAULT_MEMORY_FRACTION
    from ikpca.gram.memory import machine_memory

    memory = machine_memory()
    pools = {Path(pool["filepath"]).name: pool["num_threads"] for pool in threadpool_info()}
    return {
        "versions": {
            "ikpca": version("ikpca"),
            "python": platform.python_version(),
            **{name: version(name) for name in _CORE},
        },
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processors": os.cpu_count(),
            "threads of BLAS and OpenMP": pools,
            "memory in GB": round(memory / 1e9, 1),
            "memory of a fit in GB": round(DEFAULT_MEMORY_FRACTION * memory / 1e9, 1),
        },
        "folders": {
            "IKPCA_CACHE": os.environ.get("IKPCA_CACHE", "not set"),
            "IKPCA_DATA": os.environ.get("IKPCA_DATA", "not set"),
            "compiled code": os.environ.get("NUMBA_CACHE_DIR", "__pycache__ beside the sources"),
        },
        "extras": _extras(),
    }


def _extras() -> dict[str, str]:
    """Return the status of every extra, with the install command of missing ones."""
    found = {}
    declared = [line for line in requires("ikpca") or [] if "extra ==" in line]
    for extra in _EXTRAS:
        needs = [_package(line) for line in declared if _extra(line) == extra]
        missing = [name for name in needs if not _is_installed(name)]
        if missing:
            found[extra] = f"missing {', '.join(missing)}: pip install 'ikpca[{extra}]'"
        elif needs:
            found[extra] = f"present ({', '.join(needs)})"
    return found


def _package(line: str) -> str:
    name = line.split(";", maxsplit=1)[0].strip()
    return name[: next((i for i, sign in enumerate(name) if sign in " <>=!~[("), len(name))]


def _extra(line: str) -> str:
    return line.partition("extra ==")[2].strip().strip("'\"")


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _describe_model(path: Path) -> dict[str, Any]:
    from ikpca.model_files import describe_model_file

    return {
        "file": str(path),
        "bytes": path.stat().st_size if path.exists() else 0,
        **describe_model_file(path),
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
            table.add_row(f"  {name}", _format(part))
    return table


def _format(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {part}" for key, part in value.items()) or "none"
    return str(value)
