"""The table of data sets, from ``registry.toml``."""

from __future__ import annotations

import difflib
import tomllib
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from ikpca.datasets.entry import Entry, Remote
from ikpca.errors import InvalidInput

__all__ = ["find", "registry"]


@cache
def registry() -> MappingProxyType[str, Entry]:
    """All data sets by name.

    Returns
    -------
    mapping of str to Entry

    Examples
    --------
    >>> from ikpca.datasets import registry
    >>> usps = registry()["usps"]
    >>> usps.way, usps.shapes["X_train"], usps.experiments
    ('download', (7291, 256), ('usps-kpca', 'usps-clustering'))
    """
    text = files("ikpca.datasets").joinpath("registry.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return MappingProxyType({name: _entry(name, fields) for name, fields in table.items()})


def find(name: str) -> Entry:
    """The data set of that name; an unknown one is answered with the nearest.

    Parameters
    ----------
    name : str

    Returns
    -------
    Entry

    Examples
    --------
    >>> from ikpca.datasets import find
    >>> find("ups")
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: there is no data set 'ups'; did you mean 'usps'?
    """
    known = registry()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
    raise InvalidInput(f"there is no data set {name!r}; {remedy}")


def _entry(name: str, fields: dict[str, Any]) -> Entry:
    shapes = {array: tuple(shape) for array, shape in fields["shapes"].items()}
    ready = {
        **fields,
        "shapes": MappingProxyType(shapes),
        "experiments": tuple(fields["experiments"]),
        "checksums": tuple(fields.get("checksums", ())),
        "remotes": tuple(Remote(**remote) for remote in fields.get("remotes", ())),
    }
    return Entry(name, **ready)
