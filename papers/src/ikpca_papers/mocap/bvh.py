"""BVH motion files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ikpca.kernels import Floats
from ikpca_papers.mocap.skeleton import Motion, Skeleton, chain, euler, global_rotations
from ikpca_papers.mocap.text import Line, check_joints, check_size, read_lines

_ROTATIONS = {"xrotation", "yrotation", "zrotation"}
_POSITIONS = {"xposition", "yposition", "zposition"}
_REFETCH = "fetch the file again"


@dataclass(frozen=True)
class BvhJoint:
    """A joint or an end site.

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
class _Draft:
    """A joint whose block is still being read."""

    name: str
    parent: int
    is_end: bool
    offset: list[float] | None = None
    channels: list[str] | None = None


def read_hierarchy(lines: list[Line]) -> tuple[list[BvhJoint], list[Line]]:
    """Joints from the root outwards, and the lines after MOTION."""
    statements = _statements(lines)
    line, words = next(statements)
    if [word.upper() for word in words] != ["HIERARCHY"]:
        raise line.fault("a BVH file must start with HIERARCHY", "pass a BVH file")
    reader = _Reader()
    for line, words in statements:
        if words[0].upper() == "MOTION":
            return reader.finish(line), lines[line.number :]
        reader.take(line, words)
    raise lines[-1].fault("the file ends without MOTION", _REFETCH)


def _statements(lines: list[Line]) -> Iterator[tuple[Line, list[str]]]:
    """Words up to a brace or the end of the line; braces on their own."""
    for line in lines:
        for piece in re.findall(r"[{}]|[^{}]+", line.text):
            if words := piece.split():
                yield line, words


class _Reader:
    """The joints so far, and the blocks that are open."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []
        self._names: set[str] = set()
        self._open: list[int] = []
        #: Whether the last joint still waits for its brace.
        self._announced = False

    def take(self, line: Line, words: list[str]) -> None:
        """One statement."""
        keyword, *rest = words
        if self._announced != (keyword == "{"):
            raise line.fault(
                "'{' must follow ROOT, JOINT or End Site, and nothing else", "correct the braces"
            )
        actions = {
            "{": self._enter,
            "}": self._leave,
            "ROOT": self._root,
            "JOINT": self._joint,
            "END": self._end_site,
            "OFFSET": self._offset,
            "CHANNELS": self._channels,
        }
        action = actions.get(keyword.upper())
        if action is None:
            raise line.fault(f"unknown keyword {keyword[:40]!r}", "correct or remove it")
        action(line, rest)

    def finish(self, line: Line) -> list[BvhJoint]:
        """All joints; at MOTION every block is closed, and there is a root."""
        if self._open or self._announced or not self._drafts:
            raise line.fault("MOTION comes before the hierarchy is complete", _REFETCH)
        return [
            BvhJoint(draft.name, draft.parent, draft.offset or [], draft.channels or [])
            for draft in self._drafts
        ]

    def _enter(self, line: Line, rest: list[str]) -> None:
        self._open.append(len(self._drafts) - 1)
        self._announced = False

    def _leave(self, line: Line, rest: list[str]) -> None:
        joint = self._current(line, of_end_site=True)
        if joint.offset is None:
            raise line.fault(f"{joint.name!r} has no OFFSET", "add it")
        if joint.channels is None and not joint.is_end:
            raise line.fault(f"{joint.name!r} has no CHANNELS", "add them, or 'CHANNELS 0'")
        self._open.pop()

    def _root(self, line: Line, rest: list[str]) -> None:
        if self._drafts:
            raise line.fault("a file must have one ROOT", "move the other into a file of its own")
        self._announce(line, " ".join(rest), -1, is_end=False)

    def _joint(self, line: Line, rest: list[str]) -> None:
        self._current(line)
        self._announce(line, " ".join(rest), self._open[-1], is_end=False)

    def _end_site(self, line: Line, rest: list[str]) -> None:
        parent = self._current(line)
        if [word.upper() for word in rest] != ["SITE"]:
            raise line.fault("'End' must be followed by 'Site'", "write 'End Site'")
        self._announce(line, f"{parent.name} end", self._open[-1], is_end=True)

    def _announce(self, line: Line, name: str, parent: int, is_end: bool) -> None:
        if not name or name in self._names:
            raise line.fault(
                f"every joint must have a name of its own, not {name[:40]!r}", "rename the joint"
            )
        self._names.add(name)
        self._drafts.append(_Draft(name, parent, is_end))
        self._announced = True
        check_joints(len(self._drafts), line)

    def _offset(self, line: Line, rest: list[str]) -> None:
        joint = self._current(line, of_end_site=True)
        if joint.offset is not None:
            raise line.fault(f"a second OFFSET of {joint.name!r}", "leave out one of them")
        joint.offset = line.numbers(rest, 3, "OFFSET")

    def _channels(self, line: Line, rest: list[str]) -> None:
        joint = self._current(line)
        if joint.channels is not None:
            raise line.fault(f"a second CHANNELS of {joint.name!r}", "leave out one of them")
        count = line.whole_number(rest[0] if rest else "", "CHANNELS")
        channels = [word.lower() for word in rest[1:]]
        if len(channels) != count or len(set(channels)) < count:
            raise line.fault(
                f"CHANNELS must be followed by {count} different names", "correct the number"
            )
        allowed = _ROTATIONS if joint.parent >= 0 else _ROTATIONS | _POSITIONS
        for channel in channels:
            if channel not in allowed:
                raise line.fault(
                    f"{channel[:40]!r} is no channel that {joint.name!r} can have",
                    "export rotations, and positions for the root alone",
                )
        joint.channels = channels

    def _current(self, line: Line, of_end_site: bool = False) -> _Draft:
        """The joint whose block is open."""
        if not self._open:
            raise line.fault("a statement outside of the block of a joint", "correct the braces")
        joint = self._drafts[self._open[-1]]
        if joint.is_end and not of_end_site:
            raise line.fault("an end site has an OFFSET and nothing else", "correct the block")
        return joint


#: Shorter than any camera's shutter; its reciprocal is still a number.
_SHORTEST = 1e-6


def read_bvh(path: str | Path, *, metres_per_unit: float | None = None) -> Motion:
    """Read a recording in the BVH format.

    Parameters
    ----------
    path : str or Path
    metres_per_unit : float, optional
        What lengths are measured in, which the file does not say.

    Returns
    -------
    Motion
        End sites are joints too, named after their parent with " end" added. A file that breaks a
        rule raises :class:`ikpca.errors.InvalidInput` with file and line.

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
    """The number of frames and the seconds between them."""
    found = []
    for line, keyword in zip([*content[:2], last, last], ("Frames", "Frame Time"), strict=False):
        pattern = keyword.replace(" ", r"\s+") + r"\s*:(.*)"
        match = re.fullmatch(pattern, line.text.strip(), re.IGNORECASE)
        if match is None:
            raise line.fault(f"MOTION must go on with '{keyword}:'", f"add '{keyword}:'")
        found.append((line, match.group(1).split()))
    (first, count), (second, time) = found
    if len(count) != 1:
        raise first.fault("'Frames:' must be followed by one number", "correct the line")
    (seconds,) = second.numbers(time, 1, "'Frame Time:'")
    if seconds < _SHORTEST:
        raise second.fault(f"'Frame Time:' must be positive, not {seconds:g}", "correct it")
    return first.whole_number(count[0], "'Frames:'"), seconds


