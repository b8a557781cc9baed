"""Stick figures: positions of bones, common scale."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from numpy.testing import assert_allclose
from PIL import Image

from ikpca.errors import InvalidInput
from ikpca_papers.data import synthetic_walker
from ikpca_papers.figures import png, stick_figures

WALKER = synthetic_walker(120)
WALK = WALKER.positions
CLEAN = WALK - WALK[:, :1]
NOISY = CLEAN + 0.05 * np.random.default_rng(0).normal(size=CLEAN.shape)
TAKES = {"clean": CLEAN, "noisy": NOISY, "denoised": CLEAN}


def figure_of(takes, **options):
    return stick_figures(takes, WALKER.parents, WALKER.frame_rate, **options)


def poses(axes):
    """The drawn poses, each as an array of segments."""
    drawn = [child for child in axes.get_children() if isinstance(child, LineCollection)]
    return [np.array(lines.get_segments()) for lines in drawn]


def test_one_row_per_take_and_one_pose_per_frame():
    rows = figure_of(TAKES, frames=[0, 40, 80]).axes
    assert [axes.get_title(loc="left") for axes in rows] == list(TAKES)
    # All takes but the first have it as a shadow.
    assert [len(poses(axes)) for axes in rows] == [3, 6, 6]
    assert [text.get_text() for text in rows[-1].texts] == ["0.00 s", "0.33 s", "0.67 s"]


def test_all_rows_have_one_scale():
    rows = figure_of(TAKES).axes
    assert {axes.get_aspect() for axes in rows} == {1.0}
    assert len({(axes.get_xlim(), axes.get_ylim()) for axes in rows}) == 1


def test_from_the_side_bones_keep_height_and_depth():
    (first, *_) = poses(figure_of({"clean": CLEAN}, frames=[7], azimuth=0).axes[0])
    ends = CLEAN[7][:, [2, 1]]
    assert_allclose(first[:, 1], ends[1:], atol=1e-12)
    assert_allclose(first[:, 0], ends[WALKER.parents[1:]], atol=1e-12)


def test_from_the_front_the_left_is_opposite_the_right():
    (pose, *_) = poses(figure_of({"clean": CLEAN}, frames=[7], azimuth=90).axes[0])
    assert_allclose(pose[:, 1, 0], CLEAN[7, 1:, 0], atol=1e-12)


def test_walk_stays_within_the_figure():
    walking, centered = (
        poses(figure_of({"take": motion}, frames=[0, 119]).axes[0]) for motion in (WALK, CLEAN)
    )
    assert_allclose(walking, centered, atol=1e-12)


def test_poses_do_not_overlap():
    drawn = poses(figure_of({"clean": CLEAN}).axes[0])
    assert len(drawn) == 7
    for left, right in pairwise(drawn):
        assert left[..., 0].max() < right[..., 0].min()


def test_figure_is_not_empty():
    picture = np.asarray(Image.open(io.BytesIO(png(figure_of(TAKES), dpi=50))).convert("L"))
    assert 0.005 < np.mean(picture < 200) < 0.3


@pytest.mark.parametrize("frames", [[], [120], [-1]])
def test_frames_outside_of_the_motion_are_rejected(frames):
    with pytest.raises(InvalidInput, match="must be numbers from 0 to 119"):
        figure_of({"clean": CLEAN}, frames=frames)


@pytest.mark.parametrize("takes", [{}, {"a": CLEAN, "b": CLEAN[:7]}], ids=["none", "unequal"])
def test_takes_must_have_one_shape(takes):
    with pytest.raises(InvalidInput, match="one motion"):
        figure_of(takes)


def test_one_frame_and_one_point_can_be_drawn():
    assert png(figure_of({"still": np.zeros((1, 27, 3))}), dpi=20)
