"""``ikpca info``: this installation, or what a model file says of itself."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Any

import typer

from ikpca.cli.options import Json, Quiet

__all__ = ["info"]

_CORE = ("numpy", "scipy", "scikit-learn", "numba", "threadpoolctl", "joblib", "safetensors")
#: Extras that users choose; those of developers are theirs to know.
_EXTRAS = ("cli", "plot", "images", "pictures", "parquet", "zarr", "data", "river", "dask")


def info(
    model: Annotated[
        Path | None, typer.Argument(help="A model file; without it, the installation.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show versions, threads, memory and extras; or describe a model file.

    A model file is checked and described, but nothing in it is brought to life.

    Example: ikpca info faces.ikpca
    """
    from ikpca.cli.report import Report

    with Report(quiet, as_json) as report:
        document = _installation() if model is None else _described(model)
        report.show(document, _table(document))


def _installation() -> dict[str, Any]:
    # Threads are those of libraries that are loaded.
    import numpy  # noqa: F401
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    from ikpca.gram.budget import DEFAULT_SHARE, machine_memory

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
            "memory of a fit in GB": round(DEFAULT_SHARE * memory / 1e9, 1),
        },
        "folders": {
            "IKPCA_CACHE": os.environ.get("IKPCA_CACHE", "not set"),
            "IKPCA_DATA": os.environ.get("IKPCA_DATA", "not set"),
            "compiled code": os.environ.get("NUMBA_CACHE_DIR", "__pycache__ beside the sources"),
        },
        "extras": _extras(),
    }


def _extras() -> dict[str, str]:
    """Present, or how to get it."""
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


def _described(path: Path) -> dict[str, Any]:
    from ikpca.storage import outline

    return {
        "file": str(path),
        "bytes": path.stat().st_size if path.exists() else 0,
        **outline(path),
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
            table.add_row(f"  {name}", _words(part))
    return table


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {part}" for key, part in value.items()) or "none"
    return str(value)
