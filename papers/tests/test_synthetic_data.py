"""Synthetic data: properties for all seeds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from ikpca.errors import InvalidInput
from ikpca_papers.data import (
    checksum_of,
    drifting_parabola,
    load,
    parabola,
    perforated_swiss_roll,
    photograph,
    photograph_patches,
    square_photograph,
    synthetic_faces,
    synthetic_walker,
)
from ikpca_papers.data.photographs import _area_means
from ikpca_papers.data.synthetic import is_in_hole

GENERATORS = {
    "parabola": lambda **how: parabola(60, **how),
    "drifting_parabola": lambda **how: drifting_parabola(60, **how).X,
    "perforated_swiss_roll": lambda **how: perforated_swiss_roll(60, **how).X,
    "synthetic_faces": lambda **how: synthetic_faces(2, 3, **how).images,
    "photograph_patches": lambda **how: photograph_patches(n=60, **how),
}
EMBEDDED = ["photographs", "flower_256", "china_patches", "synthetic_faces", "walker"]


@pytest.mark.parametrize("name", GENERATORS)
def test_a_seed_decides_everything(name):
    make = GENERATORS[name]
    assert_array_equal(make(random_state=3), make(random_state=3))
    assert (make(random_state=3) != make(random_state=4)).any()


@pytest.mark.parametrize("name", EMBEDDED)
def test_threads_of_blas_do_not_change_the_checksum(name):
    with threadpool_limits(1):
        alone = load(name).checksum
    with threadpool_limits(2):
        assert load(name).checksum == alone


def test_parabola_without_noise_is_one():
    X = parabola(300, noise=0.0, curvature=0.7)
    assert_allclose(X[:, 1], 0.7 * X[:, 0] ** 2, rtol=1e-14)
    assert -1 <= X[:, 0].min() < -0.9
    assert 0.9 < X[:, 0].max() <= 1


def test_noise_has_the_standard_deviation_asked_for():
    noisy, clean = parabola(20_000, 0.2), parabola(20_000, 0.0)
    added = (noisy - clean)[:, 1]
    # Five standard errors of a standard deviation from 20,000 draws.
    assert abs(added.std() - 0.2) < 5 * 0.2 / np.sqrt(2 * 20_000)
    assert abs(np.corrcoef(added, clean[:, 0])[0, 1]) < 5 / np.sqrt(20_000)


@pytest.mark.parametrize("turn", [2 * np.pi, -1.3])
def test_turning_back_gives_the_parabola(turn):
    X, angles = drifting_parabola(200, turn=turn, random_state=5)
    as_complex = (X[:, 0] + 1j * X[:, 1]) * np.exp(-1j * angles)
    assert_allclose(
        np.column_stack([as_complex.real, as_complex.imag]), parabola(200, random_state=5),
        atol=1e-14,
    )  # fmt: skip
    assert_allclose(angles[[0, -1]], [0, turn])


def test_swiss_roll_is_a_sheet_with_a_hole():
    X, along, across = perforated_swiss_roll(5000, unit_variance=False)
    angle = 1.5 * np.pi * (1 + 2 * along)
    # Where on the sheet a row lies can be read off its place in space.
    assert_allclose(np.hypot(X[:, 0], X[:, 2]), angle, rtol=1e-12)
    assert_allclose(X[:, 1], 21 * across, rtol=1e-12)
    assert not is_in_hole(along, across).any()
    # As many rows left of the hole as on the whole sheet's share: 0.38 of 1 − 0.24 · 0.4.
    share, expected = np.mean(along < 0.38), 0.38 / (1 - 0.24 * 0.4)
    assert abs(share - expected) < 5 * np.sqrt(expected / 5000)


@pytest.mark.parametrize("n", [2, 800])
def test_swiss_roll_has_unit_variance(n):
    X = perforated_swiss_roll(n).X
    assert X.shape == (n, 3)
    assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    assert_allclose(X.std(axis=0), 1, rtol=1e-12)


def test_one_row_of_a_roll_is_finite():
    assert np.isfinite(perforated_swiss_roll(1).X).all()


def test_more_people_and_lights_begin_with_fewer():
    many, few = synthetic_faces(5, 6), synthetic_faces(3, 4)
    assert_array_equal(many.images.reshape(5, 6, 64, 56)[:3, :4].reshape(12, 64, 56), few.images)
    assert (few.azimuth[0], few.elevation[0]) == (0, 0)


def test_faces_are_brighter_on_the_side_of_the_light():
    faces = synthetic_faces(4, 40)
    right = faces.images[:, :, 28:].mean(axis=(1, 2)) - faces.images[:, :, :28].mean(axis=(1, 2))
    assert np.corrcoef(right, np.sin(np.deg2rad(faces.azimuth)))[0, 1] > 0.9
    below = faces.images[:, 40:].mean(axis=(1, 2)) - faces.images[:, 10:24].mean(axis=(1, 2))
    assert np.corrcoef(below, np.sin(np.deg2rad(faces.elevation)))[0, 1] < -0.8


def test_persons_differ_less_than_lights():
    images = synthetic_faces(6, 16).images.reshape(6, 16, -1) / 255
    between_people = images.mean(axis=1).var(axis=0).mean()
    between_lights = images.mean(axis=0).var(axis=0).mean()
    assert 1e-4 < between_people < between_lights


def test_a_face_under_all_lights_lies_near_few_dimensions():
    """By Lambert's law, three without attached shadows."""
    images = synthetic_faces(1, 60).images.reshape(60, -1) / 255
    variances = np.linalg.svd(images - images.mean(axis=0), compute_uv=False) ** 2
    assert variances[:5].sum() > 0.95 * variances.sum()


