"""CMU's walks: positions against stored ones, and the two formats against each other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ikpca_papers.mocap import in_metres, read_asf_amc, read_bvh

WALKS = ["35_01", "07_01"]
#: Joints of the ASF file and of the BVH file in the same places.
LEGS_AND_BACK = {
    "root": "Hips",
    "lhipjoint": "LeftUpLeg",
    "lfemur": "LeftLeg",
    "ltibia": "LeftFoot",
    "lfoot": "LeftToeBase",
    "ltoes": "LeftToeBase end",
    "rhipjoint": "RightUpLeg",
    "rfemur": "RightLeg",
    "rtibia": "RightFoot",
    "rfoot": "RightToeBase",
    "rtoes": "RightToeBase end",
    "lowerback": "Spine",
    "upperback": "Spine1",
}
#: Shifted in the BVH file, which leaves out the thorax.
ABOVE_THE_THORAX = {
    "lowerneck": "Neck1",
    "upperneck": "Head",
    "head": "Head end",
    "lclavicle": "LeftArm",
    "lhumerus": "LeftForeArm",
    "lradius": "LeftHand",
    "rclavicle": "RightArm",
    "rhumerus": "RightForeArm",
    "rradius": "RightHand",
}
#: Shifted by the wrist as well.
BEYOND_THE_WRIST = {"lhand": "LeftHandIndex1", "lfingers": "LeftHandIndex1 end"}


@pytest.fixture(scope="module")
def recorded(data_folder):
    def read(walk):
        folder = data_folder / "mocap"
        return read_asf_amc(folder / f"{walk[:2]}.asf", folder / f"{walk}.amc")

    return read


@pytest.fixture(scope="module")
def stored(data_folder):
    def load(walk):
        with np.load(data_folder / f"cmu_walk_{walk}.npz") as data:
            return dict(data)

    return load


@pytest.mark.parametrize("walk", WALKS)
def test_positions_are_the_stored_ones(recorded, stored, walk):
    motion, expected = recorded(walk), stored(walk)
    assert motion.skeleton.names == tuple(expected["joint_names"])
    assert_allclose(motion.skeleton.parents, expected["parents"], rtol=0)
    assert_allclose(motion.positions, expected["positions"], rtol=0, atol=1e-5)
    assert motion.frame_rate == expected["frame_rate"]
    assert_allclose(motion.metres_per_unit, expected["metres_per_unit"], rtol=1e-7)


@pytest.mark.parametrize("walk", WALKS)
def test_bones_keep_the_length_of_the_file(recorded, stored, walk):
    motion = recorded(walk)
    lengths = motion.bone_lengths()
    assert np.ptp(lengths, axis=0).max() < 1e-12
    # The file rounds directions to six digits.
    assert_allclose(lengths[0], stored(walk)["bone_lengths"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("walk", WALKS)
def test_in_metres_a_person_has_the_size_of_one(recorded, walk):
    height = np.ptp(in_metres(recorded(walk)).positions[..., 1], axis=1)
    assert ((height > 1.4) & (height < 1.9)).all()


@pytest.fixture(scope="module")
def both(recorded, data_folder):
    """Positions of a joint of the first walk by name, from either file, in the same frames."""
    acclaim, bvh = recorded("35_01"), read_bvh(data_folder / "mocap" / "35_01.bvh")
    # The BVH file starts with a T-pose.
    assert bvh.n_frames == acclaim.n_frames + 1
    assert_allclose(bvh.frame_rate, 120, rtol=1e-5)

    def places(joint, twin):
        return (
            acclaim.positions[:, acclaim.skeleton.names.index(joint)],
            bvh.positions[1:, bvh.skeleton.names.index(twin)],
        )

    return places


def bone(both, joint, parent):
    """The vector from parent to joint, in the ASF file."""
    return both(joint, "Hips")[0] - both(parent, "Hips")[0]


@pytest.mark.parametrize("joint", LEGS_AND_BACK)
def test_formats_agree_up_to_the_upper_back(both, joint):
    here, there = both(joint, LEGS_AND_BACK[joint])
    assert_allclose(there, here, rtol=0, atol=1e-4)


@pytest.mark.parametrize("joint", ABOVE_THE_THORAX)
def test_formats_agree_once_the_thorax_is_added_back(both, joint):
    here, there = both(joint, ABOVE_THE_THORAX[joint])
    assert_allclose(there + bone(both, "thorax", "upperback"), here, rtol=0, atol=1e-4)


@pytest.mark.parametrize("joint", BEYOND_THE_WRIST)
def test_formats_agree_once_thorax_and_wrist_are_added_back(both, joint):
    here, there = both(joint, BEYOND_THE_WRIST[joint])
    left_out = bone(both, "thorax", "upperback") + bone(both, "lwrist", "lradius")
    assert_allclose(there + left_out, here, rtol=0, atol=1e-4)


def test_the_bvh_file_has_bones_of_constant_length(data_folder):
    motion = read_bvh(data_folder / "mocap" / "35_01.bvh")
    assert motion.positions.shape == (359, 38, 3)
    assert np.ptp(motion.bone_lengths(), axis=0).max() < 1e-12
