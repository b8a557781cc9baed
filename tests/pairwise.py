"""Parametrisation by a covering array in place of the full product."""

from __future__ import annotations

from typing import Any

import pytest
from allpairspy import AllPairs


def pairwise(*, strength: int = 2, **values: Any) -> pytest.MarkDecorator:
    """Return a ``parametrize`` in which every pair of values of two parameters occurs.

    With ``strength=1`` every value occurs: enough where the parameters do not interact.
    """
    columns = [list(column) for column in values.values()]
    # Positions, because AllPairs compares values, and arrays have no truth value.
    chosen = AllPairs([range(len(column)) for column in columns], n=strength)
    cases = [tuple(column[i] for column, i in zip(columns, row, strict=True)) for row in chosen]
    return pytest.mark.parametrize(tuple(values), cases)
