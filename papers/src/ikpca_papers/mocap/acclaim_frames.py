"""AMC frame files of the Acclaim format, and motion files by name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Container, Iterator
from itertools import chain as joined
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from ikpca.errors import InvalidInput
from ikpca.kernels import Floats
from ikpca.model_files import atomic_write
from ikpca_papers.mocap.acclaim import AsfSkeleton, read_asf
from ikpca_papers.mocap.skeleton import Motion, chain, euler, global_rotations
from ikpca_papers.mocap.text import Line, check_size, read_lines


class _Turn(NamedTuple):
    axes: str
    angles: Floats


def read_asf_amc(asf: str | Path, amc: str | Path, *, frame_rate: float = 120.0) -> Motion:
    """Read a recording in the Acclaim format: skeleton and frames.

    Parameters
    ----------
    asf, amc : str or Path
        The file of the skeleton and the file of the frames.
    frame_rate : float, default=120.0
        Frames per second, which neither file says; CMU recorded at 120.

    Returns
    -------
    Motion
        Joint 0 is the root, every other joint the far end of the bone it is named after. A file
        that breaks a rule raises :class:`ikpca.errors.InvalidInput` with file and line.

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
        bone.name: len(bone.freedom) for bone in body.bones if bone.freedom
    }
    groups = _groups(content, channels)
    if not groups:
        raise lines[-1].fault("the file has no frames", "fetch it again")
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
    """Whether angles are in degrees, and the lines after the ``:keywords``."""
    start = 0
    for line in lines:
        keyword = line.text.strip().lower()
        if not keyword.startswith(":"):
            break
        if keyword in {":degrees", ":radians"}:
            degrees = keyword == ":degrees"
        elif keyword != ":fully-specified":
            raise line.fault(
                f"unknown keyword {keyword[:40]!r}", "write :fully-specified, :degrees or :radians"
            )
        start += 1
    return degrees, lines[start:]


def _groups(lines: list[Line], channels: Container[str]) -> list[list[Line]]:
    """Lines frame by frame, each with the line of its number first."""
    groups: list[list[Line]] = []
    for line in lines:
        # A bone alone in a line has lost its values; that is for the frame to say.
        if len(line.words) == 1 and line.words[0] not in channels:
            groups.append([line])
        elif groups:
            groups[-1].append(line)
        else:
            raise line.fault("a frame must start with its number", "pass an AMC file")
    return groups


def _check_numbers(heads: list[Line]) -> None:
    """Frames are numbered without gaps, or the motion would jump."""
    numbers = [head.whole_number(head.words[0], "the number of a frame") for head in heads]
    for head, number, before in zip(heads[1:], numbers[1:], numbers, strict=False):
        if number != before + 1:
            raise head.fault(
                f"frame {number} follows frame {before}", "restore the frames between them"
            )


def _row(group: list[Line], channels: dict[str, int]) -> list[float]:
    """The values of one frame, in the order of ``channels``."""
    found: dict[str, list[float]] = {}
    for line in group[1:]:
        name, *values = line.words
        if name not in channels:
            raise line.fault(
                f"{name[:40]!r} is no bone of the skeleton that can turn",
                "pass the ASF file that belongs to this AMC file",
            )
        if name in found:
            raise line.fault(f"{name!r} a second time in one frame", "leave out one of the lines")
        found[name] = line.numbers(values, channels[name], f"{name!r}")
    for name in channels:
        if name not in found:
            raise group[-1].fault(
                f"the frame ends without {name!r}", "complete it or fetch the file again"
            )
    return list(joined.from_iterable(found[name] for name in channels))


def _positions(body: AsfSkeleton, moves: dict[str, Floats], degrees: bool) -> Floats:
    """Forward kinematics: G = G_parent C R C⁻¹, and a bone points along G · length · direction."""
    parents, offsets = body.skeleton.parents, body.skeleton.offsets
    place, turn = _root_moves(body, moves["root"])
    local = np.broadcast_to(np.eye(3), (len(place), len(parents), 3, 3)).copy()
    asf_unit, unit = (np.pi / 180 if flag else 1.0 for flag in (body.degrees, degrees))
    own = euler(body.root.axes, asf_unit * np.array(body.root.orientation))
    local[:, 0] = own @ euler(turn.axes, unit * turn.angles) @ own.T
    for joint, bone in enumerate(body.bones, start=1):
        if bone.freedom:
            own = euler(bone.axes, asf_unit * np.array(bone.axis_angles))
            local[:, joint] = own @ euler(bone.freedom, unit * moves[bone.name]) @ own.T
    bones = np.einsum("fjab,jb->fja", global_rotations(parents, local), offsets)
    return chain(parents, place, bones)


def _root_moves(body: AsfSkeleton, values: Floats) -> tuple[Floats, _Turn]:
    """Where the root is, and how it is turned, from channels in any order."""
    order = body.root.order
    place = np.tile(np.array(body.root.position), (len(values), 1))
    for column, channel in enumerate(order):
        if channel[0] == "t":
            place[:, "xyz".index(channel[1])] += values[:, column]
    columns = [column for column, channel in enumerate(order) if channel[0] == "r"]
    return place, _Turn("".join(order[column][1] for column in columns), values[:, columns])


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
    frames = _lines(_frames(motion, _names(motion)))
    # Neither is renamed before both are on the disk: one means nothing without the other.
    with atomic_write(amc) as outer, atomic_write(asf) as inner:
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
