"""From the entries of a spec file to claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ikpca.experiments.keys import checked, fault
from ikpca.experiments.selections import TAKES, Selection
from ikpca.experiments.verdicts import COMPARISONS, Claim, Comparison, Decrease

__all__ = ["read_claim"]

_FORM = ("from", "is", "than", "decreasing")


def read_claim(entry: Any, number: int, file: str, sizes: Sequence[str]) -> Claim:
    """Check one entry of ``[[claims]]``; it has one form, or several under ``all``."""
    what = f"claims[{number}]"
    checked(entry, file, what, ("id", "sentence", "paper"), ("sizes", "note", "all", *_FORM))
    listed = entry.get("all")
    if listed is None:
        listed = [{key: entry[key] for key in _FORM if key in entry}]
    elif any(key in entry for key in _FORM):
        raise fault(file, f"{what} has both all and a form of its own", "keep one of them")
    if not listed:
        raise fault(file, f"{what} can never fail", "give it from, is and than, or decreasing")
    chosen = tuple(entry.get("sizes", sizes))
    unknown = [size for size in chosen if size not in sizes]
    if unknown:
        raise fault(
            file, f"{what} has the unknown size {unknown[0]!r}", f"known: {', '.join(sizes)}"
        )
    return Claim(
        str(entry["id"]),
        str(entry["sentence"]),
        str(entry["paper"]),
        tuple(_form(one, what, file) for one in listed),
        chosen,
        str(entry.get("note", "")),
    )


def _form(entry: Any, what: str, file: str) -> Comparison | Decrease:
    checked(entry, file, what, ("from",), _FORM)
    base = _selection(entry["from"], f"{what}.from", file)
    if "decreasing" in entry and len(entry) == 2:
        narrower = entry["decreasing"]
        if not isinstance(narrower, list) or len(narrower) < 2:
            raise fault(file, f"{what}.decreasing has no order", "list two selections or more")
        names = tuple(" ".join(str(value) for value in one.values()) for one in narrower)
        return Decrease(tuple(base.narrowed(one) for one in narrower), names)
    if set(entry) != {"from", "is", "than"}:
        raise fault(file, f"{what} can never fail", "give it from, is and than, or decreasing")
    if entry["is"] not in COMPARISONS:
        known = ", ".join(COMPARISONS)
        raise fault(file, f"{what} has the unknown comparison {entry['is']!r}", f"known: {known}")
    return Comparison(base, entry["is"], _bound(entry["than"], base, what, file))


def _bound(entry: Any, base: Selection, what: str, file: str) -> float | Selection:
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        return float(entry)
    if not isinstance(entry, dict):
        raise fault(file, f"{what}.than is {entry!r}", "pass a number or a selection")
    # What is not said is as on the left.
    left = {"table": base.table, "column": base.column, "take": base.take}
    return _selection({**left, **entry}, f"{what}.than", file)


def _selection(entry: Any, what: str, file: str) -> Selection:
    checked(entry, file, what, ("table", "column"), ("take", "where", "times"))
    take = entry.get("take", "mean")
    if take not in TAKES:
        raise fault(file, f"{what} takes {take!r}", f"known: {', '.join(TAKES)}")
    where: Mapping[str, Any] = entry.get("where", {})
    return Selection(entry["table"], entry["column"], take, where, float(entry.get("times", 1)))
