"""Specifications of experiments, and their claims judged from written tables."""

from __future__ import annotations

import operator
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any, TypeAlias

from ikpca.errors import InvalidInput

_KINDS = {str: "text", dict: "a table", list: "a list", float: "a number", bool: "true or false"}
#: As much of a wrong value as a message quotes.
_QUOTED = 40


def fault(file: str, what: str, remedy: str) -> InvalidInput:
    """Build the error for a spec file: one sentence that begins with its name."""
    return InvalidInput(f"{file}: {what}; {remedy}.")


def checked(
    entry: Any, file: str, what: str, required: Sequence[str], optional: Sequence[str]
) -> Mapping[str, Any]:
    """Refuse an entry with a key that is missing or unknown.

    Examples
    --------
    >>> checked({"id": 1, "titel": 2}, "a.toml", "an experiment", ["id"], ["title"])
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: a.toml: an experiment has the unknown key 'titel'; known are id, \
title.
    """
    if not isinstance(entry, dict):
        raise fault(file, f"{what} is no table", "write key = value pairs")
    known = [*required, *optional]
    for key in entry:
        if key not in known:
            raise fault(
                file, f"{what} has the unknown key {key!r}", f"known are {', '.join(known)}"
            )
    for key in required:
        if key not in entry:
            raise fault(file, f"{what} lacks the key {key!r}", "add it")
    return entry


def typed(value: Any, file: str, what: str, kind: type) -> Any:
    """Refuse a value of another kind than text, a table, a list, a number, true or false.

    Examples
    --------
    >>> typed(3, "a.toml", "title", str)
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: a.toml: title is 3; write text.
    """
    # To Python a truth is a whole number, and a whole number no floating-point one.
    whole = kind is float and isinstance(value, int) and not isinstance(value, bool)
    number = whole and abs(value) < sys.maxsize
    if not number and not isinstance(value, kind):
        raise fault(file, f"{what} is {repr(value)[:_QUOTED]}", f"write {_KINDS[kind]}")
    return value


Cell: TypeAlias = str | int | float | bool | None
Rows: TypeAlias = list[dict[str, Cell]]
Tables: TypeAlias = Mapping[str, Rows]

#: What is made of the selected cells.
TAKES: dict[str, Callable[[list[float]], float]] = {
    "mean": fmean,
    "median": median,
    "min": min,
    "max": max,
    "sum": sum,
    "count": lambda cells: float(len(cells)),
    "first": lambda cells: cells[0],
    "last": lambda cells: cells[-1],
}


@dataclass(frozen=True)
class Selection:
    """A small, safe expression: nothing of a spec file is ever executed.

    Parameters
    ----------
    table, column : str
    take : str
        One of ``TAKES``.
    where : dict
        Columns, and what they must hold; a list means any of it.
    times : float
        The number is multiplied by it.

    Examples
    --------
    >>> rows = [{"method": "kha", "error": 0.2}, {"method": "kha/et", "error": 0.1}]
    >>> Selection("errors", "error", where={"method": "kha/et"}).value({"errors": rows})
    0.1
    """

    table: str
    column: str
    take: str = "mean"
    where: Mapping[str, Any] = field(default_factory=dict)
    times: float = 1.0

    def narrowed(self, where: Mapping[str, Any]) -> Selection:
        """The same of fewer rows."""
        both = {**self.where, **where}
        return Selection(self.table, self.column, self.take, both, self.times)

    def value(self, tables: Tables) -> float | None:
        """The number; None where no such row was written, or one of them holds no number."""
        cells = [row.get(self.column) for row in self._rows(tables)]
        numbers = [float(cell) for cell in cells if isinstance(cell, int | float)]
        if not cells or len(numbers) < len(cells):
            return None
        return self.times * TAKES[self.take](numbers)

    def _rows(self, tables: Tables) -> Iterable[dict[str, Cell]]:
        for row in tables.get(self.table, []):
            if all(_holds(row.get(name), wanted) for name, wanted in self.where.items()):
                yield row


def _holds(cell: Cell, wanted: Any) -> bool:
    return cell in wanted if isinstance(wanted, list) else cell == wanted


COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}


