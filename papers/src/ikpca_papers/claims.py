"""Specifications of experiments, and claims that are evaluated on their tables."""

from __future__ import annotations

import operator
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal, TypeAlias

from ikpca.errors import InvalidInput

_KINDS = {str: "text", dict: "a table", list: "a list", float: "a number", bool: "true or false"}
#: Characters of an invalid value in a message.
_QUOTED = 40


def spec_error(file: str, what: str, remedy: str) -> InvalidInput:
    """Build the error for a spec file: one sentence that begins with its name."""
    return InvalidInput(f"{file}: {what}; {remedy}.")


def check_keys(
    entry: Any, file: str, what: str, required: Sequence[str], optional: Sequence[str]
) -> Mapping[str, Any]:
    """Reject an entry with a missing or unknown key.

    Examples
    --------
    >>> check_keys({"id": 1, "titel": 2}, "a.toml", "an experiment", ["id"], ["title"])
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: a.toml: an experiment has the unknown key 'titel'; known are id, \
title.
    """
    if not isinstance(entry, dict):
        raise spec_error(file, f"{what} is not a table", "write key = value pairs")
    known = [*required, *optional]
    for key in entry:
        if key not in known:
            raise spec_error(
                file, f"{what} has the unknown key {key!r}", f"known are {', '.join(known)}"
            )
    for key in required:
        if key not in entry:
            raise spec_error(file, f"{what} lacks the key {key!r}", "add it")
    return entry


def check_type(value: Any, file: str, what: str, kind: type) -> Any:
    """Reject a value that is not of the given type, and return it otherwise.

    Examples
    --------
    >>> check_type(3, "a.toml", "title", str)
    Traceback (most recent call last):
        ...
    ikpca.errors.InvalidInput: a.toml: title is 3; write text.
    """
    # In Python a bool is an int, and an int is not a float.
    whole = kind is float and isinstance(value, int) and not isinstance(value, bool)
    number = whole and abs(value) < sys.maxsize
    if not number and not isinstance(value, kind):
        raise spec_error(file, f"{what} is {repr(value)[:_QUOTED]}", f"write {_KINDS[kind]}")
    return value


Cell: TypeAlias = str | int | float | bool | None
Rows: TypeAlias = list[dict[str, Cell]]
Tables: TypeAlias = Mapping[str, Rows]

