"""Pairwise parametrization."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from itertools import combinations, product
from typing import Any

import pytest
from allpairspy import AllPairs


def pairwise(
    *,
    strength: int = 2,
    slow: bool = False,
    where: Callable[..., bool] | None = None,
    **values: Any,
) -> pytest.MarkDecorator:
    """Return a ``parametrize`` in which every pair of values of two parameters occurs.

    ``where`` is True for valid combinations; it takes the parameters that its arguments name. With
    ``strength=1`` every value occurs: enough where the parameters do not interact. With
    ``slow=True`` so do the values of the tests that are not slow; the other pairs are slow tests.
    """
    columns = [list(column) for column in values.values()]
    # Positions, because AllPairs compares values, and arrays have no truth value.
    places = [range(len(column)) for column in columns]
    if where is None:
        chosen = [tuple(row) for row in AllPairs(places, n=strength)]
    else:
        used = [list(values).index(name) for name in signature(where).parameters]
        valid = [row for row in product(*places) if where(*(columns[i][row[i]] for i in used))]
        chosen = _covering_rows(valid, strength)
    missing = {(place, i) for place, column in enumerate(columns) for i in range(len(column))}
    cases = []
    for row in chosen:
        case = [column[i] for column, i in zip(columns, row, strict=True)]
        new = missing & set(enumerate(row))
        missing -= new
        cases.append(pytest.param(*case, marks=[pytest.mark.slow] if slow and not new else []))
    return pytest.mark.parametrize(tuple(values), cases)


def _covering_rows(valid: list[tuple[int, ...]], strength: int) -> list[tuple[int, ...]]:
    """Choose rows greedily that cover the most uncovered tuples."""
    tuples = {row: set(combinations(enumerate(row), strength)) for row in valid}
    missing = set().union(*tuples.values())
    chosen = []
    while missing:
        chosen.append(max(valid, key=lambda row: len(tuples[row] & missing)))
        missing -= tuples[chosen[-1]]
    return chosen
