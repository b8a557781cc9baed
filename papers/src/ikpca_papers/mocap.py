"""Recorded motion: forward kinematics, and a reader of Acclaim files (ASF/AMC)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import InvalidInput
from ikpca.kernels import Floats

#: ``float`` also reads nan, 1_000 and digits of other scripts, which are errors in a file.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: Larger than any length or angle; much larger numbers would overflow.
_MAX_NUMBER = 1e12
#: Lengths of ASF files are inches divided by the unit of length, which is 0.45 at CMU.
_METERS_PER_INCH = 0.0254
#: Tolerance for the length of a direction, which is rounded.
_DIRECTION_TOLERANCE = 0.01


@dataclass(frozen=True, eq=False)
class Motion:
    """Positions of the joints of a body in every frame.

    Parameters
    ----------
    names : tuple of str
        Names of the joints; joint 0 is the root.
    parents : array of int, shape (joints,)
        Parent of every joint, which comes before it; −1 for the root.
    bone_lengths : array of shape (joints,)
        Distance of every joint from its parent at rest; 0 for the root.
    positions : array of shape (frames, joints, 3)
        y is up.
    frame_rate : float
        Frames per second.
    meters_per_unit : float
        Unit of all lengths.

    Examples
    --------
    >>> from ikpca_papers.data import synthetic_walker
    >>> walk = synthetic_walker(frames=5)
    >>> walk.names[0], walk.positions.shape, walk.meters_per_unit
    ('pelvis', (5, 27, 3), 1.0)
    """

    names: tuple[str, ...]
    parents: NDArray[np.intp]
    bone_lengths: Floats
    positions: Floats
    frame_rate: float
    meters_per_unit: float

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays of a data set: positions, joints and units."""
        return {
            "positions": self.positions.astype(np.float32),
            "joint_names": np.array(self.names),
            "parents": self.parents.astype(np.int16),
            "bone_lengths": self.bone_lengths.astype(np.float32),
            "frame_rate": np.array(self.frame_rate, dtype=np.float32),
            "metres_per_unit": np.array(self.meters_per_unit, dtype=np.float32),
        }


def euler(axes: str, angles: Floats) -> Floats:
    """Return rotation matrices of Euler angles about fixed axes, the first axis applied first.

    Angles are in radians, of shape (..., len(axes)); axes "xyz" give R = Rz Ry Rx.
    """
    rotation = np.broadcast_to(np.eye(3), (*angles.shape[:-1], 3, 3))
    for column, axis in enumerate(axes):
        first, second = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
        angle = angles[..., column]
        turn = np.zeros((*angle.shape, 3, 3))
        turn[...] = np.eye(3)
        turn[..., first, first] = turn[..., second, second] = np.cos(angle)
        turn[..., second, first] = np.sin(angle)
        turn[..., first, second] = -np.sin(angle)
        rotation = turn @ rotation
    return rotation


def joint_positions(
    parents: NDArray[np.intp], root: Floats, rotations: Floats, offsets: Floats
) -> Floats:
    """Forward kinematics: G = G_parent · R, and a joint is G · offset away from its parent.

    ``root`` has shape (frames, 3), ``rotations`` (frames, joints, 3, 3), ``offsets`` (joints, 3).
    """
    orientations = rotations.copy()
    for joint, parent in enumerate(parents[1:], start=1):
        orientations[:, joint] = orientations[:, parent] @ rotations[:, joint]
    positions = np.einsum("fjab,jb->fja", orientations, offsets)
    positions[:, 0] = root
    for joint, parent in enumerate(parents[1:], start=1):
        positions[:, joint] += positions[:, parent]
    return positions


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
    bones, parents, meters_per_unit, radians_per_unit = _read_skeleton(asf)
    values = _read_frames(amc, bones, radians_per_unit)
    root = np.tile(bones[0].offset, (len(values["root"]), 1))
    rotations = np.broadcast_to(np.eye(3), (len(root), len(bones), 3, 3)).copy()
    for joint, bone in enumerate(bones):
        angles = [column for column, channel in enumerate(bone.channels) if channel[0] == "r"]
        if angles:
            axes = "".join(bone.channels[column][1] for column in angles)
            rotation = euler(axes, values[bone.name][:, angles])
            rotations[:, joint] = bone.system @ rotation @ bone.system.T
    for column, channel in enumerate(bones[0].channels):
        if channel[0] == "t":
            root[:, "xyz".index(channel[1])] += values["root"][:, column]
    offsets = np.array([np.zeros(3), *(bone.offset for bone in bones[1:])])
    positions = joint_positions(parents, root, rotations, offsets)
    names, lengths = tuple(bone.name for bone in bones), np.linalg.norm(offsets, axis=1)
    return Motion(names, parents, lengths, positions, frame_rate, meters_per_unit)