#: Functions from the selected cells to a number.
AGGREGATES: dict[str, Callable[[list[float]], float]] = {
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
    """Number computed from a table; nothing of a spec file is ever executed.

    Parameters
    ----------
    table, column : str
    take : str
        One of ``AGGREGATES``.
    where : dict
        Required values of columns; a list means any of them.
    times : float
        Factor.

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

    def restrict(self, where: Mapping[str, Any]) -> Selection:
        """Return the selection with further required values."""
        both = {**self.where, **where}
        return Selection(self.table, self.column, self.take, both, self.times)

    def value(self, tables: Tables) -> float | None:
        """Compute the number; None where no row matches, or a cell is not a number."""
        cells = [row.get(self.column) for row in self._rows(tables)]
        numbers = [float(cell) for cell in cells if isinstance(cell, int | float)]
        if not cells or len(numbers) < len(cells):
            return None
        return self.times * AGGREGATES[self.take](numbers)

    def _rows(self, tables: Tables) -> Iterable[dict[str, Cell]]:
        for row in tables.get(self.table, []):
            if all(_matches(row.get(name), wanted) for name, wanted in self.where.items()):
                yield row


def _matches(cell: Cell, wanted: Any) -> bool:
    return cell in wanted if isinstance(wanted, list) else cell == wanted


COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}


class Status(Enum):
    """Outcome of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Comparison:
    """Comparison of a number with a constant or with another number."""

    value: Selection
    sign: str
    bound: float | Selection

    def check(self, tables: Tables) -> tuple[bool | None, str]:
        """Return if it holds (None where a number is missing), and the numbers as text."""
        left = self.value.value(tables)
        fixed = isinstance(self.bound, int | float)
        right = self.bound if isinstance(self.bound, int | float) else self.bound.value(tables)
        if left is None or right is None:
            return None, "–"
        shown = _text(left) if fixed else f"{_text(left)} against {_text(right)}"
        return COMPARISONS[self.sign](left, right), shown


@dataclass(frozen=True)
class Decrease:
    """Numbers that must decrease."""

    values: tuple[Selection, ...]
    names: tuple[str, ...]

    def check(self, tables: Tables) -> tuple[bool | None, str]:
        """Return if every number is below the one before it, and the numbers as text."""
        values = [selection.value(tables) for selection in self.values]
        found = [value for value in values if value is not None]
        if len(found) < len(values):
            return None, "–"
        named = zip(self.names, found, strict=True)
        shown = ", ".join(f"{name} {_text(value)}" for name, value in named)
        return all(after < before for before, after in pairwise(found)), shown


@dataclass(frozen=True)
class Claim:
    """Statement of a paper, and the conditions on the tables under which it holds.

    Parameters
    ----------
    id, sentence : str
    paper : str
        The paper's value, as text.
    conditions : tuple
        All must hold.
    sizes : tuple of str
        Sizes of the experiment at which it is evaluated.
    note : str
        Remark for readers, such as why it does not hold.
    """

    id: str
    sentence: str
    paper: str
    conditions: tuple[Comparison | Decrease, ...]
    sizes: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """Outcome of a claim, with the value that was found."""

    claim: Claim
    status: Status
    ours: str

    def as_row(self) -> Mapping[str, Any]:
        """Return a row for tables and JSON."""
        return {
            "claim": self.claim.id,
            "sentence": self.claim.sentence,
            "paper": self.claim.paper,
            "ours": self.ours,
            "status": self.status.value,
            "note": self.claim.note,
        }


def evaluate_claim(claim: Claim, size: str, tables: Tables | None) -> Verdict:
    """Evaluate a claim on the tables of a run; without tables, or at another size: not run."""
    if tables is None or size not in claim.sizes:
        return Verdict(claim, Status.NOT_RUN, "–")
    checks = [condition.check(tables) for condition in claim.conditions]
    ours = "; ".join(shown for _, shown in checks)
    if any(held is None for held, _ in checks):
        return Verdict(claim, Status.NOT_RUN, "–")
    held = all(held for held, _ in checks)
    return Verdict(claim, Status.HOLDS if held else Status.FAILS, ours)


def _text(value: float) -> str:
    return f"{value:.4g}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.1e}"


_CONDITION = ("from", "is", "than", "decreasing")


def read_claim(entry: Any, number: int, file: str, sizes: Sequence[str]) -> Claim:
    """Check one entry of ``[[claims]]``; it has one condition, or several under ``all``."""
    what = f"claims[{number}]"
    check_keys(
        entry, file, what, ("id", "sentence", "paper"), ("sizes", "note", "all", *_CONDITION)
    )
    texts = {key: check_type(entry.get(key, ""), file, f"{what}.{key}", str)
             for key in ("id", "sentence", "paper", "note")}  # fmt: skip
    listed = entry.get("all")
    if listed is None:
        listed = [{key: entry[key] for key in _CONDITION if key in entry}]
    elif any(key in entry for key in _CONDITION):
        raise spec_error(
            file, f"{what} has both all and a condition of its own", "keep one of them"
        )
    listed = check_type(listed, file, f"{what}.all", list)
    if not listed:
        raise spec_error(file, f"{what} can never fail", "give it from, is and than, or decreasing")
    chosen = tuple(check_type(entry.get("sizes", list(sizes)), file, f"{what}.sizes", list))
    unknown = [size for size in chosen if size not in sizes]
    if unknown:
        raise spec_error(
            file, f"{what} has the unknown size {unknown[0]!r}", f"known: {', '.join(sizes)}"
        )
    return Claim(
        texts["id"],
        texts["sentence"],
        texts["paper"],
        tuple(_condition(one, what, file) for one in listed),
        chosen,
        texts["note"],
    )


def _condition(entry: Any, what: str, file: str) -> Comparison | Decrease:
    check_keys(entry, file, what, ("from",), _CONDITION)
    base = _selection(entry["from"], f"{what}.from", file)
    if "decreasing" in entry and len(entry) == 2:
        narrower = entry["decreasing"]
        if not isinstance(narrower, list) or len(narrower) < 2:
            raise spec_error(file, f"{what}.decreasing has no order", "list two selections or more")
        for one in narrower:
            check_type(one, file, f"{what}.decreasing", dict)
        names = tuple(" ".join(str(value) for value in one.values()) for one in narrower)
        return Decrease(tuple(base.restrict(one) for one in narrower), names)
    if set(entry) != {"from", "is", "than"}:
        raise spec_error(file, f"{what} can never fail", "give it from, is and than, or decreasing")
    if check_type(entry["is"], file, f"{what}.is", str) not in COMPARISONS:
        known = ", ".join(COMPARISONS)
        raise spec_error(
            file, f"{what} has the unknown comparison {entry['is']!r}", f"known: {known}"
        )
    return Comparison(base, entry["is"], _bound(entry["than"], base, what, file))


def _bound(entry: Any, base: Selection, what: str, file: str) -> float | Selection:
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        return float(check_type(entry, file, f"{what}.than", float))
    if not isinstance(entry, dict):
        raise spec_error(file, f"{what}.than is {entry!r}", "pass a number or a selection")
    # Missing keys are as on the left side.
    left = {"table": base.table, "column": base.column, "take": base.take}
    return _selection({**left, **entry}, f"{what}.than", file)


def _selection(entry: Any, what: str, file: str) -> Selection:
    check_keys(entry, file, what, ("table", "column"), ("take", "where", "times"))
    table, column, take = (check_type(entry.get(key, "mean"), file, f"{what}.{key}", str)
                           for key in ("table", "column", "take"))  # fmt: skip
    if take not in AGGREGATES:
        raise spec_error(file, f"{what} takes {take!r}", f"known: {', '.join(AGGREGATES)}")
    where: Mapping[str, Any] = check_type(entry.get("where", {}), file, f"{what}.where", dict)
    times = float(check_type(entry.get("times", 1), file, f"{what}.times", float))
    return Selection(table, column, take, where, times)


@dataclass(frozen=True)
class MeasuredClaim:
    """Measured value that must stay on one side of a limit.

    Parameters
    ----------
    what : str
        Name of the value.
    value, limit : float
    side : {"at most", "at least", "below"}

    Examples
    --------
    >>> print(MeasuredClaim("exponent of the total time", 0.98, 1.1))
    holds: exponent of the total time 0.98, at most 1.1
    >>> print(MeasuredClaim("correlation", 0.9, 0.99, "at least"))
    DOES NOT HOLD: correlation 0.9, at least 0.99
    """

    what: str
    value: float
    limit: float
    side: Literal["at most", "at least", "below"] = "at most"

    @property
    def holds(self) -> bool:
        """True if the value is on its side of the limit; False for NaN."""
        if self.side == "at least":
            return self.value >= self.limit
        return self.value < self.limit if self.side == "below" else self.value <= self.limit

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "DOES NOT HOLD"
        return f"{verdict}: {self.what} {self.value:.5g}, {self.side} {self.limit:g}"


def claim_rows(claims: Iterable[MeasuredClaim]) -> list[dict[str, Any]]:
    """Return rows for JSON."""
    return [{**asdict(claim), "holds": claim.holds} for claim in claims]


SIZES = ("quick", "embedded", "real")
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Size:
    """Data and settings of one size of an experiment."""

    data: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Drawing:
    """Figure of an experiment: name of the drawing function, caption, options."""

    draw: str
    caption: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Curves:
    """Columns of a table that are plotted as curves.

    Parameters
    ----------
    table, x, y, series : str
        Columns; one curve per value of ``series``.
    panel : str or None
        One plot per value of this column.
    seconds : str or None
        The column of seconds, if curves can also be plotted over time.
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
    """Contents of the spec file of an experiment.

    Parameters
    ----------
    id, title, about : str
    paper, figure : str
        Source: the paper, and the figure or table in it.
    sizes : dict of Size
    claims : tuple of Claim
    drawings : tuple of Drawing
    curves : Curves or None
    alone : bool
        True if it measures time or memory, and must not run in parallel with others.
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
    """Read and check one spec file; errors name the file and the key."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        # From TOML, from the encoding, or from a number with thousands of digits.
        raise spec_error(path.name, f"is not TOML: {error}", "correct it") from None
    except RecursionError:
        raise spec_error(path.name, "is nested too deeply", "correct its brackets") from None
    check_keys(document, path.name, "an experiment", _REQUIRED, _OPTIONAL)
    if document["id"] != path.stem:
        raise spec_error(path.name, f"has the id {document['id']!r}", "name the file after the id")
    texts = {name: check_type(document[name], path.name, name, str) for name in _REQUIRED[:5]}
    drawings = check_type(document.get("figures", []), path.name, "figures", list)
    return ExperimentSpec(
        **texts,
        sizes=_sizes(document, path.name),
        claims=_claims(document["claims"], path.name),
        drawings=tuple(_drawing(one, path.name) for one in drawings),
        curves=_curves(document.get("curves"), path.name),
        alone=check_type(document.get("alone", False), path.name, "alone", bool),
    )


def _sizes(document: Mapping[str, Any], file: str) -> dict[str, Size]:
    check_keys(document["sizes"], file, "sizes", SIZES, ())
    found, shared = {}, check_type(document.get("settings", {}), file, "settings", dict)
    for name in SIZES:
        own = dict(check_type(document["sizes"][name], file, f"sizes.{name}", dict))
        if "data" not in own:
            raise spec_error(file, f"sizes.{name} has no data", "name its data set")
        data = check_type(own.pop("data"), file, f"sizes.{name}.data", str)
        found[name] = Size(data, {**shared, **own})
    return found


def _claims(listed: Any, file: str) -> tuple[Claim, ...]:
    if not isinstance(listed, list) or not listed:
        raise spec_error(file, "has no claims", "add [[claims]]")
    claims = tuple(read_claim(one, number, file, SIZES) for number, one in enumerate(listed))
    ids = [claim.id for claim in claims]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise spec_error(file, f"has the claim {twice[0]!r} twice", "give every claim its own id")
    return claims


def _drawing(entry: Mapping[str, Any], file: str) -> Drawing:
    check_keys(entry, file, "a figure", ("draw", "caption"), ("options",))
    draw, caption = (check_type(entry[key], file, f"{key} of a figure", str)
                     for key in ("draw", "caption"))  # fmt: skip
    options = check_type(entry.get("options", {}), file, "options of a figure", dict)
    return Drawing(draw, caption, options)


def _curves(entry: Mapping[str, Any] | None, file: str) -> Curves | None:
    if entry is None:
        return None
    check_keys(entry, file, "curves", ("table", "x", "y", "series", "label"), ("panel", "seconds"))
    return Curves(**{key: check_type(entry[key], file, f"curves.{key}", str) for key in entry})


@cache
def specs() -> Mapping[str, ExperimentSpec]:
    """Return the specifications that come with the package, by id."""
    paths = [*_FOLDER.glob("*[0-9]/*.toml"), _FOLDER / "large.toml"]
    found = sorted(paths, key=lambda path: path.stem)
    return {path.stem: read_spec(path) for path in found}


def find_spec(name: str) -> ExperimentSpec:
    """Return the spec of that id; the error for an unknown one suggests the nearest."""
    known = specs()
    if name in known:
        return known[name]
    near = get_close_matches(name, list(known), n=1, cutoff=0.4)
    remedy = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(known)}."
    raise InvalidInput(f"there is no experiment {name!r}; {remedy}")
