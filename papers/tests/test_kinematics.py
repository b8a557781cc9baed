"""Joint positions from angles: by hand, against SciPy's rotations, and format against format."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from ikpca_papers.mocap import (
    as_rows,
    body_centered,
    from_rows,
    in_metres,
    read_asf_amc,
    read_bvh,
    synthetic_walker,
    with_noise,
)
from ikpca_papers.mocap.skeleton import euler
from papers.tests.motion_files import AMC, ASF, BVH


@pytest.fixture
def arm(tmp_path):
    """The arm in the Acclaim format, its texts changed as a test wants."""

    def read(asf=ASF, amc=AMC, **options):
        (tmp_path / "arm.asf").write_bytes(asf.encode())
        (tmp_path / "arm.amc").write_bytes(amc.encode())
        return read_asf_amc(tmp_path / "arm.asf", tmp_path / "arm.amc", **options)

    return read


@pytest.fixture
def bvh_arm(tmp_path):
    def read(text=BVH):
        (tmp_path / "arm.bvh").write_bytes(text.encode())
        return read_bvh(tmp_path / "arm.bvh")

    return read


# --- rotations -------------------------------------------------------------------------


@pytest.mark.parametrize("axes", ["xyz", "zyx", "yxz", "xz", "y", ""])
def test_euler_angles_turn_about_fixed_axes_in_order(axes):
    angles = np.random.default_rng(0).uniform(-3, 3, size=(20, len(axes)))
    expected = np.broadcast_to(np.eye(3), (20, 3, 3))
    for column, axis in enumerate(axes):
        expected = Rotation.from_euler(axis, angles[:, [column]]).as_matrix() @ expected
    assert_allclose(euler(axes, angles), expected, atol=1e-14)


# --- by hand ---------------------------------------------------------------------------


def test_acclaim_by_hand(arm):
    motion = arm()
    assert motion.skeleton.names == ("root", "upper", "fore", "hand")
    assert motion.skeleton.parents.tolist() == [-1, 0, 1, 2]
    assert motion.frame_rate == 120
    assert motion.metres_per_unit == 0.0254 / 0.45
    # The forearm turns about its own x, which its axis has turned into −z of the body.
    expected = [
        [[0, 5, 0], [2, 5, 0], [3, 5, 0], [3, 5.5, 0]],
        [[1, 5, 0], [1, 7, 0], [1, 8, 0], [0.5, 8, 0]],
        [[0, 0, 0], [0, 0, -2], [0, -1, -2], [0, -1, -2.5]],
    ]
    assert_allclose(motion.positions, expected, atol=1e-14)


def test_bvh_by_hand(bvh_arm):
    motion = bvh_arm()
    assert motion.skeleton.names == ("shoulder", "elbow", "elbow end")
    assert motion.frame_rate == 40
    assert motion.metres_per_unit is None
    # The third frame turns x to −z first, then about z; the elbow turns in the shoulder's system.
    expected = [
        [[0, 5, 0], [2, 5, 0], [3, 5, 0]],
        [[1, 5, 0], [1, 7, 0], [1, 8, 0]],
        [[0, 0, 0], [0, 0, -2], [-1, 0, -2]],
    ]
    assert_allclose(motion.positions, expected, atol=1e-14)


def test_the_offset_of_a_bvh_root_is_where_its_channels_count_from(bvh_arm):
    moved = bvh_arm(BVH.replace("OFFSET 0 0 0", "OFFSET 7 0 1"))
    assert_allclose(moved.positions, bvh_arm().positions + np.array([7, 0, 1]), atol=1e-14)


def test_the_root_of_acclaim_rests_where_it_says(arm):
    moved = arm(ASF.replace("position 0 0 0", "position 7 0 1"))
    assert_allclose(moved.positions, arm().positions + np.array([7, 0, 1]), atol=1e-14)


def test_the_system_of_the_root_changes_what_its_angles_mean(arm):
    """Turned by 90° about z, what was a turn about x is one about y."""
    turned = arm(ASF.replace("orientation 0 0 0", "orientation 0 0 90"))
    about_x = arm(amc=AMC.replace("root 0 0 0 0 90 0", "root 0 0 0 -90 0 0"))
    assert_allclose(turned.positions, about_x.positions, atol=1e-14)


# --- what must not matter ---------------------------------------------------------------


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_do_not_matter(arm, bvh_arm, end):
    other = arm(ASF.replace("\n", end), AMC.replace("\n", end))
    assert_allclose(other.positions, arm().positions, rtol=0)
    mixed = BVH.replace("\n", end, 9)
    assert_allclose(bvh_arm(mixed).positions, bvh_arm().positions, rtol=0)


def test_comments_blank_lines_and_case_do_not_matter(arm, bvh_arm):
    loose = arm(
        ASF.replace(":bonedata", "# bones\n\n:BONEDATA"), AMC.replace("\n2\n", "\n\n#\n2\n")
    )
    assert_allclose(loose.positions, arm().positions, rtol=0)
    shouted = BVH.replace("JOINT", "Joint").replace("Frames:", "FRAMES :").replace("\n{", " {")
    assert_allclose(bvh_arm(shouted).positions, bvh_arm().positions, rtol=0)


def test_encodings(tmp_path):
    """UTF-8 with a byte order mark, and names in Latin-1."""
    (tmp_path / "marked.bvh").write_bytes(BVH.encode("utf-8-sig"))
    (tmp_path / "old.bvh").write_bytes(BVH.replace("elbow", "Ellbögen").encode("latin-1"))
    assert read_bvh(tmp_path / "marked.bvh").n_frames == 3
    assert read_bvh(tmp_path / "old.bvh").skeleton.names[1] == "Ellbögen"


def test_radians_are_degrees_times_pi_over_180(arm):
    half = repr(np.pi / 2)
    radians = AMC.replace(":DEGREES", ":radians").replace("90", half)
    assert_allclose(arm(amc=radians).positions, arm().positions, atol=1e-14)


def test_the_unit_of_the_skeleton_counts_where_the_frames_have_none(arm):
    half = repr(np.pi / 2)
    asf = ASF.replace("angle deg", "angle rad").replace("axis 0 90 0", f"axis 0 {half} 0")
    amc = AMC.replace(":DEGREES\n", "").replace("90", half)
    assert_allclose(arm(asf, amc).positions, arm().positions, atol=1e-14)


def test_bones_may_be_defined_in_any_order(arm):
    head, upper, fore, hand = ASF.split("  begin\n     id")
    hand, rest = hand.split(":hierarchy")
    parts = [head, hand, fore, upper]
    shuffled = "  begin\n     id".join(parts) + ":hierarchy" + rest
    motion = arm(shuffled)
    assert motion.skeleton.names == arm().skeleton.names
    assert_allclose(motion.positions, arm().positions, rtol=0)


def test_channels_of_the_root_may_come_in_any_order(arm):
    asf = ASF.replace("TX TY TZ RX RY RZ", "RX RY RZ TZ TY TX")
    amc = AMC.replace("root 0 5 0 0 0 0", "root 0 0 0 0 5 0")
    amc = amc.replace("root 1 5 0 0 0 0", "root 0 0 0 0 5 1")
    amc = amc.replace("root 0 0 0 0 90 0", "root 0 90 0 0 0 0")
    assert_allclose(arm(asf, amc).positions, arm().positions, atol=1e-14)


# --- coordinates ------------------------------------------------------------------------


def test_body_centered_keeps_bones_and_takes_the_root_to_zero(arm):
    centered = body_centered(arm())
    assert not centered.positions[:, 0].any()
    assert_allclose(centered.bone_lengths(), arm().bone_lengths(), atol=1e-14)


def test_metres(arm, bvh_arm):
    scaled = in_metres(arm())
    assert_allclose(scaled.positions, arm().positions * 0.0254 / 0.45)
    assert_allclose(scaled.skeleton.bone_lengths, arm().skeleton.bone_lengths * 0.0254 / 0.45)
    assert_allclose(in_metres(scaled).positions, scaled.positions, rtol=0)
    assert_allclose(in_metres(bvh_arm(), 0.01).positions, bvh_arm().positions / 100)


def test_rows_and_back(arm):
    motion = arm()
    rows = as_rows(motion)
    assert rows.shape == (3, 12)
    assert rows[1].tolist() == motion.positions[1].ravel().tolist()
    assert_allclose(from_rows(motion, rows).positions, motion.positions, rtol=0)


def test_noise_has_the_scale_and_repeats_with_its_seed():
    walk = synthetic_walker()
    noise = with_noise(walk, 0.05, seed=3).positions - walk.positions
    assert abs(noise.std() - 0.05) < 0.001
    assert abs(noise.mean()) < 0.002
    again = with_noise(walk, 0.05, seed=3).positions - walk.positions
    assert_allclose(again, noise, rtol=0)
    assert np.abs(with_noise(walk, 0.05, seed=4).positions - walk.positions - noise).max() > 0.1


# --- the walker -------------------------------------------------------------------------


def test_the_walker_has_bones_of_constant_length():
    walk = synthetic_walker()
    assert_allclose(walk.bone_lengths(), np.tile(walk.skeleton.bone_lengths, (360, 1)), atol=1e-14)


def test_the_walker_is_periodic_and_goes_at_its_speed():
    walk = synthetic_walker(264, frame_rate=120, stride=1.1, speed=1.5)
    step = walk.positions[132:] - walk.positions[:132]
    assert_allclose(step, np.broadcast_to([0, 0, 1.1 * 1.5], step.shape), atol=1e-12)


def test_half_a_stride_later_the_walker_is_its_own_mirror_image():
    walk = body_centered(synthetic_walker(132))
    names = walk.skeleton.names
    swapped = {"left": "right", "right": "left"}
    mirror = [
        names.index(" ".join(swapped.get(word, word) for word in name.split())) for name in names
    ]
    assert_allclose(walk.positions[66:, mirror] * [-1, 1, 1], walk.positions[:66], atol=1e-12)


def test_the_walker_is_smooth_and_keeps_to_the_ground():
    walk = synthetic_walker()
    acceleration = np.diff(walk.positions, n=2, axis=0) * 120**2
    assert np.abs(acceleration).max() < 60
    feet = [n for n, name in enumerate(walk.skeleton.names) if name.endswith(("ball", "toes"))]
    lowest = walk.positions[:, feet, 1].min(axis=1)
    assert np.abs(lowest).max() < 0.04
    assert 1.65 < walk.positions[..., 1].max() < 1.8
