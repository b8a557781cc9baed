"""Randomly damaged motion and spec files: read, or rejected with our error, within limits."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import ikpca_papers
from ikpca_papers.claims import read_spec
from ikpca_papers.mocap import read_motion
from papers.tests.motion_files import AMC, ASF, BVH
from tests.faults.mutations import damaged, damaged_text, forged_toml
from tests.faults.reading import read_batch
from tests.faults.tally import Tally
from tests.faults.texts import TextCase

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits as on Linux")

SPECS = sorted(Path(ikpca_papers.__file__).parent.glob("*[0-9]/*.toml"))[:4]
SPEC_CHANGES = (damaged, damaged_text, forged_toml, forged_toml)


def text_cases(folder):
    """ASF, AMC, BVH and spec files."""
    folder = Path(folder)
    bvh = TextCase("bvh", folder / "damaged.bvh", BVH.encode(), read_motion, check_motion)
    specs = [
        TextCase("spec", folder / path.name, path.read_bytes(), read_spec, check_spec, SPEC_CHANGES)
        for path in SPECS
    ]
    return [asf_case(folder), amc_case(folder), bvh, *specs]


def asf_case(folder):
    (folder / "sound.amc").write_text(AMC)

    def load(path):
        return read_motion(folder / "sound.amc", path)

    return TextCase("asf", folder / "damaged.asf", ASF.encode(), load, check_motion)


def amc_case(folder):
    (folder / "sound.asf").write_text(ASF)

    def load(path):
        return read_motion(path, folder / "sound.asf")

    return TextCase("amc", folder / "damaged.amc", AMC.encode(), load, check_motion)


def check_motion(motion):
    assert motion.positions.shape == (motion.n_frames, len(motion.skeleton.names), 3)
    assert np.isfinite(motion.positions).all()
    assert np.isfinite(motion.bone_lengths()).all()
    return "loaded"


def check_spec(spec):
    assert spec.claims
    for name, size in spec.sizes.items():
        assert isinstance(size.data, str)
        assert all(isinstance(key, str) for key in spec.settings_of(name))
    for drawing in spec.drawings:
        assert isinstance(drawing.options, dict)
    assert isinstance(spec.alone, bool)
    # Without results every number of every condition is looked up.
    for claim in spec.claims:
        claim.check({})
    return "loaded"


def test_damaged_texts(tmp_path):
    assert len(SPECS) == 4
    tally = Tally()
    for part in read_batch(tmp_path, text_cases, seed=2, count=800):
        tally.add(part)
    assert not tally.findings, tally.findings[:5]
    assert tally.counts["files"] == 800
    assert tally.counts["refused"] > 300
    # Damage to a comment or a digit may leave a valid file.
    assert tally.counts["loaded"] > 50
