"""AMC frame files of the Acclaim format."""

from __future__ import annotations

import os
import warnings
from collections.abc import Container, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from ikpca.errors import InvalidInput
from ikpca.kernels import Floats
from ikpca.model_files import atomic_write
from ikpca_papers.mocap.asf import AsfSkeleton, read_asf
from ikpca_papers.mocap.skeleton import Motion, chain_bones, euler, global_rotations
from ikpca_papers.mocap.text import Line, check_size, read_lines


class _EulerAngles(NamedTuple):
    axes: str
    angles: Floats


def read_asf_amc(asf: str | Path, amc: str | Path, *, frame_rate: float = 120.0) -> Motion:
    """Read a recording in the Acclaim format: skeleton and frames.

    Parameters
    ----------
    asf, amc : str or Path
        Files of the skeleton and of the frames.
    frame_rate : float, default=120.0
        Frames per second, which neither file contains; CMU recorded at 120.

    Returns
    -------
    Motion
        Joint 0 is the root, every other joint the far end of the bone it is named after. An invalid
        file raises :class:`ikpca.errors.InvalidInput` with file and line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ikpca_papers.mocap import read_asf_amc
    >>> folder = Path(tempfile.mkdtemp())
    >>> asf, amc = folder / "arm.asf", folder / "arm.amc"
    >>> _ = asf.write_text('''
    ... :root
    ...   order TX TY TZ RX RY RZ
    ... :bonedata
    ...   begin
    ...     name arm
    ...     direction 1 0 0
    ...     length 2
    ...     axis 0 0 0 XYZ
    ...     dof rz
    ...   end
    ... :hierarchy
    ...   begin
    ...     root arm
    ...   end
    ... ''')
    >>> _ = amc.write_text("1" + chr(10) + "root 0 5 0 0 0 0" + chr(10) + "arm 90")
    >>> read_asf_amc(asf, amc).positions.round(3) + 0.0
    array([[[0., 5., 0.],
            [0., 7., 0.]]])
    """
    body = read_asf(asf)
    lines = read_lines(amc)
    degrees, content = _header([line for line in lines if _has_content(line)], body.degrees)
    channels = {"root": len(body.root.order)} | {
        bone.name: len(bone.dof) for bone in body.bones if bone.dof
    }
    groups = _groups(content, channels)
    if not groups:
        raise lines[-1].error("the file has no frames", "fetch it again")
    check_size(len(groups), len(body.skeleton.names), lines[-1])
    _check_numbers([group[0] for group in groups])
    values = np.array([_row(group, channels) for group in groups])
    parts = np.split(values, np.cumsum([*channels.values()])[:-1], axis=1)
    moves = dict(zip(channels, parts, strict=True))
    return Motion(body.skeleton, _positions(body, moves, degrees), frame_rate, body.metres_per_unit)


def _has_content(line: Line) -> bool:
    text = line.text.strip()
    return bool(text) and not text.startswith("#")


def _header(lines: list[Line], degrees: bool) -> tuple[bool, list[Line]]:
    """Parse the ``:keywords``: True for degrees, and the lines after them."""
    start = 0
    for line in lines:
        keyword = line.text.strip().lower()
        if not keyword.startswith(":"):
            break
        if keyword in {":degrees", ":radians"}:
            degrees = keyword == ":degrees"
        elif keyword != ":fully-specified":
            raise line.error(
                f"unknown keyword {keyword[:40]!r}", "write :fully-specified, :degrees or :radians"
            )
        start += 1
    return degrees, lines[start:]


def _groups(lines: list[Line], channels: Container[str]) -> list[list[Line]]:
    """Group lines by frame, each with the line of its number first."""
    groups: list[list[Line]] = []
    for line in lines:
        # A bone without values is reported with its frame.
        if len(line.words) == 1 and line.words[0] not in channels:
            groups.append([line])
        elif groups:
            groups[-1].append(line)
        else:
            raise line.error("a frame must start with its number", "pass an AMC file")
    return groups


def _check_numbers(heads: list[Line]) -> None:
    """Check that frames are numbered without gaps."""
    numbers = [head.whole_number(head.words[0], "the number of a frame") for head in heads]
    for head, number, before in zip(heads[1:], numbers[1:], numbers, strict=False):
        if number != before + 1:
            raise head.error(
                f"frame {number} follows frame {before}", "restore the frames between them"
            )


def _row(group: list[Line], channels: dict[str, int]) -> list[float]:
    """Parse the values of one frame, in the order of ``channels``."""
    found: dict[str, list[float]] = {}
    for line in group[1:]:
        name, *values = line.words
        if name not in channels:
            raise line.error(
                f"{name[:40]!r} is not a bone of the skeleton with rotations",
                "pass the ASF file that belongs to this AMC file",
            )
        if name in found:
            raise line.error(f"{name!r} a second time in one frame", "leave out one of the lines")
        found[name] = line.numbers(values, channels[name], f"{name!r}")
    for name in channels:
        if name not in found:
            raise group[-1].error(
                f"the frame ends without {name!r}", "complete it or fetch the file again"
            )
    return list(chain.from_iterable(found[name] for name in channels))