class _Bone(NamedTuple):
    """Bone of an ASF file, or its root, whose channels are also translations."""

    name: str
    #: Length times direction in the coordinates of the body; of the root its position.
    offset: Floats
    #: Rotation of its own coordinate system.
    system: Floats
    #: The values of a frame: "rx", "ry", "rz"; of the root also "tx", "ty", "tz".
    channels: tuple[str, ...]


class _Line(NamedTuple):
    """Line of a file: place in the file, words."""

    place: str
    words: list[str]

    @property
    def keyword(self) -> str:
        return self.words[0].lower()

    def error(self, rule: str) -> InvalidInput:
        return InvalidInput(f"{self.place}: {rule[:200]}; correct it, or fetch the file again.")

    def numbers(self, count: int, start: int = 1, stop: int | None = None) -> Floats:
        """Parse exactly ``count`` finite numbers, by default after the first word."""
        words = self.words[start:stop]
        numbers = [float(word) for word in words if _NUMBER.fullmatch(word)]
        if not len(words) == len(numbers) == count or not np.all(np.abs(numbers) <= _MAX_NUMBER):
            raise self.error(f"{self.words[0][:40]!r} must have {count} finite numbers")
        return np.array(numbers)

    def channels(self, *choices: str) -> tuple[str, ...]:
        """Parse the channels of a bone."""
        channels = tuple(word.lower() for word in self.words[1:])
        if len(set(channels)) < len(channels) or not set(channels) <= set(choices):
            raise self.error(f"must name some of {', '.join(choices)}, each at most once")
        return channels

    def rotation(self, angles: Floats) -> Floats:
        """Return a rotation, in the order of axes that the last word names."""
        axes = self.words[-1].lower()
        if sorted(axes) != ["x", "y", "z"]:
            raise self.error("the order of axes must be three letters such as XYZ")
        return euler(axes, angles)


