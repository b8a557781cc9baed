"""Specifications of experiments, and claims that are evaluated on their tables."""

from __future__ import annotations

import json
import math
import operator
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from ikpca.errors import InvalidInput

Cell: TypeAlias = str | int | float | bool | None
Rows: TypeAlias = list[dict[str, Cell]]
Tables: TypeAlias = Mapping[str, Rows]

_FOLDER = Path(__file__).parent
#: Verdicts of complete runs: real.json and embedded.json.
VERDICTS = _FOLDER / "verdicts"
#: Value of the column ``outcome`` in rows of a run that diverged and has no numbers.
DIVERGED = "diverged"

#: Characters of an invalid value in a message.
_QUOTED = 40

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


class _SpecModel(BaseModel):
    """Part of a spec file: known keys only, values are not converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_by_name=True)


class Selection(_SpecModel):
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
    >>> chosen = Selection(table="errors", column="error", where={"method": "kha/et"})
    >>> chosen.value({"errors": rows})
    0.1
    """

    table: str
    column: str
    take: Literal["mean", "median", "min", "max", "sum", "count", "first", "last"] = "mean"
    where: dict[str, Any] = {}
    times: float = 1.0

    def value(self, tables: Tables) -> float | None:
        """Compute the number; None where no row matches, NaN where a selected run diverged.

        Results hold None for numbers that are not finite.
        """
        rows = list(self._rows(tables))
        if any(row.get("outcome") == DIVERGED for row in rows):
            return math.nan
        cells = [row[self.column] for row in rows if self.column in row]
        if not cells or len(cells) < len(rows) or any(isinstance(cell, str) for cell in cells):
            return None
        numbers = [math.nan if cell is None else float(cell) for cell in cells]
        if not all(map(math.isfinite, numbers)):
            return math.nan
        return self.times * AGGREGATES[self.take](numbers)

    def _rows(self, tables: Tables) -> Iterable[dict[str, Cell]]:
        for row in tables.get(self.table, []):
            if all(_matches(row.get(name), expected) for name, expected in self.where.items()):
                yield row


def _matches(cell: Cell, expected: Any) -> bool:
    return cell in expected if isinstance(expected, list) else cell == expected


COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}


class Status(Enum):
    """Outcome of a claim."""

    HOLDS = "holds"
    ELSEWHERE = "holds at another setting"
    FAILS = "does not hold"
    NOT_RUN = "not run"


#: Reasons why a claim needs a remark on its setting, by class.
CLASSES = {
    "A": "the paper's setting was misread before, and is corrected",
    "B": "the paper leaves a setting open; it was chosen afterwards, from a table of values",
    "C": "fails over all plausible settings",
    "D": "judged by the paper's words, with the exact figure beside them",
}
SIZES = ("quick", "embedded", "real")
SizeName: TypeAlias = Annotated[str, Field(pattern=f"^({'|'.join(SIZES)})$")]


def _completed(selection: Any, info: ValidationInfo) -> Any:
    """Take missing keys of a selection from the first one of the model."""
    first = info.data.get("selection")
    if isinstance(selection, dict) and first is not None:
        return {"table": first.table, "column": first.column, "take": first.take, **selection}
    return selection


class OtherSetting(_SpecModel):
    """Setting at which a claim is evaluated where it does not hold at the judged one.

    Parameters
    ----------
    setting : str
        In words.
    where, than_where : dict
        Values of columns that replace those of the left and of the right side of the claim.
    decreasing : list of dict, optional
        Replaces that of the claim.
    """

    setting: str
    where: dict[str, Any] = {}
    than_where: dict[str, Any] = {}
    decreasing: list[dict[str, Any]] | None = None


