"""Damaged motion files, tables and specs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ikpca.tables import read_table
from ikpca_papers import claims
from ikpca_papers.claims import read_spec
from ikpca_papers.mocap import read_motion
from tests.faults.mutations import damaged, damaged_text, forged_toml
from tests.motion_files import AMC, ASF, BVH

_CSV = "height,weight,age\n1.8,75,33\n1.6,5.5e1,41\n-0.5,+60,.5\n\n2,3,4\n"
_TSV = '"a b"\t"c\td"\n1\t2\n3\t4\n'
_SPECS = Path(claims.__file__).parent / "specs"
_SPEC_CHANGES = (damaged, damaged_text, forged_toml, forged_toml)


@dataclass(frozen=True)
class TextCase:
    """A text file by its name, what lies beside it, and how it is read."""

    name: str
    path: Path
    content: bytes
    load: Callable[[Path], Any]
    check: Callable[[Any], str]
    changes: tuple[Callable[..., bytes], ...] = (damaged, damaged_text)

    def damage(self, rng):
        """A damaged copy in the place of the file, and the question whether content is valid."""
        change = self.changes[int(rng.integers(len(self.changes)))]
        self.path.write_bytes(change(self.content, rng))
        return self.path, self.check


def text_cases(folder):
    """ASF, AMC, BVH, CSV, TSV, specs, and NumPy's files."""
    folder = Path(folder)
    cases = [_asf(folder), _amc(folder)]
    for name, text in (("bvh", BVH), ("csv", _CSV), ("tsv", _TSV)):
        path = folder / f"damaged.{name}"
        load = read_motion if name == "bvh" else read_table
        check = _valid_motion if name == "bvh" else _valid_table
        cases.append(TextCase(name, path, text.encode(), load, check))
    for path in sorted(_SPECS.glob("*.toml"))[:4]:
        target, content = folder / path.name, path.read_bytes()
        case = TextCase("spec", target, content, read_spec, _valid_spec, _SPEC_CHANGES)
        cases.append(case)
    return cases + [_array(folder, name) for name in ("npy", "npz")]


def _asf(folder):
    (folder / "sound.amc").write_text(AMC)

    def load(path):
        return read_motion(folder / "sound.amc", path)

    return TextCase("asf", folder / "damaged.asf", ASF.encode(), load, _valid_motion)


def _amc(folder):
    (folder / "sound.asf").write_text(ASF)

    def load(path):
        return read_motion(path, folder / "sound.asf")

    return TextCase("amc", folder / "damaged.amc", AMC.encode(), load, _valid_motion)


def _array(folder, kind):
    path, rows = folder / f"damaged.{kind}", np.arange(12.0).reshape(4, 3)
    if kind == "npy":
        np.save(path, rows)
    else:
        np.savez_compressed(path, rows=rows)
    return TextCase(kind, path, path.read_bytes(), read_table, _valid_array)


def _valid_motion(motion):
    assert motion.positions.shape == (motion.n_frames, len(motion.skeleton.names), 3)
    assert np.isfinite(motion.positions).all()
    assert np.isfinite(motion.bone_lengths()).all()
    return "loaded"


def _valid_table(table):
    assert np.isfinite(table.rows).all()
    return _valid_array(table)


def _valid_array(table):
    """Numbers in rows; NaN in an array is for the estimator to refuse, which knows the row."""
    assert table.rows.ndim == 2
    assert table.rows.size
    assert table.rows.dtype.kind == "f"
    return "loaded"


def _valid_spec(spec):
    assert spec.claims
    for size in spec.sizes.values():
        assert isinstance(size.data, str)
        assert all(isinstance(name, str) for name in size.settings)
    for drawing in spec.drawings:
        assert isinstance(drawing.options, dict)
    assert isinstance(spec.alone, bool)
    # Judging an experiment that wrote nothing looks at every figure of every claim.
    for claim in spec.claims:
        for form in claim.forms:
            form.check({})
    return "loaded"
