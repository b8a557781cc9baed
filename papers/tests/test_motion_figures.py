"""Stick figures: bones where the joints are, one scale for all, and pictures that move."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from numpy.testing import assert_allclose
from PIL import Image

from ikpca.errors import InvalidInput
from ikpca_papers.figures import motion_gif, png, stick_figures
from ikpca_papers.mocap import body_centered, synthetic_walker, with_noise

WALK = synthetic_walker(120)
CLEAN = body_centered(WALK)
TAKES = {"clean": CLEAN, "noisy": with_noise(CLEAN, 0.05, seed=0), "denoised": CLEAN}


def poses(axes):
    """The drawn poses, each as an array of segments."""
    drawn = [child for child in axes.get_children() if isinstance(child, LineCollection)]
    return [np.array(lines.get_segments()) for lines in drawn]


def test_one_row_per_take_and_one_pose_per_frame():
    rows = stick_figures(TAKES, frames=[0, 40, 80]).axes
    assert [axes.get_title(loc="left") for axes in rows] == list(TAKES)
    # All takes but the first have it as a shadow.
    assert [len(poses(axes)) for axes in rows] == [3, 6, 6]
    assert [text.get_text() for text in rows[-1].texts] == ["0.00 s", "0.33 s", "0.67 s"]


def test_all_rows_have_one_scale():
    rows = stick_figures(TAKES).axes
    assert {axes.get_aspect() for axes in rows} == {1.0}
    assert len({(axes.get_xlim(), axes.get_ylim()) for axes in rows}) == 1


def test_from_the_side_bones_keep_height_and_depth():
    (first, *_) = poses(stick_figures({"clean": CLEAN}, frames=[7], azimuth=0).axes[0])
    ends = CLEAN.positions[7][:, [2, 1]]
    assert_allclose(first[:, 1], ends[1:], atol=1e-12)
    assert_allclose(first[:, 0], ends[CLEAN.skeleton.parents[1:]], atol=1e-12)


def test_from_the_front_the_left_is_opposite_the_right():
    (pose, *_) = poses(stick_figures({"clean": CLEAN}, frames=[7], azimuth=90).axes[0])
    assert_allclose(pose[:, 1, 0], CLEAN.positions[7, 1:, 0], atol=1e-12)


def test_a_walk_through_the_room_stays_in_the_picture():
    walking, centered = (
        poses(stick_figures({"take": motion}, frames=[0, 119]).axes[0]) for motion in (WALK, CLEAN)
    )
    assert_allclose(walking, centered, atol=1e-12)


def test_poses_do_not_overlap():
    drawn = poses(stick_figures({"clean": CLEAN}).axes[0])
    assert len(drawn) == 7
    for left, right in pairwise(drawn):
        assert left[..., 0].max() < right[..., 0].min()


def test_a_scale_bar_only_where_lengths_are_metres():
    def texts(motion):
        return [text.get_text() for text in stick_figures({"a": motion}).axes[0].texts]

    assert "0.5 m" in texts(CLEAN)
    assert "0.5 m" not in texts(replace(CLEAN, metres_per_unit=None))


def test_a_picture_with_ink_on_it():
    picture = np.asarray(Image.open(io.BytesIO(png(stick_figures(TAKES), dpi=50))).convert("L"))
    assert 0.005 < np.mean(picture < 200) < 0.3


def test_one_frame_and_one_point_can_be_drawn():
    still = CLEAN.with_positions(np.zeros((1, 27, 3)))
    assert png(stick_figures({"still": still}), dpi=20)
    assert motion_gif({"still": still}, dpi=20)


def test_the_animation_takes_as_long_as_the_motion():
    animation = Image.open(io.BytesIO(motion_gif(TAKES, dpi=30)))
    assert animation.n_frames * animation.info["duration"] == 1000
    assert animation.info["loop"] == 0


def test_the_animation_moves():
    animation = Image.open(io.BytesIO(motion_gif({"clean": CLEAN}, dpi=30)))
    pictures = []
    for number in (0, 5, 10):
        animation.seek(number)
        pictures.append(np.asarray(animation.convert("L"), dtype=float))
    first, second, third = pictures
    assert np.abs(first - second).max() > 50
    assert np.abs(second - third).max() > 50


@pytest.mark.parametrize("draw", [stick_figures, motion_gif])
@pytest.mark.parametrize(
    ("takes", "words"),
    [
        ({}, "takes={}: must hold a motion"),
        ({"a": CLEAN, "b": synthetic_walker(7)}, "must have the same frames and joints"),
    ],
    ids=["none", "of different lengths"],
)
def test_bad_takes(draw, takes, words):
    with pytest.raises(InvalidInput, match=words):
        draw(takes)


@pytest.mark.parametrize("frames", [[], [120], [-1]])
def test_bad_frames(frames):
    with pytest.raises(InvalidInput, match="must be numbers from 0 to 119"):
        stick_figures({"clean": CLEAN}, frames=frames)
