"""Joint positions as ASF and AMC files, in which bones turn and keep their lengths."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from ikpca.datasets.skeleton import Motion
from ikpca.errors import InvalidInput
from ikpca.kernels import Floats
from ikpca.storage import written_whole

__all__ = ["skeleton_text", "write_asf_amc"]

_METRES_PER_INCH = 0.0254


def write_asf_amc(motion: Motion, asf: Path, amc: Path) -> None:
    """Write a skeleton and its frames; :func:`read_asf_amc` reads them.

    The format has no place for bones that change their lengths, as they do where positions are
    noisy: every bone points where it pointed, at the length that the skeleton has at rest.

    Parameters
    ----------
    motion : Motion
    asf, amc : Path
        For the skeleton, and for the frames.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ikpca.datasets import Motion, Skeleton, read_asf_amc, write_asf_amc
    >>> asf, amc = (Path(tempfile.mkdtemp(), name) for name in ("arm.asf", "arm.amc"))
    >>> arm = Skeleton(("root", "elbow", "wrist"), [-1, 0, 1], [[0, 0, 0], [3, 0, 0], [2, 0, 0]])
    >>> bent = Motion(arm, [[[0, 1, 0], [0, 4, 0], [0, 4, 2]]], frame_rate=120.0)
    >>> write_asf_amc(bent, asf, amc)
    >>> read_asf_amc(asf, amc).positions.round(6) + 0.0
    array([[[0., 1., 0.],
            [0., 4., 0.],
            [0., 4., 2.]]])
    """
    frames = _lines(_frames(motion, _names(motion)))
    # Neither is renamed before both are on the disk: one means nothing without the other.
    with written_whole(amc) as outer, written_whole(asf) as inner:
        for file, content in ((outer, frames), (inner, skeleton_text(motion))):
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def skeleton_text(motion: Motion) -> bytes:
    """What the ASF file holds."""
    return _lines(_skeleton(motion, _names(motion)))


def _lines(lines: Iterator[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _names(motion: Motion) -> list[str]:
    """One word per joint; the format ends a name at a blank."""
    names = ["root", *("_".join(name.split()) for name in motion.skeleton.names[1:])]
    if len(set(names)) < len(names):
        raise InvalidInput(
            f"joints are named {', '.join(names)}: an ASF file needs different names without "
            "blanks; rename them."
        )
    return names


def _skeleton(motion: Motion, names: list[str]) -> Iterator[str]:
    skeleton = motion.skeleton
    length = _METRES_PER_INCH / (motion.metres_per_unit or _METRES_PER_INCH)
    yield from (":version 1.10", ":name body", ":units", "  mass 1.0", f"  length {length!r}")
    yield from ("  angle deg", ":root", "  order TX TY TZ RX RY RZ", "  axis XYZ")
    yield from ("  position 0 0 0", "  orientation 0 0 0", ":bonedata")
    lengths = skeleton.bone_lengths
    for joint, direction in enumerate(_rest_directions(motion)[1:], start=1):
        yield from ("  begin", f"    id {joint}", f"    name {names[joint]}")
        yield f"    direction {_text(direction)}"
        yield from (f"    length {float(lengths[joint])!r}", "    axis 0 0 0 XYZ")
        yield from ("    dof rx ry rz", "    limits (-180 180)")
        yield from ("           (-180 180)", "           (-180 180)", "  end")
    yield from (":hierarchy", "  begin")
    for joint, name in enumerate(names):
        children = np.flatnonzero(skeleton.parents == joint)
        if len(children):
            yield f"    {name} {' '.join(names[child] for child in children)}"
    yield "  end"


def _frames(motion: Motion, names: list[str]) -> Iterator[str]:
    angles = _angles(motion)
    yield from (":FULLY-SPECIFIED", ":DEGREES")
    for number, (place, turns) in enumerate(zip(motion.positions[:, 0], angles, strict=True)):
        yield str(number + 1)
        yield f"root {_text(place)} 0 0 0"
        for name, turn in zip(names[1:], turns[1:], strict=True):
            yield f"{name} {_text(turn)}"


def _rest_directions(motion: Motion) -> Floats:
    """Unit vectors along the bones at rest; along x where a bone has no length."""
    offsets, lengths = motion.skeleton.offsets, motion.skeleton.bone_lengths[:, None]
    along_x = np.tile([1.0, 0.0, 0.0], (len(offsets), 1))
    return np.divide(offsets, lengths, out=along_x, where=lengths > 0)


def _angles(motion: Motion) -> Floats:
    """Euler angles of every bone in degrees, from the root outwards: G = G_parent R."""
    parents, positions = motion.skeleton.parents, motion.positions
    rest = _rest_directions(motion)
    angles = np.zeros_like(positions)
    turned: list[Rotation] = [Rotation.identity(len(positions))]
    for joint, parent in enumerate(parents[1:], start=1):
        bone = positions[:, joint] - positions[:, parent]
        local = turned[parent].inv().apply(bone)
        own = _shortest_turn(rest[joint], local)
        with warnings.catch_warnings():
            # At a right angle about y the other two are one; which they are does not matter here.
            warnings.filterwarnings("ignore", message="Gimbal lock")
            angles[:, joint] = own.as_euler("xyz", degrees=True)
        turned.append(turned[parent] * own)
    return angles


def _shortest_turn(rest: Floats, bones: Floats) -> Rotation:
    """From one unit vector to each of several directions, without twist."""
    lengths = np.linalg.norm(bones, axis=1, keepdims=True)
    targets = np.where(lengths > 0, bones / np.where(lengths > 0, lengths, 1), rest)
    axis, cosine = np.cross(rest, targets), targets @ rest
    # Opposite vectors have every axis at right angles between them: take any one.
    other = np.cross(rest, np.eye(3)[np.argmin(abs(rest))])
    opposite = np.linalg.norm(axis, axis=1) < 1e-12
    axis[opposite & (cosine < 0)] = other
    norms = np.linalg.norm(axis, axis=1)
    angle = np.arctan2(np.where(opposite, 0.0, norms), cosine)
    unit = axis / np.where(norms > 0, norms, 1)[:, None]
    return Rotation.from_rotvec(unit * angle[:, None])


def _text(values: Floats) -> str:
    return " ".join(repr(float(value)) for value in values)
