"""Shrinking undoes enlarging; what is consistent shrinks to what it came from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikpca.applications import PatchGrid, SuperResolution, box_mean, enlarge, make_consistent
from ikpca.applications.image_patches import count_windows, draw_patches
from ikpca.applications.super_resolution import choose_gamma, hold_out
from ikpca.errors import InvalidInput

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9))
CHANNELS = st.sampled_from([(), (1,), (3,)])


def image_of(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@settings(deadline=None)
@given(SHAPES, CHANNELS, st.integers(1, 5))
def test_shrinking_undoes_enlarging(shape, channels, factor):
    image = image_of((*shape, *channels))
    large = enlarge(image, factor)
    assert large.shape == (factor * shape[0], factor * shape[1], *channels)
    np.testing.assert_allclose(box_mean(large, factor), image, rtol=1e-12, atol=1e-14)


@settings(deadline=None)
@given(SHAPES, CHANNELS, st.integers(1, 5))
def test_the_consistent_image_is_the_nearest_with_the_given_means(shape, channels, factor):
    low = image_of((*shape, *channels))
    large = image_of((factor * shape[0], factor * shape[1], *channels), seed=1)
    found = make_consistent(large, low)
    np.testing.assert_allclose(box_mean(found, factor), low, atol=1e-12)
    # Nearest: the change has no part along the images whose means are zero.
    np.testing.assert_allclose(
        found - large, enlarge(box_mean(found - large, factor), factor), atol=1e-12
    )


@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_every_enlargement_keeps_its_place_and_its_level(method, channels):
    flat = np.full((3, 5, *channels), 7.0)
    np.testing.assert_allclose(enlarge(flat, 4, method), np.full((12, 20, *channels), 7.0))
    image = image_of((6, 7, *channels))
    # Upside down and back again: none is shifted to one side.
    turned = enlarge(image[::-1, ::-1], 3, method)[::-1, ::-1]
    np.testing.assert_allclose(enlarge(image, 3, method), turned, atol=1e-12)


def test_interpolation_of_a_slope_is_the_slope():
    slope = np.tile(np.arange(8.0), (4, 1))
    expected = (np.arange(32) + 0.5) / 4 - 0.5
    np.testing.assert_allclose(enlarge(slope, 4, "bilinear")[5, 2:-2], expected[2:-2], atol=1e-12)


def test_all_patches_are_drawn_once_where_all_are_wanted():
    images = [image_of((6, 5)), image_of((4, 9), seed=1)]
    drawn = draw_patches(images, (3, 4), 10**6, np.random.RandomState(0))
    every = np.vstack([PatchGrid(image.shape, (3, 4)).extract(image) for image in images])
    assert count_windows(images, (3, 4)) == len(every)
    np.testing.assert_array_equal(drawn, every)
    some = draw_patches(images, (3, 4), 7, np.random.RandomState(0))
    places = [int(np.flatnonzero((every == row).all(axis=1))[0]) for row in some]
    assert len(set(places)) == 7


def test_held_out_images_are_not_learned_from():
    images = [np.full((40, 50), float(number)) for number in range(10)]
    learn, crops = hold_out(images, (6, 6), 4, np.random.RandomState(0))
    assert len(learn) == 8
    assert not {float(image[0, 0]) for image in learn} & {float(crop[0, 0]) for crop in crops}
    assert {crop.shape for crop in crops} == {(20, 20)}


def test_the_width_of_least_error_is_chosen():
    patches = image_of((50, 4))
    unit = 1 / (4 * patches.var())
    gamma, tried = choose_gamma(patches, lambda gamma: abs(np.log(gamma / unit) - np.log(2)))
    # γ is twice the unit where σ is 1/√2 of the spread.
    assert gamma == pytest.approx(2 * unit)
    assert len(tried) == 7
    assert [pair[0] for pair in tried] == sorted((pair[0] for pair in tried), reverse=True)


def test_with_every_component_known_windows_come_back_and_blocks_lie_side_by_side():
    """An enlarged training window is on the manifold, whatever it lies beside."""
    rng = np.random.default_rng(0)
    low = rng.uniform(size=(6, 9))
    sharp = enlarge(low, 2)
    model = SuperResolution(
        2, 6, stride=6, n_components=84, gamma=2.0, tol=0, random_state=0, n_patches=10**4
    ).fit([sharp])
    np.testing.assert_allclose(model.transform(low), sharp, atol=2e-2)


REFUSED = [
    (lambda: box_mean(np.zeros((4, 6)), 4), "image of 4×6 pixels: factor=4 does not divide"),
    (lambda: box_mean(np.zeros((4, 4)), 0), "factor=0"),
    (lambda: box_mean(np.zeros((4, 4)), 2.0), "factor=2.0"),
    (lambda: enlarge(np.zeros((4, 4)), True), "factor=True"),
    (lambda: enlarge(np.zeros(4), 2), r"image has shape \(4,\)"),
    (lambda: enlarge(np.zeros((4, 4)), 2, "lanczos"), "method='lanczos': is unknown"),
    (lambda: make_consistent(np.zeros((4, 6)), np.zeros((2, 2))), "must be an integer"),
    (lambda: make_consistent(np.zeros((2, 2)), np.zeros((4, 4))), "must be an integer"),
]


def test_what_is_refused(subtests):
    for call, said in REFUSED:
        with subtests.test(said), pytest.raises(InvalidInput, match=said):
            call()
