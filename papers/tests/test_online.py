"""Claims of Kim 2003, appendix A, on synthetic streams."""

from __future__ import annotations

import pytest

from ikpca_papers.data import parabola
from ikpca_papers.kim2003.online import (
    KERNELS,
    SMALL_GAIN,
    TRACKERS,
    Rotation,
    converge,
    converge_as_printed,
    starts_of_figures_6_and_7,
    track_angles,
)

GAUSSIAN = KERNELS["Gaussian, σ = 1"]
LIMIT, WARM_UP = 15.0, 1000


def tracked(shape, name):
    rotation = Rotation(shape, n=4000)
    return track_angles(rotation, name, every=100, **GAUSSIAN, **TRACKERS[name])


@pytest.mark.parametrize("shape", ["ellipse", "parabola"])
def test_a_constant_gain_tracks_a_rotating_distribution(shape):
    """Half a turn: seen over more than a full one, 11.1° and 11.5° at most."""
    result = tracked(shape, "ours, constant gain")
    assert result.worst_after(WARM_UP) < LIMIT


def test_automatic_gain_with_forgetting_tracks_it():
    assert tracked("ellipse", "ours, automatic gain, forgetting").worst_after(WARM_UP) < LIMIT


@pytest.mark.parametrize("shape", ["ellipse", "parabola"])
def test_decaying_gain_does_not_track_it(shape):
    assert tracked(shape, "ours, decaying gain").worst_after(WARM_UP) > 60


@pytest.mark.parametrize("start", ["rows", "random"])
def test_it_converges_to_the_components_of_the_batch(start):
    for result in converge(sizes=(1500,), init=start):
        assert min(result.correlations) > 0.95, result
        # Shares mean little where the kernel is no inner product.
        assert result.kernel == "tanh" or result.held > 0.995, result


def test_as_printed_it_approaches_the_components():
    for (tuned, small), gains in converge_as_printed(sizes=(1500,)):
        assert (tuned.form, small.form) == ("as printed", f"as printed, η = {SMALL_GAIN:g}")
        assert 0.9 < min(tuned.correlations) <= 1, tuned
        assert min(small.correlations) < min(tuned.correlations), small
        assert len(gains) >= 3


@pytest.mark.parametrize("as_printed", [True, False])
def test_figures_6_and_7(as_printed):
    """A start far from all rows is orthogonal to them in double precision, and stays so."""
    result = starts_of_figures_6_and_7(parabola(2000), as_printed=as_printed)
    held = {start: one.held for start, _, one in result}
    assert held["distant"] < 1e-12
    assert held["covering"] > 0.9
