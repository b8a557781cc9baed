"""Short form of ``make faults`` for calls."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.faults.calls import outcome, random_calls

pytestmark = pytest.mark.slow


@settings(max_examples=150, deadline=None, derandomize=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(random_calls)
def test_random_calls_succeed_or_raise_expected_errors(drawn):
    _, use, given_to_it = drawn
    outcome(use, given_to_it)