def _check_frames(data: list[Line], frames: int, head: Line, last: Line) -> None:
    """As many lines as ``Frames:`` says; nothing is sized by what it says."""
    remedy = f"correct 'Frames:' in line {head.number} or fetch the file again"
    if not frames:
        raise head.fault("'Frames:' must be 1 or more", "fetch the file again")
    if len(data) < frames:
        raise last.fault(f"the file ends after {len(data)} of {frames} frames", remedy)
    if len(data) > frames:
        raise data[frames].fault(f"there must be {frames} frames, and here is one more", remedy)


def _positions(skeleton: Skeleton, joints: list[BvhJoint], values: Floats) -> Floats:
    """Forward kinematics: G = G_parent R, and a bone points along G_parent · offset."""
    place = np.tile(np.array(joints[0].offset), (len(values), 1))
    local = np.broadcast_to(np.eye(3), (len(values), len(joints), 3, 3)).copy()
    start = 0
    for number, joint in enumerate(joints):
        own = values[:, start : start + len(joint.channels)]
        start += len(joint.channels)
        for column, channel in enumerate(joint.channels):
            if channel.endswith("position"):
                place[:, "xyz".index(channel[0])] += own[:, column]
        turns = [c for c, channel in enumerate(joint.channels) if channel.endswith("rotation")]
        # The last channel turns first: Zrotation Yrotation Xrotation is Rz Ry Rx.
        axes = "".join(joint.channels[column][0] for column in reversed(turns))
        local[:, number] = euler(axes, np.radians(own[:, turns[::-1]]))
    rotations = global_rotations(skeleton.parents, local)
    carriers = rotations[:, np.maximum(skeleton.parents, 0)]
    return chain(skeleton.parents, place, np.einsum("fjab,jb->fja", carriers, skeleton.offsets))