@pytest.mark.parametrize(("many", "few"), [(427, 256), (10, 5), (7, 7), (9, 1)])
def test_area_means_keep_the_mean_and_constants(many, few):
    means = _area_means(many, few).toarray()
    assert_allclose(means.sum(axis=1), 1, rtol=1e-12)
    assert_allclose(means.sum(axis=0), few / many, rtol=1e-12)
    if many % few == 0:
        rows = np.random.default_rng(0).normal(size=many)
        assert_allclose(means @ rows, rows.reshape(few, -1).mean(axis=1))


def test_square_photograph_is_the_middle_of_the_photograph():
    middle = photograph("flower")[:, 106:533]
    assert_array_equal(square_photograph(size=427), middle)
    assert_allclose(square_photograph().mean(), middle.mean(), rtol=1e-12)


def test_patches_are_different_windows_of_the_photograph():
    image = photograph("china").astype(np.float32)
    patches = photograph_patches("china", 50, size=6)
    windows = np.lib.stride_tricks.sliding_window_view(image, (6, 6)).reshape(-1, 36)
    places = [np.flatnonzero((windows == patch).all(axis=1)) for patch in patches]
    assert all(len(place) for place in places)
    assert_array_equal(photograph_patches("china", 80, size=6)[:50], patches)
    whole = photograph_patches("china", 427 * 640, size=1)
    assert_array_equal(np.sort(whole.ravel()), np.sort(image.ravel()))


def test_arrays_of_a_motion_have_its_values():
    motion = synthetic_walker(frames=7)
    arrays = motion.arrays()
    assert_allclose(arrays["positions"], motion.positions, rtol=1e-6, atol=1e-6)
    bones = np.linalg.norm(
        arrays["positions"] - arrays["positions"][:, np.maximum(arrays["parents"], 0)], axis=2
    )
    assert_allclose(bones, np.broadcast_to(arrays["bone_lengths"], bones.shape), atol=1e-5)


CHANGES = {
    "a value": lambda X: X + np.eye(4, 3),
    "the shape": lambda X: X.reshape(3, 4),
    "the kind of number": lambda X: X.astype(np.float32),
    "the order of rows": lambda X: X[::-1],
}


@pytest.mark.parametrize("change", CHANGES)
def test_checksum_depends_on_values_names_and_shapes(change):
    X = np.arange(12.0).reshape(4, 3)
    assert checksum_of({"X": CHANGES[change](X)}) != checksum_of({"X": X})
    assert checksum_of({"Y": X}) != checksum_of({"X": X})
    assert checksum_of({"X": X, "y": X}) != checksum_of({"X": X})


SAME = {
    "layout": np.asfortranarray,
    "byte order": lambda X: X.astype(">f8"),
    "every second of twice as many": lambda X: np.repeat(X, 2, axis=0)[::2],
}


@pytest.mark.parametrize("change", SAME)
def test_checksum_does_not_depend_on_the_storage(change):
    X = np.arange(12.0).reshape(4, 3)
    before = checksum_of({"X": X, "name": np.array("é"), "none": np.empty((0, 2))})
    after = {"none": np.empty((0, 2)), "name": np.array("é"), "X": SAME[change](X)}
    assert checksum_of(after) == before


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: parabola(0),
        lambda: parabola(10, noise=-0.1),
        lambda: parabola(10, noise=np.nan),
        lambda: drifting_parabola(10, turn=np.inf),
        lambda: perforated_swiss_roll(0),
        lambda: synthetic_faces(0),
        lambda: synthetic_faces(256),
        lambda: synthetic_faces(1, 0),
        lambda: synthetic_faces(1, 1, shape=(4, 40)),
        lambda: photograph("lena"),
        lambda: square_photograph(size=428),
        lambda: photograph_patches(n=0),
        lambda: photograph_patches(n=10**6),
        lambda: photograph_patches(size=500),
    ],
)
def test_bad_arguments_are_refused(wrong):
    with pytest.raises(InvalidInput, match=r"^\w+=.*: must be .*; pass .*\.$"):
        wrong()
