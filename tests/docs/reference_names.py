"""Names in the reference, parameters in docstrings, and undefined names in examples."""

from __future__ import annotations

import ast
import builtins
import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["described", "listed_names", "listed_values", "open_names", "resolved", "sections_of"]

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
_MODULE = re.compile(r"\.\. (?:current)?module:: (\S+)")
_ENTRY = re.compile(r"(?: {3}|\.\. py:data:: )([\w.]+)")


def listed_names() -> dict[str, tuple[str, str]]:
    """Return the full names in the tables of the reference, with module and name."""
    result = {}
    for page in sorted(REFERENCE.glob("*.rst")):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if named := _MODULE.match(line):
                module = named[1]
            elif module and (entry := _ENTRY.fullmatch(line)):
                result[f"{module}.{entry[1]}"] = (module, entry[1])
    return result


def listed_values() -> dict[str, Any]:
    """Return the values of names that the reference states."""
    result, module, name = {}, "", ""
    for page in sorted(REFERENCE.glob("*.rst")):
        for line in page.read_text(encoding="utf-8").splitlines():
            if named := _MODULE.match(line):
                module = named[1]
            elif line.startswith(".. py:data:: "):
                name = line.split()[-1]
            elif line.strip().startswith(":value:"):
                result[f"{module}.{name}"] = ast.literal_eval(line.split(":value:")[1].strip())
    return result


def resolved(module: str, rest: str) -> Any:
    """Return the object of a listed name, which may be in a submodule."""
    *submodules, name = rest.split(".")
    return getattr(import_module(".".join([module, *submodules])), name)


def sections_of(value: Any) -> dict[str, list[str]]:
    """Return the sections of a numpydoc docstring by title."""
    lines = (inspect.getdoc(value) or "").splitlines()
    result: dict[str, list[str]] = {"": []}
    title = ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line and set(following) == {"-"} and len(following) == len(line):
            title = line
            result[title] = []
        elif set(line) != {"-"}:
            result[title].append(line)
    return result


def described(value: Any) -> set[str]:
    """Return the names of the parameters that a docstring describes."""
    entries = (line for line in sections_of(value).get("Parameters", []) if line[:1].strip())
    names = (entry.split(" : ")[0].split(",") for entry in entries)
    return {name.strip().lstrip("*") for several in names for name in several}


def open_names(value: Any) -> set[str]:
    """Return the undefined names in the examples of a docstring."""
    defined, undefined = set(dir(builtins)), set()
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(value) or ""):
        nodes = list(ast.walk(ast.parse(example.source)))
        defined.update(name for node in nodes for name in _given(node))
        undefined.update(node.id for node in nodes if isinstance(node, ast.Name))
        undefined -= defined
    return undefined


def _given(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name.partition(".")[0] for alias in names]
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
            return [name]
    return []
