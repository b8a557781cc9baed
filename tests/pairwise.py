"""Parametrisation by a covering array in place of the full product."""

from __future__ import annotations

from typing import Any

import pytest
from allpairspy import AllPairs


def pairwise(*, strength: int = 2, slow: bool = False, **values: Any) -> pytest.MarkDecorator:
    """Return a ``parametrize`` in which every pair of values of two parameters occurs.

    With ``strength=1`` every value occurs: enough where the parameters do not interact. With
    ``slow=True`` so do the values of the tests that are not slow; the other pairs are slow tests.
    """
    columns = [list(column) for column in values.values()]
    # Positions, because AllPairs compares values, and arrays have no truth value.
    chosen = [
        tuple(row) for row in AllPairs([range(len(column)) for column in columns], n=strength)
    ]
    missing = {(place, i) for place, column in enumerate(columns) for i in range(len(column))}
    cases = []
    for row in chosen:
        case = [column[i] for column, i in zip(columns, row, strict=True)]
        new = missing & set(enumerate(row))
        missing -= new
        cases.append(pytest.param(*case, marks=[pytest.mark.slow] if slow and not new else []))
    return pytest.mark.parametrize(tuple(values), cases)