class Status(Enum):
    """What became of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Comparison:
    """One figure against a number or another figure."""

    figure: Selection
    sign: str
    bound: float | Selection

    def check(self, tables: Tables) -> tuple[bool | None, str]:
        """Whether it holds, None where a figure is missing; and the figures as text."""
        left = self.figure.value(tables)
        fixed = isinstance(self.bound, int | float)
        right = self.bound if isinstance(self.bound, int | float) else self.bound.value(tables)
        if left is None or right is None:
            return None, "–"
        shown = _text(left) if fixed else f"{_text(left)} against {_text(right)}"
        return COMPARISONS[self.sign](left, right), shown


@dataclass(frozen=True)
class Decrease:
    """Figures that must fall from each to the next."""

    figures: tuple[Selection, ...]
    names: tuple[str, ...]

    def check(self, tables: Tables) -> tuple[bool | None, str]:
        """Whether every figure is below the one before it; and all of them as text."""
        values = [figure.value(tables) for figure in self.figures]
        found = [value for value in values if value is not None]
        if len(found) < len(values):
            return None, "–"
        named = zip(self.names, found, strict=True)
        shown = ", ".join(f"{name} {_text(value)}" for name, value in named)
        return all(after < before for before, after in pairwise(found)), shown


@dataclass(frozen=True)
class Claim:
    """A sentence, what the paper reports, and what must be true of the tables.

    Parameters
    ----------
    id, sentence : str
    paper : str
        The paper's own figure, as text.
    forms : tuple
        All must hold.
    sizes : tuple of str
        Where it is judged.
    note : str
        What a reader should know about it, such as why it does not hold.
    """

    id: str
    sentence: str
    paper: str
    forms: tuple[Comparison | Decrease, ...]
    sizes: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """A claim with what was found."""

    claim: Claim
    status: Status
    ours: str

    def as_row(self) -> Mapping[str, Any]:
        """For tables and JSON."""
        return {
            "claim": self.claim.id,
            "sentence": self.claim.sentence,
            "paper": self.claim.paper,
            "ours": self.ours,
            "status": self.status.value,
            "note": self.claim.note,
        }


def judge(claim: Claim, size: str, tables: Tables | None) -> Verdict:
    """Compare the tables of a run with a claim; without tables, or at another size: not run."""
    if tables is None or size not in claim.sizes:
        return Verdict(claim, Status.NOT_RUN, "–")
    checks = [form.check(tables) for form in claim.forms]
    ours = "; ".join(shown for _, shown in checks)
    if any(held is None for held, _ in checks):
        return Verdict(claim, Status.NOT_RUN, "–")
    held = all(held for held, _ in checks)
    return Verdict(claim, Status.HOLDS if held else Status.FAILS, ours)


def _text(value: float) -> str:
    return f"{value:.4g}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.1e}"


_FORM = ("from", "is", "than", "decreasing")


def read_claim(entry: Any, number: int, file: str, sizes: Sequence[str]) -> Claim:
    """Check one entry of ``[[claims]]``; it has one form, or several under ``all``."""
    what = f"claims[{number}]"
    checked(entry, file, what, ("id", "sentence", "paper"), ("sizes", "note", "all", *_FORM))
    texts = {key: typed(entry.get(key, ""), file, f"{what}.{key}", str)
             for key in ("id", "sentence", "paper", "note")}  # fmt: skip
    listed = entry.get("all")
    if listed is None:
        listed = [{key: entry[key] for key in _FORM if key in entry}]
    elif any(key in entry for key in _FORM):
        raise fault(file, f"{what} has both all and a form of its own", "keep one of them")
    listed = typed(listed, file, f"{what}.all", list)
    if not listed:
        raise fault(file, f"{what} can never fail", "give it from, is and than, or decreasing")
    chosen = tuple(typed(entry.get("sizes", list(sizes)), file, f"{what}.sizes", list))
    unknown = [size for size in chosen if size not in sizes]
    if unknown:
        raise fault(
            file, f"{what} has the unknown size {unknown[0]!r}", f"known: {', '.join(sizes)}"
        )
    return Claim(
        texts["id"],
        texts["sentence"],
        texts["paper"],
        tuple(_form(one, what, file) for one in listed),
        chosen,
        texts["note"],
    )


def _form(entry: Any, what: str, file: str) -> Comparison | Decrease:
    checked(entry, file, what, ("from",), _FORM)
    base = _selection(entry["from"], f"{what}.from", file)
    if "decreasing" in entry and len(entry) == 2:
        narrower = entry["decreasing"]
        if not isinstance(narrower, list) or len(narrower) < 2:
            raise fault(file, f"{what}.decreasing has no order", "list two selections or more")
        for one in narrower:
            typed(one, file, f"{what}.decreasing", dict)
        names = tuple(" ".join(str(value) for value in one.values()) for one in narrower)
        return Decrease(tuple(base.narrowed(one) for one in narrower), names)
    if set(entry) != {"from", "is", "than"}:
        raise fault(file, f"{what} can never fail", "give it from, is and than, or decreasing")
    if typed(entry["is"], file, f"{what}.is", str) not in COMPARISONS:
        known = ", ".join(COMPARISONS)
        raise fault(file, f"{what} has the unknown comparison {entry['is']!r}", f"known: {known}")
    return Comparison(base, entry["is"], _bound(entry["than"], base, what, file))


def _bound(entry: Any, base: Selection, what: str, file: str) -> float | Selection:
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        return float(typed(entry, file, f"{what}.than", float))
    if not isinstance(entry, dict):
        raise fault(file, f"{what}.than is {entry!r}", "pass a number or a selection")
    # What is not said is as on the left.
    left = {"table": base.table, "column": base.column, "take": base.take}
    return _selection({**left, **entry}, f"{what}.than", file)


def _selection(entry: Any, what: str, file: str) -> Selection:
    checked(entry, file, what, ("table", "column"), ("take", "where", "times"))
    table, column, take = (typed(entry.get(key, "mean"), file, f"{what}.{key}", str)
                           for key in ("table", "column", "take"))  # fmt: skip
    if take not in TAKES:
        raise fault(file, f"{what} takes {take!r}", f"known: {', '.join(TAKES)}")
    where: Mapping[str, Any] = typed(entry.get("where", {}), file, f"{what}.where", dict)
    times = float(typed(entry.get("times", 1), file, f"{what}.times", float))
    return Selection(table, column, take, where, times)


SIZES = ("quick", "embedded", "real")
_FOLDER = Path(__file__).parent


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
    except ValueError as error:
        # Of TOML, of the encoding, or of a number with thousands of digits.
        raise fault(path.name, f"is no TOML: {error}", "correct it") from None
    except RecursionError:
        raise fault(path.name, "is nested too deeply", "correct its brackets") from None
    checked(document, path.name, "an experiment", _REQUIRED, _OPTIONAL)
    if document["id"] != path.stem:
        raise fault(path.name, f"has the id {document['id']!r}", "name the file after the id")
    texts = {name: typed(document[name], path.name, name, str) for name in _REQUIRED[:5]}
    drawings = typed(document.get("figures", []), path.name, "figures", list)
    return ExperimentSpec(
        **texts,
        sizes=_sizes(document, path.name),
        claims=_claims(document["claims"], path.name),
        drawings=tuple(_drawing(one, path.name) for one in drawings),
        curves=_curves(document.get("curves"), path.name),
        alone=typed(document.get("alone", False), path.name, "alone", bool),
    )


def _sizes(document: Mapping[str, Any], file: str) -> dict[str, Size]:
    checked(document["sizes"], file, "sizes", SIZES, ())
    found, shared = {}, typed(document.get("settings", {}), file, "settings", dict)
    for name in SIZES:
        own = dict(typed(document["sizes"][name], file, f"sizes.{name}", dict))
        if "data" not in own:
            raise fault(file, f"sizes.{name} has no data", "name its data set")
        data = typed(own.pop("data"), file, f"sizes.{name}.data", str)
        found[name] = Size(data, {**shared, **own})
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
    draw, caption = (typed(entry[key], file, f"{key} of a figure", str)
                     for key in ("draw", "caption"))  # fmt: skip
    options = typed(entry.get("options", {}), file, "options of a figure", dict)
    return Drawing(draw, caption, options)


def _curves(entry: Mapping[str, Any] | None, file: str) -> Curves | None:
    if entry is None:
        return None
    checked(entry, file, "curves", ("table", "x", "y", "series", "label"), ("panel", "seconds"))
    return Curves(**{key: typed(entry[key], file, f"curves.{key}", str) for key in entry})


@cache
def specs() -> Mapping[str, ExperimentSpec]:
    """Return the specifications that come with the package, by id."""
    paths = [*_FOLDER.glob("*[0-9]/*.toml"), _FOLDER / "large.toml"]
    found = sorted(paths, key=lambda path: path.stem)
    return {path.stem: read_spec(path) for path in found}


def find_spec(name: str) -> ExperimentSpec:
    """The spec of that id; an unknown one is refused with the nearest."""
    known = specs()
    if name in known:
        return known[name]
    near = get_close_matches(name, list(known), n=1, cutoff=0.4)
    remedy = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(known)}."
    raise InvalidInput(f"there is no experiment {name!r}; {remedy}")