class Claim(_SpecModel):
    """Statement of a paper, and the condition on the tables under which it holds.

    Parameters
    ----------
    id, sentence : str
    paper : str
        The paper's words or value.
    fails_if : str
        Result that would make it fail.
    selection : Selection
        ``from`` in the file: the number that is compared.
    sign : {">=", ">", "<=", "<"}, optional
        ``is`` in the file.
    bound : float or Selection, optional
        ``than`` in the file; a selection has missing keys from the left side.
    decreasing : list of dict, optional
        In place of ``is`` and ``than``: values of columns, one number for each, in the order in
        which the numbers must decrease.
    sizes : list of str
        Sizes of the experiment at which it is evaluated.
    reason : {"", "A", "B", "C", "D"}
        ``class`` in the file, one of ``CLASSES``.
    setting : str
        Setting at which it is judged, in words, where the paper leaves it open.
    elsewhere : OtherSetting, optional
    note : str
        Remark for readers, such as why it does not hold.
    """

    id: str
    sentence: str
    paper: str
    fails_if: str = Field(min_length=1)
    selection: Selection = Field(alias="from")
    sign: Literal[">=", ">", "<=", "<"] | None = Field(None, alias="is")
    bound: float | Selection | None = Field(None, alias="than")
    decreasing: list[dict[str, Any]] | None = Field(None, min_length=2)
    sizes: list[SizeName] = [*SIZES]
    reason: Literal["", "A", "B", "C", "D"] = Field("", alias="class")
    setting: str = ""
    elsewhere: OtherSetting | None = None
    note: str = ""

    _complete = field_validator("bound", mode="before")(_completed)

    @model_validator(mode="after")
    def _has_condition(self) -> Self:
        given = [part is not None for part in (self.sign, self.bound, self.decreasing)]
        if given not in ([True, True, False], [False, False, True]):
            raise ValueError("give it either is and than, or decreasing")
        return self

    def at(self, other: OtherSetting) -> Claim:
        """Return the claim at another setting."""

        def moved(selection: Selection, where: dict[str, Any]) -> Selection:
            return selection.model_copy(update={"where": {**selection.where, **where}})

        changes: dict[str, Any] = {"selection": moved(self.selection, other.where)}
        if isinstance(self.bound, Selection):
            changes["bound"] = moved(self.bound, other.than_where)
        if other.decreasing is not None:
            changes["decreasing"] = other.decreasing
        return self.model_copy(update=changes)

    def check(self, tables: Tables) -> tuple[bool | None, str]:
        """Return if it holds (None where a number is missing), and the numbers as text."""
        return self._compare(tables) if self.decreasing is None else self._decreases(tables)

    def _compare(self, tables: Tables) -> tuple[bool | None, str]:
        left = self.selection.value(tables)
        against = self.bound.value(tables) if isinstance(self.bound, Selection) else self.bound
        if left is None or against is None or self.sign is None:
            return None, "–"
        shown = _text(left)
        if isinstance(self.bound, Selection):
            shown += f" against {_text(against)}"
        return COMPARISONS[self.sign](left, against), shown

    def _decreases(self, tables: Tables) -> tuple[bool | None, str]:
        values: list[float] = []
        shown = []
        for where in self.decreasing or []:
            both = {**self.selection.where, **where}
            value = self.selection.model_copy(update={"where": both}).value(tables)
            if value is None:
                return None, "–"
            values.append(value)
            shown.append(" ".join(map(str, [*where.values(), _text(value)])))
        return all(after < before for before, after in pairwise(values)), ", ".join(shown)


@dataclass(frozen=True)
class Verdict:
    """Outcome of a claim, with the value that was found and the setting of it."""

    claim: Claim
    status: Status
    ours: str
    setting: str = ""

    def as_row(self) -> dict[str, str]:
        """Return the texts of the record."""
        return {
            "claim": self.claim.id,
            "status": self.status.value,
            "class": self.claim.reason,
            "setting": self.setting,
            "ours": self.ours,
        }


def evaluate_claim(claim: Claim, size: str, tables: Tables | None) -> Verdict:
    """Evaluate a claim on the tables of a run; without tables, or at another size: not run."""
    held, ours = (None, "–") if tables is None or size not in claim.sizes else claim.check(tables)
    if held is None or tables is None:
        return Verdict(claim, Status.NOT_RUN, "–", claim.setting)
    if held or claim.elsewhere is None:
        return Verdict(claim, Status.HOLDS if held else Status.FAILS, ours, claim.setting)
    other = claim.at(claim.elsewhere)
    held, also = other.check(tables)
    if held:
        return Verdict(claim, Status.ELSEWHERE, f"{ours}; there {also}", claim.elsewhere.setting)
    return Verdict(claim, Status.FAILS, ours, claim.setting)


class Finding(_SpecModel):
    """Sentence on a paper, and the claims that it rests on, as ``experiment/claim``."""

    text: str
    claims: list[str] = []


class Paper(_SpecModel):
    """Paper, and what its reproduction shows."""

    name: str
    title: str
    findings: list[Finding]


@cache
def papers() -> tuple[Paper, ...]:
    """Return the papers with their findings, in the order of the report."""
    table = tomllib.loads((_FOLDER / "findings.toml").read_text(encoding="utf-8"))
    return tuple(Paper.model_validate(paper) for paper in table["papers"])


@cache
def stored_verdicts(size: str) -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """Return the verdicts of the last complete run, by experiment and claim; empty if none is kept.

    ``ikpca-papers reproduce --record`` writes them, for the sizes embedded and real.
    """
    path = VERDICTS / f"{size}.json"
    if not path.exists():
        return {}
    experiments = json.loads(path.read_text(encoding="utf-8"))
    return {(one["experiment"], claim["claim"]): claim for one in experiments
            for claim in one["claims"]}  # fmt: skip


