"""Gains against the formulas of the papers."""

from __future__ import annotations

import numpy as np
import pytest

from ikpca.errors import InvalidInput
from ikpca.solvers import KHA, Gain, InverseTime, Product, ReciprocalEigenvalues
from ikpca.solvers.kha import METHODS
from tests.pairwise import pairwise

N_SAMPLES = 20
TIMES = np.array([0.0, 1.0, 20.0, 400.0])
EIGENVALUES = np.array([8.0, 4.0, 1.0])
DECAY = N_SAMPLES / (TIMES + N_SAMPLES)
RECIPROCAL = np.linalg.norm(EIGENVALUES) / EIGENVALUES


def spread(gain):
    """Return all gains as (steps, components)."""
    values = gain.gains(TIMES, N_SAMPLES, EIGENVALUES)
    return np.broadcast_to(values, (len(TIMES), len(EIGENVALUES)))


PAPERS = {
    "kha": np.full((4, 3), 0.3),
    "kha/t": 0.3 * np.repeat(DECAY[:, None], 3, axis=1),
    "kha/et": 0.3 * np.outer(DECAY, RECIPROCAL),
    "kha-smd": 0.3 * np.outer(DECAY, RECIPROCAL),
}


@pytest.mark.parametrize("method", METHODS)
def test_presets_are_the_papers_formulas(method):
    """η0; η0 l/(t+l); η0 l/(t+l) ‖λ‖/λ_i (Günter 2006, eq. 12); e^ρ times that."""
    np.testing.assert_allclose(
        spread(KHA(method, gain=0.3).gain_for(2.0)), PAPERS[method], rtol=1e-14
    )


@pytest.mark.parametrize(
    ("method", "shape"),
    [
        ("kha", np.ones((4, 3)) / 2),
        ("kha/t", np.repeat(DECAY[:, None], 3, axis=1) / 2),
        ("kha/et", np.outer(DECAY, 1 / EIGENVALUES)),
        ("kha-smd", np.outer(DECAY, 1 / EIGENVALUES)),
    ],
)
def test_automatic_gains_scale_with_the_kernel(method, shape):
    """Reciprocal to κ = mean k'(x, x), 2 here, or to λ; the numbers in front are tuned."""
    number = spread(KHA(method).gain_for(2.0)) / shape
    assert number.min() == pytest.approx(number.max(), rel=1e-14)
    assert 0.01 < number.max() < 20


@pytest.mark.parametrize(
    ("init", "rate", "log_gain"),
    [("random", 0.4, 1.0), ("landmarks", 0.4, 0.0), ("auto", 0.4, 0.0)],
)
def test_automatic_meta_descent_depends_on_the_start_and_the_scale(init, rate, log_gain):
    solver = KHA("kha-smd", init=init)
    assert solver.meta_options(10.0)[0] == pytest.approx(rate / 10)
    assert solver.initial_log_gain == log_gain


@pytest.mark.parametrize("eta0", [0.3, "auto"])
def test_options_of_meta_descent(eta0):
    solver = KHA("kha-smd", gain=eta0, meta_gain=0.4, meta_decay=0.9, log_gain_init=1.0)
    assert solver.meta_options(2.0)[:2] == (0.4, 0.9)
    assert solver.initial_log_gain == 1
    assert [KHA(method).has_companion for method in METHODS] == [False, False, False, True]


def test_the_papers_log_gains_are_unbounded_and_ours_are_not():
    paper, ours = (KHA("kha-smd", gain=gain).meta_options(2.0)[2:] for gain in (0.3, "auto"))
    assert paper == (np.inf, np.inf)
    assert 0 < ours[0] < ours[1] < np.inf


def test_products_are_products():
    gain = 0.05 * InverseTime() * ReciprocalEigenvalues()
    np.testing.assert_allclose(spread(gain), 0.05 * np.outer(DECAY, RECIPROCAL), rtol=1e-14)


@pytest.mark.parametrize("number", [3, 3.0, np.float32(3), np.int64(3)])
def test_numbers_multiply_from_both_sides(number):
    expected = 3 * spread(InverseTime())
    np.testing.assert_allclose(spread(InverseTime() * number), expected, rtol=1e-14)
    np.testing.assert_allclose(spread(number * InverseTime()), expected, rtol=1e-14)


def test_products_nest_in_any_order():
    factors = [0.3, InverseTime(7), ReciprocalEigenvalues()]
    first = factors[0] * (factors[1] * factors[2])
    second = factors[2] * factors[0] * factors[1]
    np.testing.assert_allclose(spread(first), spread(second), rtol=1e-14)


@pytest.mark.parametrize(
    ("gain", "shape"),
    [
        (Product((0.3,)), (1, 1)),
        (InverseTime(), (4, 1)),
        (ReciprocalEigenvalues(), (1, 3)),
        (0.3 * ReciprocalEigenvalues(), (1, 3)),
        (InverseTime() * ReciprocalEigenvalues(), (4, 3)),
    ],
)
def test_gains_are_no_larger_than_they_must_be(gain, shape):
    assert isinstance(gain, Gain)
    assert gain.gains(TIMES, N_SAMPLES, EIGENVALUES).shape == shape


def test_tau_takes_the_place_of_the_number_of_samples():
    expected = np.repeat((5 / (TIMES + 5))[:, None], 3, axis=1)
    np.testing.assert_allclose(spread(InverseTime(5)), expected, rtol=1e-14)


def test_without_the_norm_a_gain_is_the_reciprocal():
    found = spread(ReciprocalEigenvalues(with_norm=False))
    np.testing.assert_allclose(found, np.tile(1 / EIGENVALUES, (4, 1)), rtol=1e-14)


@pytest.mark.parametrize("with_norm", [True, False])
@pytest.mark.parametrize("values", [[8.0, 0.0, -1e-18], [0.0, 0.0, 0.0]])
def test_components_without_variance_do_not_step_infinitely_far(values, with_norm):
    gain = ReciprocalEigenvalues(with_norm=with_norm)
    gains = gain.gains(TIMES, N_SAMPLES, np.array(values))
    assert np.isfinite(gains).all()
    assert (gains >= 0).all()


def test_gains_do_not_modify_their_arguments():
    times, values = TIMES.copy(), EIGENVALUES.copy()
    times.flags.writeable = values.flags.writeable = False
    (0.3 * InverseTime() * ReciprocalEigenvalues()).gains(times, N_SAMPLES, values)


@pairwise(
    strength=1,
    make=[InverseTime, lambda value: value * InverseTime()],
    bad=[0, -1, 0.0, -1e-30, np.nan, np.inf],
)
def test_nonpositive_parameters_are_rejected(make, bad):
    with pytest.raises(InvalidInput, match="positive") as refused:
        make(bad)
    assert repr(float(bad)) in str(refused.value) or repr(bad) in str(refused.value)


@pytest.mark.parametrize("bad", ["0.1", None, [1.0]])
def test_gains_multiply_with_numbers_and_gains_only(bad):
    with pytest.raises(InvalidInput, match="number or a gain"):
        bad * InverseTime()
    with pytest.raises(InvalidInput, match="number or a gain"):
        InverseTime() * bad
