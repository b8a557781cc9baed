"""Reader of recorded motion: positions, and errors for corrupt files."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from ikpca.errors import InvalidInput
from ikpca_papers.data import synthetic_walker
from ikpca_papers.mocap import euler, read_asf_amc
from papers.tests.motion_files import AMC, ASF, edited

WALKS = ["35_01", "07_01"]


@pytest.fixture
def arm(tmp_path):
    """Return a function that reads the arm, with changed files if given."""

    def read(asf=ASF, amc=AMC):
        (tmp_path / "arm.asf").write_bytes(asf.encode() if isinstance(asf, str) else asf)
        (tmp_path / "arm.amc").write_bytes(amc.encode())
        return read_asf_amc(tmp_path / "arm.asf", tmp_path / "arm.amc")

    return read


def distances(motion):
    """Distances of joints from their parents in every frame."""
    near = motion.positions[:, motion.parents.clip(0)]
    return np.linalg.norm(motion.positions - near, axis=2)


@pytest.mark.parametrize("axes", ["xyz", "zyx", "yxz", "xz", "y", ""])
def test_euler_angles_turn_about_fixed_axes_in_order(axes):
    angles = np.random.default_rng(0).uniform(-3, 3, size=(20, len(axes)))
    expected = np.broadcast_to(np.eye(3), (20, 3, 3))
    for column, axis in enumerate(axes):
        expected = Rotation.from_euler(axis, angles[:, [column]]).as_matrix() @ expected
    assert_allclose(euler(axes, angles), expected, atol=1e-14)


def test_positions_by_hand(arm):
    motion = arm()
    assert motion.names == ("root", "upper", "fore", "hand")
    assert motion.parents.tolist() == [-1, 0, 1, 2]
    assert motion.bone_lengths.tolist() == [0, 2, 1, 0.5]
    assert motion.frame_rate == 120
    assert motion.meters_per_unit == 0.0254 / 0.45
    # The forearm turns about its own x, which its axis has turned into −z of the body.
    expected = [
        [[0, 5, 0], [2, 5, 0], [3, 5, 0], [3, 5.5, 0]],
        [[1, 5, 0], [1, 7, 0], [1, 8, 0], [0.5, 8, 0]],
        [[0, 0, 0], [0, 0, -2], [0, -1, -2], [0, -1, -2.5]],
    ]
    assert_allclose(motion.positions, expected, atol=1e-14)


def test_the_position_of_the_root_is_added(arm):
    moved = arm(ASF.replace("position 0 0 0", "position 7 0 1"))
    assert_allclose(moved.positions, arm().positions + np.array([7, 0, 1]), atol=1e-14)


def test_the_orientation_of_the_root_is_its_coordinate_system(arm):
    """Turned by 90° about z, a rotation about x becomes one about y."""
    turned = arm(ASF.replace("orientation 0 0 0", "orientation 0 0 90"))
    about_x = arm(amc=AMC.replace("root 0 0 0 0 90 0", "root 0 0 0 -90 0 0"))
    assert_allclose(turned.positions, about_x.positions, atol=1e-14)


_HALF_PI = repr(np.pi / 2)
_BONES = ASF.split("  begin\n     id")
_HAND, _HIERARCHY = _BONES[3].split(":hierarchy")
#: Other texts of the same motion.
EQUIVALENT = {
    "CRLF": (ASF.replace("\n", "\r\n"), AMC.replace("\n", "\r\n")),
    "CR": (ASF.replace("\n", "\r"), AMC.replace("\n", "\r")),
    "byte order mark": (ASF.encode("utf-8-sig"), AMC),
    "Latin-1": (ASF.replace("an arm", "Ellbögen").encode("latin-1"), AMC),
    "comments and case": (
        ASF.replace(":bonedata", "# bones\n\n:BONEDATA"), AMC.replace("\n2\n", "\n\n#\n2\n"),
    ),
    "radians": (ASF, AMC.replace(":DEGREES", ":radians").replace("90", _HALF_PI)),
    "radians of the skeleton": (
        ASF.replace("angle deg", "angle rad").replace("axis 0 90 0", f"axis 0 {_HALF_PI} 0"),
        AMC.replace(":DEGREES\n", "").replace("90", _HALF_PI),
    ),
    "bones in another order": (
        "  begin\n     id".join([_BONES[0], _HAND, _BONES[2], _BONES[1]])
        + ":hierarchy" + _HIERARCHY,
        AMC,
    ),
    "channels in another order": (
        ASF.replace("TX TY TZ RX RY RZ", "RX RY RZ TZ TY TX"),
        AMC.replace("root 0 5 0 0 0 0", "root 0 0 0 0 5 0")
        .replace("root 1 5 0 0 0 0", "root 0 0 0 0 5 1")
        .replace("root 0 0 0 0 90 0", "root 0 90 0 0 0 0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUIVALENT)
def test_equivalent_files_have_equal_positions(arm, name):
    asf, amc = EQUIVALENT[name]
    motion = arm(asf, amc)
    assert motion.names == arm().names
    assert_allclose(motion.positions, arm().positions, atol=1e-14)


#: A line and its new text, None to leave it out, and the line of the error.
CORRUPT_ASF = {
    "length": ((6, "length x"), 6),
    "zero unit": ((6, "length 0"), 6),
    "no root": ((10, ":roots"), 48),
    "no bone data": ((15, None), 47),
    "no hierarchy": ((43, ":hierarchi"), 48),
    "second section": ((43, ":units"), 43),
    "root without order": ((11, None), 10),
    "order of the root": ((11, "order TX TY TY"), 11),
    "axis of the root": ((12, "axis XYY"), 12),
    "root at two numbers": ((13, "position 0 0"), 13),
    "no begin": ((16, None), 16),
    "no name": ((18, None), 16),
    "name twice": ((29, "name upper"), 15),
    "a bone called root": ((29, "name root"), 15),
    "misspelled keyword": ((20, "lenght 2"), 16),
    "NaN": ((19, "direction nan 0 0"), 19),
    "overflow": ((20, "length 1e999"), 20),
    "underscore": ((20, "length 1_0"), 20),
    "no unit vector": ((19, "direction 1 1 0"), 20),
    "negative length": ((20, "length -2"), 20),
    "axis without order": ((21, "axis 0 0 0"), 21),
    "stretching": ((22, "dof rx ry l"), 22),
    "undefined bone": ((46, "upper four"), 46),
    "second parent": ((47, "fore upper hand"), 47),
    "parent of the root": ((47, "fore hand root"), 47),
    "cycle": ((45, "fore upper"), 43),
    "no parent": ((47, None), 43),
}
CORRUPT_AMC = {
    "no number": ((4, None), 4),
    "number of the wrong kind": ((8, "two"), 8),
    "number with too many digits": ((8, "9" * 5000), 8),
    "gap": ((8, "3"), 8),
    "unknown bone": ((6, "uper 0 0 0"), 4),
    "bone that cannot turn": ((7, "hand 0"), 4),
    "too few values": ((6, "upper 0 0"), 6),
    "too many values": ((7, "fore 0 0"), 7),
    "no values": ((7, "fore"), 7),
    "text": ((7, "fore bent"), 7),
    "NaN": ((7, "fore NaN"), 7),
    "bone twice": ((7, "upper 0 0 0"), 4),
    "bone left out": ((10, None), 8),
    "truncated": ((15, None), 12),
    "keyword too late": ((8, ":degrees"), 8),
    "empty": ((slice(None), ""), None),
}


def refused(file, line, call):
    """Check that a call raises an error that names file and line."""
    place = re.escape(file) + ("" if line is None else f", line {line}:")
    with pytest.raises(InvalidInput, match=place) as caught:
        call()
    assert str(caught.value).endswith("fetch it again." if line is None else "file again.")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", CORRUPT_ASF)
def test_corrupt_skeletons_are_refused(arm, name):
    (line, text), place = CORRUPT_ASF[name]
    refused("arm.asf", place, lambda: arm(edited(ASF, line, text)))


@pytest.mark.parametrize("name", CORRUPT_AMC)
def test_corrupt_frames_are_refused(arm, name):
    (line, text), place = CORRUPT_AMC[name]
    amc = "" if name == "empty" else edited(AMC, line, text)
    refused("arm.amc", place, lambda: arm(amc=amc))


def test_missing_files_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"no\.asf: there is no such file"):
        read_asf_amc(tmp_path / "no.asf", tmp_path / "no.amc")


@pytest.fixture(scope="module")
def recorded(data_folder):
    """Return a function that reads a recorded walk by name, with its stored arrays."""

    def read(walk):
        folder = data_folder / "mocap"
        with np.load(data_folder / f"cmu_walk_{walk}.npz") as data:
            return read_asf_amc(folder / f"{walk[:2]}.asf", folder / f"{walk}.amc"), dict(data)

    return read


@pytest.mark.parametrize("walk", WALKS)
def test_recorded_walks_equal_the_stored_ones(recorded, walk):
    motion, stored = recorded(walk)
    assert motion.names == tuple(stored["joint_names"])
    assert_allclose(motion.parents, stored["parents"], rtol=0)
    assert_allclose(motion.positions, stored["positions"], rtol=0, atol=1e-5)
    assert_allclose(motion.bone_lengths, stored["bone_lengths"], rtol=0, atol=1e-5)
    assert motion.frame_rate == stored["frame_rate"]
    assert_allclose(motion.meters_per_unit, stored["metres_per_unit"], rtol=1e-7)


@pytest.mark.parametrize("walk", WALKS)
def test_recorded_bones_have_constant_length(recorded, walk):
    motion, _ = recorded(walk)
    assert np.ptp(distances(motion), axis=0).max() < 1e-12
    height = np.ptp(motion.positions[..., 1], axis=1) * motion.meters_per_unit
    assert ((height > 1.4) & (height < 1.9)).all()


def test_the_walker_has_bones_of_constant_length():
    walk = synthetic_walker()
    assert_allclose(distances(walk), np.tile(walk.bone_lengths, (360, 1)), atol=1e-14)


def test_the_walker_is_periodic_and_keeps_its_speed():
    walk = synthetic_walker(264).positions
    step = walk[132:] - walk[:132]
    assert_allclose(step, np.broadcast_to([0, 0, 1.1 * 1.3], step.shape), atol=1e-12)


def test_half_a_stride_later_the_walker_is_its_own_mirror_image():
    walk = synthetic_walker(132)
    positions = walk.positions - walk.positions[:, :1]
    swapped = {"left": "right", "right": "left"}
    mirror = [
        walk.names.index(" ".join(swapped.get(word, word) for word in name.split()))
        for name in walk.names
    ]
    assert_allclose(positions[66:, mirror] * [-1, 1, 1], positions[:66], atol=1e-12)


def test_the_walker_is_smooth_and_keeps_to_the_ground():
    walk = synthetic_walker()
    acceleration = np.diff(walk.positions, n=2, axis=0) * 120**2
    assert np.abs(acceleration).max() < 60
    feet = [n for n, name in enumerate(walk.names) if name.endswith(("ball", "toes"))]
    lowest = walk.positions[:, feet, 1].min(axis=1)
    assert np.abs(lowest).max() < 0.04
    assert 1.65 < walk.positions[..., 1].max() < 1.8


def test_a_walk_without_frames_is_refused():
    with pytest.raises(InvalidInput, match="frames=0"):
        synthetic_walker(0)