def _text(value: float) -> str:
    if math.isnan(value):
        return DIVERGED
    return f"{value:.4g}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.1e}"


class Size(_SpecModel, extra="allow"):
    """Data of one size of an experiment; all other keys are its settings."""

    data: str


class Number(_SpecModel):
    """Number that a paper prints, and ours.

    Parameters
    ----------
    name, paper : str
    selection : Selection
        ``from`` in the file: as printed.
    variant : Selection, optional
        The same number for a variant of ours; it has missing keys from ``selection``.
    """

    name: str
    paper: str
    selection: Selection = Field(alias="from")
    variant: Selection | None = None

    _complete = field_validator("variant", mode="before")(_completed)

    def row(self, tables: Tables) -> dict[str, str]:
        """Return the texts of a row of the table."""
        ours, variant = (
            None if one is None else one.value(tables) for one in (self.selection, self.variant)
        )
        texts = {"name": self.name, "paper": self.paper}
        texts["as_printed"] = "–" if ours is None else _text(ours)
        return {**texts, "variant": "" if variant is None else _text(variant)}


class Drawing(_SpecModel):
    """Figure of an experiment: name of the drawing function, caption, options."""

    draw: str
    caption: str
    options: dict[str, Any] = {}


class Curves(_SpecModel):
    """Columns of a table that are plotted as curves.

    Parameters
    ----------
    table, x, y, series : str
        Columns; one curve per value of ``series``.
    label : str
        Of the vertical axis.
    panel : str or None
        One plot per value of this column.
    seconds : str or None
        The column of seconds, if curves can also be plotted over time.
    """

    table: str
    x: str
    y: str
    series: str
    label: str
    panel: str | None = None
    seconds: str | None = None


class ExperimentSpec(_SpecModel):
    """Contents of the spec file of an experiment.

    Parameters
    ----------
    id, title, about : str
    paper, figure : str
        Source: the paper, and the figure or table in it.
    finding : str
        What a complete run on the paper's data shows, in one sentence.
    sizes : dict of Size
    claims : list of Claim
    numbers : list of Number
    shown : list of str
        Tables that the page shows unfolded, such as those of an open setting.
    settings : dict
        Of all sizes; a size may override them.
    drawings : list of Drawing
        ``figures`` in the file.
    curves : Curves or None
    alone : bool
        True if it measures time or memory, and must not run in parallel with others.
    """

    id: str
    title: str
    about: str
    paper: str
    figure: str
    finding: str
    sizes: dict[SizeName, Size] = Field(min_length=len(SIZES))
    claims: list[Claim] = Field(min_length=1)
    numbers: list[Number] = []
    shown: list[str] = []
    settings: dict[str, Any] = {}
    drawings: list[Drawing] = Field([], alias="figures")
    curves: Curves | None = None
    alone: bool = False

    @field_validator("claims")
    @classmethod
    def _distinct(cls, claims: list[Claim]) -> list[Claim]:
        ids = [claim.id for claim in claims]
        if len(set(ids)) < len(ids):
            raise ValueError("give every claim its own id")
        return claims

    def settings_of(self, size: str) -> dict[str, Any]:
        """Return the settings of a size."""
        return {**self.settings, **(self.sizes[size].model_extra or {})}


def read_spec(path: Path) -> ExperimentSpec:
    """Read and check one spec file; errors name the file, the key and the value."""
    try:
        spec = ExperimentSpec.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(map(str, fault["loc"]))
        value = " ".join(repr(fault["input"])[:_QUOTED].split())
        raise InvalidInput(f"{path.name}: {key} is {value}: {fault['msg']}.") from None
    except (ValueError, RecursionError) as error:
        # From TOML, from the encoding, or from a number with thousands of digits.
        raise InvalidInput(f"{path.name}: is not TOML: {error}; correct it.") from None
    if spec.id != path.stem:
        raise InvalidInput(f"{path.name}: has the id {spec.id!r}; name the file after the id.")
    return spec


@cache
def specs() -> Mapping[str, ExperimentSpec]:
    """Return the specifications that come with the package, by id."""
    sorted_paths = sorted(_FOLDER.glob("*[0-9]/*.toml"), key=lambda path: path.stem)
    return {path.stem: read_spec(path) for path in sorted_paths}


def find_spec(name: str) -> ExperimentSpec:
    """Return the spec of that id; the error for an unknown one suggests the nearest."""
    all_specs = specs()
    if name in all_specs:
        return all_specs[name]
    near = get_close_matches(name, list(all_specs), n=1, cutoff=0.4)
    remedy = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(all_specs)}."
    raise InvalidInput(f"there is no experiment {name!r}; {remedy}")
