"""``ikpca info``: versions of the installation, or the content of a model file."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from numbers import Real
from pathlib import Path
from typing import Annotated, Any

import typer

from ikpca.cli import options as opt
from ikpca.cli.output import reporting

#: Largest length of the text of a value.
_MAX_LENGTH = 60
_PACKAGES = ("ikpca", "numpy", "scipy", "scikit-learn", "numba", "joblib", "safetensors")


def info(
    model: Annotated[
        Path | None, typer.Argument(help="A model file; without it, the installation.")
    ] = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Show versions, or describe a model file.

    Example: ikpca info faces.ikpca
    """
    with reporting(quiet, as_json) as report:
        document: dict[str, Any]
        if model is None:
            versions = {name: version(name) for name in _PACKAGES}
            document = {"versions": {"python": platform.python_version(), **versions}}
        else:
            description = _description(model)
            document = {"file": model, "bytes": model.stat().st_size, **description}
        report.show(document, *_lines(document))


def _description(path: Path) -> dict[str, Any]:
    """Return the class, the parameters and the fitted attributes of a model as text."""
    from ikpca.model_files import load, read_container

    model = load(path)
    parameters = model.get_params(deep=False)
    fitted = {name for name in vars(model) if not name.startswith("_")} - parameters.keys()
    return {
        "class": type(model).__name__,
        "written_by": f"ikpca {read_container(path)[0].library_version!r}",
        "parameters": {name: _text(value) for name, value in parameters.items()},
        "attributes": {name: _text(getattr(model, name)) for name in sorted(fitted)},
    }


def _text(value: object) -> str:
    """Return a number or a printable text, or type and size of an array or a list."""
    if isinstance(value, list):
        return f"list of {len(value)}"
    if isinstance(value, Real):
        return str(value)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} of {' × '.join(map(str, value.shape)) or 'one number'}"
    text = " ".join(repr(value).split())
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"


def _lines(document: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}"
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{indent + key:<30}{value}"
