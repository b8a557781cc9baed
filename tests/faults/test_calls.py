"""The short form of ``make faults``, for calls."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.faults.calls import call, estimators, rows


@settings(max_examples=300, deadline=None, derandomize=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(estimators, rows(), rows(), st.booleans())
def test_random_calls(model, X, new, stream):
    if new.shape[1] != X.shape[1] and new.shape[1] > 1:
        new = new[:, :1].repeat(X.shape[1], axis=1)
    call(model, X, new, stream)
