"""Spec files: an experiment as data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from ikpca.errors import InvalidInput
from ikpca.experiments.claim_reading import read_claim
from ikpca.experiments.keys import checked, fault
from ikpca.experiments.verdicts import Claim

__all__ = [
    "SIZES",
    "Curves",
    "Drawing",
    "ExperimentSpec",
    "Size",
    "find_spec",
    "read_spec",
    "specs",
]

SIZES = ("quick", "embedded", "real")
_FOLDER = Path(__file__).parent / "specs"


@dataclass(frozen=True)
class Size:
    """What one size of an experiment runs on, and with which settings."""

    data: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Drawing:
    """One picture: which function of the figures draws it, told what."""

    draw: str
    caption: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Curves:
    """A table of curves for the interactive plot.

    Parameters
    ----------
    table, x, y, series : str
        Columns; one curve per value of ``series``.
    panel : str or None
        One plot per value of this column.
    seconds : str or None
        The column of seconds, where time is an alternative to passes.
    label : str
        Of the vertical axis.
    """

    table: str
    x: str
    y: str
    series: str
    label: str
    panel: str | None = None
    seconds: str | None = None


@dataclass(frozen=True)
class ExperimentSpec:
    """One row of the table of experiments.

    Parameters
    ----------
    id, title, about : str
    paper, figure : str
        Where it comes from.
    sizes : dict of Size
    claims : tuple of Claim
    drawings : tuple of Drawing
    curves : Curves or None
    alone : bool
        Whether it measures time or memory, and must not share the machine.
    """

    id: str
    title: str
    about: str
    paper: str
    figure: str
    sizes: Mapping[str, Size]
    claims: tuple[Claim, ...]
    drawings: tuple[Drawing, ...] = ()
    curves: Curves | None = None
    alone: bool = False


_REQUIRED = ("id", "title", "about", "paper", "figure", "sizes", "claims")
_OPTIONAL = ("settings", "figures", "curves", "alone")


def read_spec(path: Path) -> ExperimentSpec:
    """Read and check one file; what is wrong is one sentence that names the file and the key."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise fault(path.name, f"is no TOML: {error}", "correct it") from None
    checked(document, path.name, "an experiment", _REQUIRED, _OPTIONAL)
    if document["id"] != path.stem:
        raise fault(path.name, f"has the id {document['id']!r}", "name the file after the id")
    texts = {name: str(document[name]) for name in _REQUIRED[:5]}
    return ExperimentSpec(
        **texts,
        sizes=_sizes(document, path.name),
        claims=_claims(document["claims"], path.name),
        drawings=tuple(_drawing(one, path.name) for one in document.get("figures", [])),
        curves=_curves(document.get("curves"), path.name),
        alone=bool(document.get("alone", False)),
    )


def _sizes(document: Mapping[str, Any], file: str) -> dict[str, Size]:
    checked(document["sizes"], file, "sizes", SIZES, ())
    found = {}
    for name in SIZES:
        own = dict(document["sizes"][name])
        if "data" not in own:
            raise fault(file, f"sizes.{name} has no data", "name its data set")
        data = str(own.pop("data"))
        found[name] = Size(data, {**document.get("settings", {}), **own})
    return found


def _claims(listed: Any, file: str) -> tuple[Claim, ...]:
    if not isinstance(listed, list) or not listed:
        raise fault(file, "has no claims", "add [[claims]], or what it shows can never fail")
    claims = tuple(read_claim(one, number, file, SIZES) for number, one in enumerate(listed))
    ids = [claim.id for claim in claims]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise fault(file, f"has the claim {twice[0]!r} twice", "give every claim its own id")
    return claims


def _drawing(entry: Mapping[str, Any], file: str) -> Drawing:
    checked(entry, file, "a figure", ("draw", "caption"), ("options",))
    return Drawing(str(entry["draw"]), str(entry["caption"]), entry.get("options", {}))


def _curves(entry: Mapping[str, Any] | None, file: str) -> Curves | None:
    if entry is None:
        return None
    checked(entry, file, "curves", ("table", "x", "y", "series", "label"), ("panel", "seconds"))
    return Curves(**entry)


@cache
def specs() -> Mapping[str, ExperimentSpec]:
    """Every spec that comes with the package, by id."""
    return {path.stem: read_spec(path) for path in sorted(_FOLDER.glob("*.toml"))}


def find_spec(name: str) -> ExperimentSpec:
    """The spec of that id; an unknown one is refused with the nearest."""
    known = specs()
    if name in known:
        return known[name]
    near = get_close_matches(name, list(known), n=1, cutoff=0.4)
    remedy = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(known)}."
    raise InvalidInput(f"there is no experiment {name!r}; {remedy}")
