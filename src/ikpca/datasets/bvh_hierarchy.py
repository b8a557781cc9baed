"""The HIERARCHY of a BVH file: nested blocks, read without recursion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ikpca.datasets.limits import check_joints
from ikpca.datasets.lines import Line

__all__ = ["BvhJoint", "read_hierarchy"]

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