def _positions(body: AsfSkeleton, moves: dict[str, Floats], degrees: bool) -> Floats:
    """Forward kinematics: G = G_parent C R C⁻¹; a bone is G · length · direction."""
    parents, offsets = body.skeleton.parents, body.skeleton.offsets
    place, angles = _root_motion(body, moves["root"])
    local = np.broadcast_to(np.eye(3), (len(place), len(parents), 3, 3)).copy()
    asf_unit, unit = (np.pi / 180 if flag else 1.0 for flag in (body.degrees, degrees))
    own = euler(body.root.axes, asf_unit * np.array(body.root.orientation))
    local[:, 0] = own @ euler(angles.axes, unit * angles.angles) @ own.T
    for joint, bone in enumerate(body.bones, start=1):
        if bone.dof:
            own = euler(bone.axes, asf_unit * np.array(bone.axis_angles))
            local[:, joint] = own @ euler(bone.dof, unit * moves[bone.name]) @ own.T
    bones = np.einsum("fjab,jb->fja", global_rotations(parents, local), offsets)
    return chain_bones(parents, place, bones)


def _root_motion(body: AsfSkeleton, values: Floats) -> tuple[Floats, _EulerAngles]:
    """Return position and rotation of the root, from channels in any order."""
    order = body.root.order
    place = np.tile(np.array(body.root.position), (len(values), 1))
    for column, channel in enumerate(order):
        if channel[0] == "t":
            place[:, "xyz".index(channel[1])] += values[:, column]
    columns = [column for column, channel in enumerate(order) if channel[0] == "r"]
    return place, _EulerAngles("".join(order[column][1] for column in columns), values[:, columns])


_METRES_PER_INCH = 0.0254


def write_asf_amc(motion: Motion, asf: Path, amc: Path) -> None:
    """Write a skeleton and its frames, in the format of :func:`read_asf_amc`.

    The format has bones of constant length: directions of bones are kept, and their lengths are
    those of the skeleton.

    Parameters
    ----------
    motion : Motion
    asf, amc : Path
        Files of the skeleton and of the frames.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ikpca_papers.mocap import Motion, Skeleton, read_asf_amc, write_asf_amc
    >>> asf, amc = (Path(tempfile.mkdtemp(), name) for name in ("arm.asf", "arm.amc"))
    >>> arm = Skeleton(("root", "elbow", "wrist"), [-1, 0, 1], [[0, 0, 0], [3, 0, 0], [2, 0, 0]])
    >>> bent = Motion(arm, [[[0, 1, 0], [0, 4, 0], [0, 4, 2]]], frame_rate=120.0)
    >>> write_asf_amc(bent, asf, amc)
    >>> read_asf_amc(asf, amc).positions.round(6) + 0.0
    array([[[0., 1., 0.],
            [0., 4., 0.],
            [0., 4., 2.]]])
    """
    names = _names(motion)
    frames, skeleton = _lines(_frames(motion, names)), _lines(_skeleton(motion, names))
    # Both are on the disk before either is renamed.
    with atomic_write(amc) as outer, atomic_write(asf) as inner:
        for file, content in ((outer, frames), (inner, skeleton)):
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def _lines(lines: Iterator[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _names(motion: Motion) -> list[str]:
    """Return one word per joint, because names end at a blank."""
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
        yield f"    direction {_format_numbers(direction)}"
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
        yield f"root {_format_numbers(place)} 0 0 0"
        for name, turn in zip(names[1:], turns[1:], strict=True):
            yield f"{name} {_format_numbers(turn)}"


def _rest_directions(motion: Motion) -> Floats:
    """Return unit vectors along the bones at rest; along x for a bone of length 0."""
    offsets, lengths = motion.skeleton.offsets, motion.skeleton.bone_lengths[:, None]
    along_x = np.tile([1.0, 0.0, 0.0], (len(offsets), 1))
    return np.divide(offsets, lengths, out=along_x, where=lengths > 0)


def _angles(motion: Motion) -> Floats:
    """Euler angles of every bone in degrees: G = G_parent R."""
    parents, positions = motion.skeleton.parents, motion.positions
    rest = _rest_directions(motion)
    angles = np.zeros_like(positions)
    rotations: list[Rotation] = [Rotation.identity(len(positions))]
    for joint, parent in enumerate(parents[1:], start=1):
        bone = positions[:, joint] - positions[:, parent]
        local = rotations[parent].inv().apply(bone)
        own = _shortest_rotation(rest[joint], local)
        with warnings.catch_warnings():
            # At 90° about y only the sum of the other two angles is determined.
            warnings.filterwarnings("ignore", message="Gimbal lock")
            angles[:, joint] = own.as_euler("xyz", degrees=True)
        rotations.append(rotations[parent] * own)
    return angles


def _shortest_rotation(rest: Floats, bones: Floats) -> Rotation:
    """Return the rotations from one unit vector to several directions, without twist."""
    lengths = np.linalg.norm(bones, axis=1, keepdims=True)
    targets = np.where(lengths > 0, bones / np.where(lengths > 0, lengths, 1), rest)
    axis, cosine = np.cross(rest, targets), targets @ rest
    # Opposite vectors: any perpendicular axis.
    other = np.cross(rest, np.eye(3)[np.argmin(abs(rest))])
    opposite = np.linalg.norm(axis, axis=1) < 1e-12
    axis[opposite & (cosine < 0)] = other
    norms = np.linalg.norm(axis, axis=1)
    angle = np.arctan2(np.where(opposite, 0.0, norms), cosine)
    unit = axis / np.where(norms > 0, norms, 1)[:, None]
    return Rotation.from_rotvec(unit * angle[:, None])


def _format_numbers(values: Floats) -> str:
    return " ".join(repr(float(value)) for value in values)
