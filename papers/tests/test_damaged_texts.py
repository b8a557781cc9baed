"""Randomly damaged motion and spec files: read, or rejected with our error, within limits."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import ikpca_papers
from ikpca_papers.claims import read_spec
from ikpca_papers.mocap import read_asf_amc
from papers.tests.motion_files import AMC, ASF
from tests.faults.mutations import damaged, damaged_text, forged_toml
from tests.faults.reading import read_batch
from tests.faults.tally import Tally
from tests.faults.texts import TextCase

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits as on Linux")

SPECS = sorted(Path(ikpca_papers.__file__).parent.glob("*[0-9]/*.toml"))[:4]
SPEC_CHANGES = (damaged, damaged_text, forged_toml, forged_toml)


def text_cases(folder):
    """ASF, AMC and spec files."""
    folder = Path(folder)
    specs = [
        TextCase("spec", folder / path.name, path.read_bytes(), read_spec, check_spec, SPEC_CHANGES)
        for path in SPECS
    ]
    return [asf_case(folder), amc_case(folder), *specs]


def asf_case(folder):
    (folder / "sound.amc").write_text(AMC)

    def load(path):
        return read_asf_amc(path, folder / "sound.amc")

    return TextCase("asf", folder / "damaged.asf", ASF.encode(), load, check_motion)


def amc_case(folder):
    (folder / "sound.asf").write_text(ASF)

    def load(path):
        return read_asf_amc(folder / "sound.asf", path)

    return TextCase("amc", folder / "damaged.amc", AMC.encode(), load, check_motion)


def check_motion(motion):
    assert motion.positions.shape[1:] == (len(motion.names), 3)
    assert len(motion.parents) == len(motion.bone_lengths) == len(motion.names)
    assert np.isfinite(motion.positions).all()
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


def test_damaged_texts_are_read_or_refused(tmp_path):
    assert len(SPECS) == 4
    tally = Tally()
    for part in read_batch(tmp_path, text_cases, seed=2, count=800):
        tally.add(part)
    assert not tally.findings, tally.findings[:5]
    assert tally.counts["files"] == 800
    assert tally.counts["refused"] > 300
    # Damage to a comment or a digit may leave a valid file.
    assert tally.counts["loaded"] > 50
