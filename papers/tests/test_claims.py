"""Every claim can hold and can fail."""

from __future__ import annotations

import itertools
import math

import pytest

from ikpca_papers.claims import Claim, Selection, Status, evaluate_claim, specs

CLAIMS = [
    pytest.param(claim, id=f"{spec.id}/{claim.id}")
    for spec in specs().values()
    for claim in spec.claims
]
#: Values of one side that hold and fail against any bound, of the other side or in the spec.
STEPS = (-1e6, -1.0, 0.0, 1e-6, 1.0, 1e6)


def selections(claim):
    """Return the selections of a claim: both sides, or one per step of a decreasing sequence."""
    left = claim.selection
    if claim.decreasing is not None:
        return [
            left.model_copy(update={"where": {**left.where, **step}}) for step in claim.decreasing
        ]
    return [left, claim.bound] if isinstance(claim.bound, Selection) else [left]


def rows_of(selection, value, keys):
    """Yield rows that only this selection takes."""
    choices = {
        name: expected if isinstance(expected, list) else [expected]
        for name, expected in selection.where.items()
    }
    for cells in itertools.product(*choices.values()):
        others = dict.fromkeys(keys, "none of them")
        yield {**others, **dict(zip(choices, cells, strict=True)), selection.column: value}


def tables_with(claim, values):
    """Return tables from which the selections of a claim take the given values."""
    chosen = selections(claim)
    keys = {name for selection in chosen for name in selection.where}
    tables = {}
    for selection, value in zip(chosen, values, strict=True):
        rows = tables.setdefault(selection.table, [])
        for row in rows_of(selection, value, keys):
            same = [
                other for other in rows
                if all(other.get(key) == row.get(key) for key in keys)
            ]  # fmt: skip
            if same:
                same[0].update(row)
            else:
                rows.append(row)
    return tables


def candidates(claim):
    """Values on either side of the bound, one per selection."""
    if isinstance(claim.bound, float | int):
        return [(claim.bound + step,) for step in STEPS]
    # Differences large enough for every factor.
    return list(itertools.product((-1e9, -1.0, 1.0, 1e9), repeat=len(selections(claim))))


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_can_hold_and_fail(claim):
    size = claim.sizes[0]
    result = {
        evaluate_claim(claim, size, tables_with(claim, values)).status
        for values in candidates(claim)
    }
    assert result == {Status.HOLDS, Status.FAILS}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_diverged_run_fails_and_a_missing_one_is_not_run(claim):
    size, n_values = claim.sizes[0], len(selections(claim))
    for place in range(n_values):
        values = [None if number == place else 1.0 for number in range(n_values)]
        verdict = evaluate_claim(claim, size, tables_with(claim, values))
        assert verdict.status is Status.FAILS
        assert "diverged" in verdict.ours
    tables = tables_with(claim, [1.0] * n_values)
    tables[claim.selection.table] = []
    assert evaluate_claim(claim, size, tables).status is Status.NOT_RUN
    assert evaluate_claim(claim, size, None).status is Status.NOT_RUN


@pytest.mark.parametrize("take", ["mean", "median", "min", "max", "first", "last"])
@pytest.mark.parametrize("place", range(3))
def test_one_diverged_row_among_others_is_enough(take, place):
    for diverged in (None, math.inf, math.nan):
        rows = [{"c": diverged if number == place else 1.0} for number in range(3)]
        claim = Claim.model_validate(
            {"id": "c", "sentence": "S", "paper": "1", "fails_if": "F", "is": "<", "than": 2.0,
             "from": {"table": "t", "column": "c", "take": take}}
        )  # fmt: skip
        verdict = evaluate_claim(claim, "quick", {"t": rows})
        assert (verdict.status, verdict.ours) == (Status.FAILS, "diverged")


def test_a_row_without_the_column_is_not_run():
    selection = Selection(table="t", column="c")
    assert selection.value({"t": [{"c": 1.0}, {"d": 1.0}]}) is None
    assert selection.value({"t": [{"c": "text"}]}) is None
    assert selection.value({}) is None
