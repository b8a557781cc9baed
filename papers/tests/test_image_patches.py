"""Extracting and assembling windows restores every image."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikpca.errors import InvalidInput
from ikpca_papers.applications import PatchGrid


@st.composite
def grids(draw):
    """Draw images, windows and strides."""
    shape = draw(st.tuples(st.integers(1, 17), st.integers(1, 17)))
    size = tuple(draw(st.integers(1, length)) for length in shape)
    stride = tuple(draw(st.integers(1, length)) for length in size)
    channels = draw(st.sampled_from([(), (1,), (3,), (4,)]))
    return PatchGrid((*shape, *channels), size, stride)


def image_for(grid, seed=0):
    return np.random.default_rng(seed).normal(size=grid.shape)


@settings(deadline=None)
@given(grids())
def test_assembling_undoes_extracting(grid):
    image = image_for(grid)
    again = grid.assemble(grid.extract(image))
    np.testing.assert_allclose(again, image, rtol=1e-12, atol=1e-12)


@settings(deadline=None)
@given(grids())
def test_rows_are_windows_of_the_image_in_reading_order(grid):
    image = image_for(grid)
    (height, width), (down, across) = grid.size, grid.stride
    tops = sorted({*range(0, grid.shape[0] - height + 1, down), grid.shape[0] - height})
    lefts = sorted({*range(0, grid.shape[1] - width + 1, across), grid.shape[1] - width})
    expected = [image[i : i + height, j : j + width].ravel() for i in tops for j in lefts]
    np.testing.assert_array_equal(grid.extract(image), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, bool])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_types_narrower_than_the_average_keep_every_bit(dtype, channels):
    image = np.random.default_rng(0).integers(0, 255, size=(23, 31, *channels)).astype(dtype)
    grid = PatchGrid(image.shape, 5, 3)
    patches = grid.extract(image)
    again = grid.assemble(patches)
    assert patches.dtype == again.dtype == dtype
    np.testing.assert_array_equal(again, image)


def test_an_overlap_is_the_mean():
    grid = PatchGrid((1, 3), (1, 2))
    patches = np.array([[0.0, 1.0], [5.0, 9.0]])
    np.testing.assert_allclose(grid.assemble(patches), [[0, 3, 9]])


def test_extract_copies():
    image = np.zeros((4, 4))
    PatchGrid(image.shape, 4).extract(image)[:] = 1
    assert not image.any()


BAD_GRIDS = [
    ((4, 5), 5, 1, r"size=5: is larger than the image of 4×5 pixels"),
    ((4, 5), (2, 6), 1, r"larger than the image"),
    ((9, 9), 3, 4, r"stride=4: is larger than the windows"),
    ((9, 9), 0, 1, r"size=0: must be a positive integer"),
    ((9, 9), 2.0, 1, r"size=2.0: must be a positive integer"),
    ((9, 9), True, 1, r"size=True: must be a positive integer"),
    ((9, 9), (2, 2, 2), 1, r"size=\(2, 2, 2\)"),
    ((9, 9), 2, (1, -1), r"stride=\(1, -1\)"),
    ((9,), 2, 1, r"shape=\(9,\): must be \(height, width\)"),
    ((9, 9, 3, 2), 2, 1, r"shape="),
    ((0, 9), 2, 1, r"at least one pixel"),
]


def test_grids_that_are_refused(subtests):
    for shape, size, stride, message in BAD_GRIDS:
        with subtests.test(message), pytest.raises(InvalidInput, match=message):
            PatchGrid(shape, size, stride)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 5)), r"image has shape \(4, 5\): the grid has shape \(6, 6\)"),
        (np.zeros(36), r"must be \(height, width\)"),
        (np.zeros((6, 6), dtype=complex), "complex128: pixels are"),
        ([["a"] * 6] * 6, "pixels are"),
        (np.zeros((0, 6)), "not empty"),
    ],
)
def test_images_that_are_refused(image, message):
    with pytest.raises(InvalidInput, match=message):
        PatchGrid((6, 6), 2).extract(image)


@pytest.mark.parametrize(
    ("patches", "message"),
    [
        (np.zeros((9, 3)), r"shape \(9, 3\).* shape \(9, 4\)"),
        (np.zeros((8, 4)), r"shape \(8, 4\)"),
        (np.zeros((9, 4), dtype=object), "type object"),
    ],
)
def test_windows_that_are_refused(patches, message):
    with pytest.raises(InvalidInput, match=message):
        PatchGrid((4, 4), 2).assemble(patches)
