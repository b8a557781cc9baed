"""Chin 2006, figure 1: three schemes for several vectors, and joint pre-images."""

from __future__ import annotations

import pytest

from ikpca_papers.chin2006.parabola import compare_schemes


@pytest.fixture(scope="module")
def errors():
    rows = compare_schemes(n_samples=300, n_components=5, sizes=(2, 4))
    return {(row.data, row.per_vector, row.scheme): row.error for row in rows}


@pytest.mark.parametrize("per_vector", [2, 4])
def test_order_of_the_schemes_on_the_parabola(errors, per_vector):
    separate, reuse, second = (
        errors["parabola", per_vector, scheme] for scheme in ("separate", "reuse", "second pass")
    )
    assert separate > reuse > second


@pytest.mark.parametrize("per_vector", [2, 4])
@pytest.mark.parametrize("data", ["parabola", "digits"])
def test_joint_preimages_have_smaller_errors_than_iterated_ones(errors, data, per_vector):
    second, samples, joint = (
        errors[data, per_vector, scheme]
        for scheme in ("second pass", "chosen samples", "joint pre-images")
    )
    assert joint < 0.5 * min(samples, second)
    assert second <= errors[data, per_vector, "reuse"]
