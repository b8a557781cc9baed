"""Super-resolution: estimator, interpolation, training patches, invalid input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ikpca import KernelPCA
from ikpca.errors import InvalidInput
from ikpca_papers.applications import (
    PatchGrid,
    SuperResolution,
    box_mean,
    draw_patches,
    enlarge,
    make_consistent,
)
from ikpca_papers.applications.image_patches import count_windows
from ikpca_papers.applications.super_resolution import choose_gamma, hold_out


def waves(shape=(32, 40)):
    """Two images with slopes in all directions."""
    rows, columns = np.indices(shape)
    return [np.sin(rows / 5) * np.cos(columns / 7), np.cos(rows / 4 + columns / 6)]


def model(**parameters):
    defaults = {"factor": 2, "patch": 6, "n_components": 10, "gamma": 0.1, "n_patches": 400}
    return SuperResolution(**defaults | {"random_state": 0} | parameters)


@pytest.fixture(scope="module")
def fitted():
    return model().fit(waves())


def test_copies_and_pickles(fitted):
    low = box_mean(waves()[0], 2)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(low), fitted.transform(low))
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        fresh.transform(low)
    np.testing.assert_array_equal(fresh.fit(waves()).transform(low), fitted.transform(low))


def test_saved_models_transform_alike(fitted, tmp_path):
    low = box_mean(waves()[0], 2)
    fitted.save(tmp_path / "up.ikpca")
    again = SuperResolution.load(tmp_path / "up.ikpca")
    np.testing.assert_array_equal(again.transform(low), fitted.transform(low))
    assert again.get_params() == fitted.get_params()
    KernelPCA(2, kernel="rbf").fit(low).save(tmp_path / "other.ikpca")
    with pytest.raises(InvalidInput, match="is a KernelPCA, not a SuperResolution"):
        SuperResolution.load(tmp_path / "other.ikpca")


def test_failed_fits_leave_the_model_unchanged(fitted):
    low = box_mean(waves()[0], 2)
    again = pickle.loads(pickle.dumps(fitted))
    with pytest.raises(InvalidInput):
        again.fit([np.zeros((20, 20))])
    np.testing.assert_array_equal(again.transform(low), fitted.transform(low))


def test_arguments_are_not_modified(fitted):
    images, low = waves(), box_mean(waves()[0], 2)
    for image in (*images, low):
        image.flags.writeable = False
    model(gamma="auto").fit(images).transform(low)
    np.testing.assert_array_equal(images[0], waves()[0])


def test_a_list_and_a_stack_are_image_by_image(fitted):
    low = [box_mean(image, 2) for image in waves()]
    for many in (low, tuple(low), np.array(low)):
        result = fitted.transform(many)
        assert len(result) == 2
        for one, image in zip(result, low, strict=True):
            np.testing.assert_allclose(one, fitted.transform(image), atol=1e-9)
    np.testing.assert_array_equal(fitted.transform(low[0].tolist()), fitted.transform(low[0]))


def test_sizes_may_differ_and_need_no_divisor(fitted):
    odd = [waves((17, 23))[0], waves((9, 41))[1]]
    learned = model(gamma="auto").fit(odd)
    assert learned.transform(np.zeros((5, 11))).shape == (10, 22)


def test_integers_are_read_as_numbers():
    images = [np.rint(100 + 90 * image).astype(np.uint8) for image in waves()]
    bytes_, floats = (
        model(gamma="auto").fit(kind).transform(box_mean(images[0], 2))
        for kind in (images, [image.astype(float) for image in images])
    )
    np.testing.assert_array_equal(bytes_, floats)


def test_search_reports_and_uses_the_best_gamma():
    result = model(gamma="auto").fit(waves())
    assert len(result.gamma_search_) == 7
    assert result.gamma_ == min(result.gamma_search_, key=lambda pair: pair[1])[0]
    assert model().fit(waves()).gamma_search_ == []


@pytest.mark.parametrize("level", [0.0, 0.3])
def test_a_constant_image_stays_nearly_constant(level):
    images = [*waves(), np.zeros((20, 20)), np.full((20, 20), 0.3)]
    result = model(n_components=30, gamma="auto").fit(images).transform(np.full((9, 9), level))
    assert np.abs(result - level).max() < 0.1


def test_consistent_result_has_the_given_means(fitted):
    low = box_mean(waves()[0], 2)
    plain = model(consistent=False).fit(waves()).transform(low)
    exact = model(consistent=True).fit(waves()).transform(low)
    assert np.abs(box_mean(plain, 2) - low).max() > 1e-4
    np.testing.assert_allclose(box_mean(exact, 2), low, atol=1e-12)


def test_whole_images_are_single_windows():
    rng = np.random.default_rng(0)
    prototypes = np.kron(rng.uniform(size=(3, 2, 2)), np.ones((3, 3)))
    faces = rng.dirichlet(np.ones(3), 60) @ prototypes.reshape(3, -1)
    result = model(patch=None, factor=3, n_components=4, gamma="auto").fit(faces.reshape(-1, 6, 6))
    assert result.patch_shape_ == (6, 6)
    assert result.n_patches_ == 60
    restored = result.transform(box_mean(faces[0].reshape(6, 6), 3))
    np.testing.assert_allclose(restored, faces[0].reshape(6, 6), atol=0.02)


NAN = np.where(np.eye(20) > 0, np.nan, 0.0)


BAD_TRAINING_IMAGES = [
    (np.zeros((20, 20)), r"images are \(20, 20\): .*a list of grayscale"),
    ([], "images are empty"),
    (np.zeros((0, 20, 20)), "images are empty"),
    (7, "images are int"),
    ("images", "images are str"),
    ([np.zeros((20, 20)), np.zeros((20, 20, 3))], r"images\[1\] has shape .* must be gray"),
    ([np.zeros((20, 20), dtype=complex)], r"images\[0\] is of type complex128"),
    ([np.full((20, 20), "a")], r"images\[0\] is of type <U1"),
    ([NAN], r"images\[0\] contains NaN"),
    ([np.full((20, 20), np.inf)], r"images\[0\] contains NaN or infinite"),
    ([np.zeros((20, 20)), np.zeros((5, 20))], "larger than the image of 5×20"),
    ([np.zeros((20, 20))], "patches are equal"),
    ([1e200 * image for image in waves()], r"images\[0\] has pixels as large as"),
    ([np.arange(42.0).reshape(6, 7)], "n_components=10: there are only 2 patches"),
]


def test_training_images_that_are_refused(subtests):
    for images, message in BAD_TRAINING_IMAGES:
        with subtests.test(message), pytest.raises(InvalidInput, match=message):
            model().fit(images)


BAD_PARAMETERS = [
    ({"factor": 0}, "factor=0"),
    ({"factor": 10**30}, "factor="),
    ({"factor": 2.5}, "factor=2.5"),
    ({"patch": 0}, "patch=0: must be a positive integer"),
    ({"patch": (6, 6, 6)}, r"patch=\(6, 6, 6\)"),
    ({"patch": "large"}, "patch='large'"),
    ({"patch": 50}, "patch=50: is larger than the image of 32×40"),
    ({"stride": 7}, "stride=7: is larger than the windows"),
    ({"stride": "half"}, "stride='half'"),
    ({"patch": None, "stride": 3}, "stride=3: patch=None"),
    ({"n_components": 0}, "n_components=0"),
    ({"n_components": 0.5}, "n_components=0.5"),
    ({"n_components": 50, "n_patches": 50}, "n_components=50: there are only 50 patches"),
    ({"n_patches": -1}, "n_patches=-1"),
    ({"gamma": 0}, "gamma=0: must be 'auto' or a positive number"),
    ({"gamma": "scale"}, "gamma='scale'"),
    ({"gamma": np.nan}, "gamma=nan"),
    ({"enlargement": "cubic"}, "enlargement='cubic'"),
    ({"consistent": "yes"}, "consistent='yes'"),
    ({"eigen_solver": "magic"}, "eigen_solver='magic'"),
    ({"tol": -1}, "tol=-1"),
    ({"max_memory": "lots"}, "max_memory='lots'"),
    ({"preimage": "mirror"}, "preimage='mirror'"),
    ({"patch": None, "factor": 3}, "factor=3 does not divide"),
    ({"patch": (32, 40), "factor": 9, "n_components": 1, "gamma": "auto"}, "no image"),
]


def test_parameters_that_are_refused(subtests):
    for parameters, message in BAD_PARAMETERS:
        with subtests.test(message), pytest.raises(InvalidInput, match=message):
            model(**parameters).fit(waves())


def test_whole_images_of_two_sizes_are_refused():
    with pytest.raises(InvalidInput, match="unequal sizes"):
        model(patch=None).fit([np.zeros((20, 20)), np.zeros((20, 22))])


BAD_IMAGES = [
    (np.zeros(16), r"image has shape \(16,\)"),
    (np.zeros((0, 4)), "not empty"),
    (np.zeros((2, 9)), "image of 2×9 pixels: enlarged 2 times, .* patch of 6×6"),
    (NAN, "image contains NaN"),
    ([[1, 2], [3]], "rows of unequal length"),
    (None, "image is of type object"),
    ([np.zeros((9, 9)), NAN], r"images\[1\] contains NaN"),
]


def test_images_that_are_refused(fitted, subtests):
    for image, message in BAD_IMAGES:
        with subtests.test(message), pytest.raises(InvalidInput, match=message):
            fitted.transform(image)


def test_whole_images_must_have_the_learned_size():
    faces = np.random.default_rng(0).uniform(size=(30, 6, 6))
    learned = model(patch=None, n_components=4).fit(faces)
    with pytest.raises(InvalidInput, match="size 6×6 of the training images"):
        learned.transform(np.zeros((4, 4)))


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
    result = make_consistent(large, low)
    np.testing.assert_allclose(box_mean(result, factor), low, atol=1e-12)
    # Nearest: the change has no part along the images whose means are zero.
    np.testing.assert_allclose(
        result - large, enlarge(box_mean(result - large, factor), factor), atol=1e-12
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


def test_all_components_restore_training_windows():
    """Enlarged training windows are restored exactly, next to any other window."""
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


def test_arguments_that_are_refused(subtests):
    for call, message in REFUSED:
        with subtests.test(message), pytest.raises(InvalidInput, match=message):
            call()
