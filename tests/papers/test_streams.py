"""Chin and Suter 2006, section 6, in small: streams against batch kernel PCA."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ikpca.experiments import face_streams, large_stream, manifolds
from ikpca.experiments.large_rows import large_rows
from ikpca.experiments.manifold_rows import PARABOLA_GAMMA, parabola, swiss_roll
from ikpca.experiments.stream_growth import WARM_UP, claims, stream_costs

GAUSSIAN = {"kernel": "rbf", "gamma": PARABOLA_GAMMA}


def test_a_longer_parabola_begins_with_a_shorter():
    np.testing.assert_array_equal(parabola(500)[:20], parabola(20))
    x, y = parabola(4000).T
    assert np.abs(x).max() <= 1
    assert np.std(y - x**2) == pytest.approx(0.2, rel=0.05)


def test_the_roll_has_a_hole_and_unit_variance():
    X, along = swiss_roll()
    assert X.shape == (800, 3)
    assert X.std() == pytest.approx(1)
    heights = np.unique(np.abs(X[np.abs(along - 0.5) < 0.1, 1]) > 0.4)
    assert heights.tolist() == [True]


@pytest.fixture(scope="module")
def costs():
    return stream_costs(parabola, [1500, 4000], {"n_components": 3, **GAUSSIAN}, repeats=1)


def test_the_parabola_streams_to_the_components_of_batch(costs):
    closest = claims(costs)[-1]
    assert closest.what.endswith("with batch")
    assert closest.holds


def test_memory_stays_flat_after_warm_up(costs):
    held = costs[-1].after_warm_up(costs[-1].held_bytes)
    assert len(held) == (4000 - WARM_UP) / 100
    assert claims(costs)[2].holds


def test_the_roll_streams_to_the_components_that_batch_separates():
    roll = manifolds.roll()
    assert len(roll.separated) >= 5
    (claim,) = manifolds.claims(roll)
    assert claim.holds, str(claim)


def test_more_digits_make_fewer_errors():
    pixels, y = load_digits(return_X_y=True)
    kernels = {"poly": {"kernel": "poly", "degree": 2}}
    (found,) = face_streams.recognise_streams(pixels / 16, y, subset=400, splits=4, kernels=kernels)
    assert [claim.holds for claim in face_streams.claims(found)] == [True, True]


def test_many_rows_from_a_small_library():
    _, gamma, rows_of = large_rows(None)
    load = partial(rows_of, 3000)
    found = large_stream.stream_once(load, kernel="rbf", gamma=gamma, library_size=200)
    exact = large_stream.exact_eigenvalues(load(), 16, kernel="rbf", gamma=gamma)
    library, _, captured = large_stream.claims(found, exact, 200, 300)
    assert library.holds
    assert captured.holds
    # No subspace holds more than the best.
    assert captured.value <= 1 + 1e-6
