"""``ikpca info``: versions of the installation, or the content of a model file."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from ikpca.cli import options as opt
from ikpca.cli.output import reporting

_PACKAGES = ("ikpca", "numpy", "scipy", "scikit-learn", "numba", "joblib", "safetensors")


def info(
    model: Annotated[
        Path | None, typer.Argument(help="A model file; without it, the installation.")
    ] = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Show versions, or describe a model file.

    A model file is checked and described without creating the model.

    Example: ikpca info faces.ikpca
    """
    from ikpca.model_files import describe_model_file

    with reporting(quiet, as_json) as report:
        document: dict[str, Any]
        if model is None:
            versions = {name: version(name) for name in _PACKAGES}
            document = {"versions": {"python": platform.python_version(), **versions}}
        else:
            description = describe_model_file(model)
            document = {"file": model, "bytes": model.stat().st_size, **description}
        report.show(document, *_lines(document))


def _lines(document: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}"
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{indent + key:<30}{value}"