def _read_lines(path: str | Path) -> list[_Line]:
    """Read the lines of a file that are neither blank nor comments."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(f"{path}: there is no such file; check the path.")
    # Only names and comments are not ASCII.
    text = path.read_bytes().decode("utf-8-sig", errors="replace")
    numbered = enumerate(re.split(r"\r\n|\n|\r", text), start=1)
    lines = [_Line(f"{path.name}, line {number}", line.split()) for number, line in numbered]
    lines = [line for line in lines if line.words and not line.words[0].startswith("#")]
    if not lines:
        raise InvalidInput(f"{path}: the file is empty; fetch it again.")
    return lines


def _read_skeleton(path: str | Path) -> tuple[list[_Bone], NDArray[np.intp], float, float]:
    """Return the bones, the root first; their parents; meters and radians per unit."""
    sections = _read_sections(path)
    units = {line.keyword: line for line in sections.get(":units", [])}
    length = float(units["length"].numbers(1)[0]) if "length" in units else 1.0
    if not length > 1e-6:
        raise units["length"].error(f"'length' must be positive, not {length:g}")
    radians = 1.0 if "angle" in units and units["angle"].words[1:] == ["rad"] else np.pi / 180
    blocks: list[dict[str, _Line]] = []
    for line in sections[":bonedata"][1:]:
        if line.keyword == "begin":
            blocks.append({})
        elif not blocks or (line.keyword == "name" and "name" in blocks[-1]):
            raise line.error("every bone must start with 'begin'")
        blocks[-1].setdefault(line.keyword, line)
    root = {line.keyword: line for line in sections[":root"]}
    bones = {"root": _root(root, radians)}
    bones |= {bone.name: bone for bone in (_bone(block, radians) for block in blocks)}
    if len(bones) < 1 + len(blocks):
        raise sections[":bonedata"][0].error("two bones have the same name")
    names, parents = _depth_first(sections[":hierarchy"], set(bones))
    return [bones[name] for name in names], parents, _METERS_PER_INCH / length, radians


def _read_sections(path: str | Path) -> dict[str, list[_Line]]:
    """Group the lines of a file by section; the first line of each is its name."""
    lines = _read_lines(path)
    sections: dict[str, list[_Line]] = {}
    for line in lines:
        if line.words[0].startswith(":"):
            if line.keyword in sections:
                raise line.error(f"a second section {line.words[0][:40]}")
            sections[line.keyword] = []
        if sections:
            next(reversed(sections.values())).append(line)
    for name in (":root", ":bonedata", ":hierarchy"):
        if len(sections.get(name, [])) < 2:
            raise lines[-1].error(f"the section {name} is missing or empty")
    return sections


def _root(block: dict[str, _Line], radians: float) -> _Bone:
    if "order" not in block:
        raise block[":root"].error("'order' is missing")
    channels = block["order"].channels("tx", "ty", "tz", "rx", "ry", "rz")
    position, orientation = (
        block[key].numbers(3) if key in block else np.zeros(3)
        for key in ("position", "orientation")
    )
    angles = radians * orientation
    system = block["axis"].rotation(angles) if "axis" in block else euler("xyz", angles)
    return _Bone("root", position, system, channels)


def _bone(block: dict[str, _Line], radians: float) -> _Bone:
    missing = {"name", "direction", "length", "axis"} - block.keys()
    if missing:
        raise block["begin"].error(f"the bone has no {', '.join(sorted(missing))}")
    (length,), direction = block["length"].numbers(1), block["direction"].numbers(3)
    if length < 0 or abs(np.linalg.norm(direction) - 1) > _DIRECTION_TOLERANCE:
        raise block["length"].error("'length' must be positive, and 'direction' of length 1")
    system = block["axis"].rotation(radians * block["axis"].numbers(3, stop=-1))
    # A bone without dof is fixed to its parent.
    channels = block["dof"].channels("rx", "ry", "rz") if "dof" in block else ()
    return _Bone(" ".join(block["name"].words[1:]), length * direction, system, channels)


def _depth_first(lines: list[_Line], bones: set[str]) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of the bones in the order of the tree, and their parents."""
    children: dict[str, list[str]] = {}
    placed = {"root"}
    for line in lines[1:]:
        parent, *names = line.words
        for name in names:
            if name not in bones or parent not in bones or name in placed:
                raise line.error(f"{name[:40]!r} must be a bone with one parent, which is a bone")
            placed.add(name)
        children.setdefault(parent, []).extend(names)
    order: list[str] = []
    parents: list[int] = []
    waiting = [("root", -1)]
    while waiting:
        name, number = waiting.pop()
        waiting += [(child, len(order)) for child in reversed(children.get(name, []))]
        order.append(name)
        parents.append(number)
    if len(order) < len(bones):
        missing = ", ".join(sorted(bones - set(order)))
        raise lines[0].error(f"not connected to the root: {missing}")
    return order, np.array(parents)


def _read_frames(path: str | Path, bones: list[_Bone], radians: float) -> dict[str, Floats]:
    """Return the channels of all frames by bone, angles in radians."""
    lines = _read_lines(path)
    header = list(takewhile(lambda line: line.words[0].startswith(":"), lines))
    for line in header:
        radians = {":degrees": np.pi / 180, ":radians": 1.0}.get(line.keyword, radians)
    lines = lines[len(header) :] or header
    scales = {
        bone.name: np.array([radians if channel[0] == "r" else 1.0 for channel in bone.channels])
        for bone in bones
        if bone.channels
    }
    values: dict[str, list[Floats]] = {name: [] for name in scales}
    for number, start in enumerate(range(0, len(lines), 1 + len(values))):
        head, *frame = lines[start : start + 1 + len(values)]
        if head.numbers(1, start=0) != lines[0].numbers(1, start=0) + number:
            raise head.error("frames must be numbered without gaps")
        if {line.words[0] for line in frame} != values.keys():
            raise head.error(f"the frame must have one line for each of {', '.join(values)}")
        for line in frame:
            name = line.words[0]
            values[name].append(line.numbers(len(scales[name])))
    return {name: scales[name] * np.array(rows) for name, rows in values.items()}
