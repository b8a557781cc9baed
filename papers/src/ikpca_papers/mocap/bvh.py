"""BVH motion files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ikpca.kernels import Floats
from ikpca_papers.mocap.skeleton import Motion, Skeleton, chain_bones, euler, global_rotations
from ikpca_papers.mocap.text import Line, check_joints, check_size, read_lines

_ROTATIONS = {"xrotation", "yrotation", "zrotation"}
_POSITIONS = {"xposition", "yposition", "zposition"}
_REFETCH = "fetch the file again"


@dataclass(frozen=True)
class BvhJoint:
    """Joint or end site of a BVH file.

    Parameters
    ----------
    name : str
    parent : int
        −1 for the root.
    offset : list of float
        From the parent at rest.
    channels : list of str
        Such as "xrotation", in the order of the values of a frame; an end site has none.
    """

    name: str
    parent: int
    offset: list[float]
    channels: list[str]


@dataclass
class _PartialJoint:
    """Joint whose block is being read."""

    name: str
    parent: int
    is_end: bool
    offset: list[float] | None = None
    channels: list[str] | None = None


def read_hierarchy(lines: list[Line]) -> tuple[list[BvhJoint], list[Line]]:
    """Parse the joints; return them and the lines after MOTION."""
    statements = _statements(lines)
    line, words = next(statements)
    if [word.upper() for word in words] != ["HIERARCHY"]:
        raise line.error("a BVH file must start with HIERARCHY", "pass a BVH file")
    parser = _HierarchyParser()
    for line, words in statements:
        if words[0].upper() == "MOTION":
            return parser.finish(line), lines[line.number :]
        parser.parse(line, words)
    raise lines[-1].error("the file ends without MOTION", _REFETCH)


def _statements(lines: list[Line]) -> Iterator[tuple[Line, list[str]]]:
    """Split lines at braces; braces are statements of their own."""
    for line in lines:
        for piece in re.findall(r"[{}]|[^{}]+", line.text):
            if words := piece.split():
                yield line, words


class _HierarchyParser:
    """Joints so far, and the open blocks."""

    def __init__(self) -> None:
        self._joints: list[_PartialJoint] = []
        self._names: set[str] = set()
        self._open: list[int] = []
        #: True between the name of a joint and its brace.
        self._awaits_brace = False

    def parse(self, line: Line, words: list[str]) -> None:
        """Parse one statement."""
        keyword, *rest = words
        if self._awaits_brace != (keyword == "{"):
            raise line.error(
                "'{' must follow ROOT, JOINT or End Site, and nothing else", "correct the braces"
            )
        actions = {
            "{": self._open_block,
            "}": self._close_block,
            "ROOT": self._root,
            "JOINT": self._joint,
            "END": self._end_site,
            "OFFSET": self._offset,
            "CHANNELS": self._channels,
        }
        action = actions.get(keyword.upper())
        if action is None:
            raise line.error(f"unknown keyword {keyword[:40]!r}", "correct or remove it")
        action(line, rest)

    def finish(self, line: Line) -> list[BvhJoint]:
        """Return all joints; all blocks must be closed."""
        if self._open or self._awaits_brace or not self._joints:
            raise line.error("MOTION comes before the hierarchy is complete", _REFETCH)
        return [
            BvhJoint(joint.name, joint.parent, joint.offset or [], joint.channels or [])
            for joint in self._joints
        ]

    def _open_block(self, line: Line, rest: list[str]) -> None:
        self._open.append(len(self._joints) - 1)
        self._awaits_brace = False

    def _close_block(self, line: Line, rest: list[str]) -> None:
        joint = self._current(line, of_end_site=True)
        if joint.offset is None:
            raise line.error(f"{joint.name!r} has no OFFSET", "add it")
        if joint.channels is None and not joint.is_end:
            raise line.error(f"{joint.name!r} has no CHANNELS", "add them, or 'CHANNELS 0'")
        self._open.pop()

    def _root(self, line: Line, rest: list[str]) -> None:
        if self._joints:
            raise line.error("a file must have one ROOT", "move the other into a file of its own")
        self._add_joint(line, " ".join(rest), -1, is_end=False)

    def _joint(self, line: Line, rest: list[str]) -> None:
        self._current(line)
        self._add_joint(line, " ".join(rest), self._open[-1], is_end=False)

    def _end_site(self, line: Line, rest: list[str]) -> None:
        parent = self._current(line)
        if [word.upper() for word in rest] != ["SITE"]:
            raise line.error("'End' must be followed by 'Site'", "write 'End Site'")
        self._add_joint(line, f"{parent.name} end", self._open[-1], is_end=True)

    def _add_joint(self, line: Line, name: str, parent: int, is_end: bool) -> None:
        if not name or name in self._names:
            raise line.error(
                f"every joint must have a name of its own, not {name[:40]!r}", "rename the joint"
            )
        self._names.add(name)
        self._joints.append(_PartialJoint(name, parent, is_end))
        self._awaits_brace = True
        check_joints(len(self._joints), line)

    def _offset(self, line: Line, rest: list[str]) -> None:
        joint = self._current(line, of_end_site=True)
        if joint.offset is not None:
            raise line.error(f"a second OFFSET of {joint.name!r}", "leave out one of them")
        joint.offset = line.numbers(rest, 3, "OFFSET")

    def _channels(self, line: Line, rest: list[str]) -> None:
        joint = self._current(line)
        if joint.channels is not None:
            raise line.error(f"a second CHANNELS of {joint.name!r}", "leave out one of them")
        count = line.whole_number(rest[0] if rest else "", "CHANNELS")
        channels = [word.lower() for word in rest[1:]]
        if len(channels) != count or len(set(channels)) < count:
            raise line.error(
                f"CHANNELS must be followed by {count} different names", "correct the number"
            )
        allowed = _ROTATIONS if joint.parent >= 0 else _ROTATIONS | _POSITIONS
        for channel in channels:
            if channel not in allowed:
                raise line.error(
                    f"{channel[:40]!r} is not a channel that {joint.name!r} can have",
                    "export rotations, and positions for the root alone",
                )
        joint.channels = channels

    def _current(self, line: Line, of_end_site: bool = False) -> _PartialJoint:
        """Return the joint whose block is open."""
        if not self._open:
            raise line.error("a statement outside of the block of a joint", "correct the braces")
        joint = self._joints[self._open[-1]]
        if joint.is_end and not of_end_site:
            raise line.error("an end site has an OFFSET and nothing else", "correct the block")
        return joint


#: Seconds.
_MIN_FRAME_TIME = 1e-6


def read_bvh(path: str | Path, *, metres_per_unit: float | None = None) -> Motion:
    """Read a recording in the BVH format.

    Parameters
    ----------
    path : str or Path
    metres_per_unit : float, optional
        Unit of length, which the file does not contain.

    Returns
    -------
    Motion
        End sites are joints too, named after their parent with " end" added. An invalid file raises
        :class:`ikpca.errors.InvalidInput` with file and line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ikpca_papers.mocap import read_bvh
    >>> path = Path(tempfile.mkdtemp(), "arm.bvh")
    >>> _ = path.write_text('''HIERARCHY
    ... ROOT shoulder
    ... {
    ...   OFFSET 0 0 0
    ...   CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation
    ...   End Site
    ...   {
    ...     OFFSET 2 0 0
    ...   }
    ... }
    ... MOTION
    ... Frames: 1
    ... Frame Time: 0.025
    ... 0 5 0 90 0 0
    ... ''')
    >>> arm = read_bvh(path)
    >>> arm.skeleton.names, arm.frame_rate
    (('shoulder', 'shoulder end'), 40.0)
    >>> arm.positions.round(3) + 0.0
    array([[[0., 5., 0.],
            [0., 7., 0.]]])
    """
    lines = read_lines(path)
    joints, rest = read_hierarchy(lines)
    content = [line for line in rest if line.words]
    frames, seconds = _header(content, lines[-1])
    data = content[2:]
    _check_frames(data, frames, content[0], lines[-1])
    check_size(len(data), len(joints), lines[-1])
    width = sum(len(joint.channels) for joint in joints)
    values = np.array([line.numbers(line.words, width, "a frame") for line in data])
    skeleton = Skeleton(
        tuple(joint.name for joint in joints),
        np.array([joint.parent for joint in joints]),
        np.array([(0.0, 0.0, 0.0), *(joint.offset for joint in joints[1:])]),
    )
    return Motion(skeleton, _positions(skeleton, joints, values), 1 / seconds, metres_per_unit)


def _header(content: list[Line], last: Line) -> tuple[int, float]:
    """Parse the number of frames and the seconds between them."""
    found = []
    for line, keyword in zip([*content[:2], last, last], ("Frames", "Frame Time"), strict=False):
        pattern = keyword.replace(" ", r"\s+") + r"\s*:(.*)"
        match = re.fullmatch(pattern, line.text.strip(), re.IGNORECASE)
        if match is None:
            raise line.error(f"MOTION must go on with '{keyword}:'", f"add '{keyword}:'")
        found.append((line, match.group(1).split()))
    (first, count), (second, time) = found
    if len(count) != 1:
        raise first.error("'Frames:' must be followed by one number", "correct the line")
    (seconds,) = second.numbers(time, 1, "'Frame Time:'")
    if seconds < _MIN_FRAME_TIME:
        raise second.error(f"'Frame Time:' must be positive, not {seconds:g}", "correct it")
    return first.whole_number(count[0], "'Frames:'"), seconds


def _check_frames(data: list[Line], frames: int, head: Line, last: Line) -> None:
    """Compare the number of lines with ``Frames:``."""
    remedy = f"correct 'Frames:' in line {head.number} or fetch the file again"
    if not frames:
        raise head.error("'Frames:' must be 1 or more", "fetch the file again")
    if len(data) < frames:
        raise last.error(f"the file ends after {len(data)} of {frames} frames", remedy)
    if len(data) > frames:
        raise data[frames].error(f"there must be {frames} frames, and here is one more", remedy)


def _positions(skeleton: Skeleton, joints: list[BvhJoint], values: Floats) -> Floats:
    """Forward kinematics: G = G_parent R; a bone is G_parent · offset."""
    place = np.tile(np.array(joints[0].offset), (len(values), 1))
    local = np.broadcast_to(np.eye(3), (len(values), len(joints), 3, 3)).copy()
    start = 0
    for number, joint in enumerate(joints):
        own = values[:, start : start + len(joint.channels)]
        start += len(joint.channels)
        for column, channel in enumerate(joint.channels):
            if channel.endswith("position"):
                place[:, "xyz".index(channel[0])] += own[:, column]
        columns = [c for c, channel in enumerate(joint.channels) if channel.endswith("rotation")]
        # The last channel is applied first: Zrotation Yrotation Xrotation is Rz Ry Rx.
        axes = "".join(joint.channels[column][0] for column in reversed(columns))
        local[:, number] = euler(axes, np.radians(own[:, columns[::-1]]))
    rotations = global_rotations(skeleton.parents, local)
    carriers = rotations[:, np.maximum(skeleton.parents, 0)]
    return chain_bones(
        skeleton.parents, place, np.einsum("fjab,jb->fja", carriers, skeleton.offsets)
    )
