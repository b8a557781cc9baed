"""The ``:bonedata`` of an ASF file: one block between ``begin`` and ``end`` per bone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ikpca.datasets.lines import Line

__all__ = ["Bone", "axis_order", "read_bones"]

#: Of no use for positions: numbers, limits of joints, masses.
_IGNORED = {"id", "limits", "bodymass", "cofmass"}
#: How far from 1 rounding may leave the length of a direction.
_DIRECTION_SLACK = 0.01


@dataclass(frozen=True)
class Bone:
    """What positions need of a bone.

    Parameters
    ----------
    name : str
    line : Line
        Where it is named.
    offset : tuple of float
        Length times direction, in the coordinates of the whole body.
    axes : str
        The order of turning about its axes, such as "xyz".
    axis_angles : tuple of float
        Euler angles of its own coordinate system, in the file's unit.
    freedom : str
        The axes that the joint can turn about, in the order of the values of a frame.
    """

    name: str
    line: Line
    offset: tuple[float, ...]
    axes: str
    axis_angles: tuple[float, ...]
    freedom: str


def read_bones(lines: list[Line]) -> list[Bone]:
    """All bones, in the order of the file."""
    bones = [_bone(head, block) for head, block in _blocks(lines)]
    seen: set[str] = {"root"}
    for bone in bones:
        if bone.name in seen:
            raise bone.line.fault(
                f"the name {bone.name!r} is taken", "give every bone a name of its own"
            )
        seen.add(bone.name)
    return bones


def axis_order(line: Line, word: str) -> str:
    """Three different letters of "xyz", in the order of turning."""
    axes = word.lower()
    if sorted(axes) != ["x", "y", "z"]:
        raise line.fault(f"the order of axes must be like XYZ, not {word[:40]!r}", "write XYZ")
    return axes


def _blocks(lines: list[Line]) -> Iterator[tuple[Line, dict[str, Line]]]:
    """The line of ``begin`` and the lines of the block by their keyword."""
    head: Line | None = None
    block: dict[str, Line] = {}
    for line in lines:
        keyword = line.words[0].lower()
        if (keyword == "begin") != (head is None):
            raise line.fault("every bone must start with 'begin' and end with 'end'",
                             "add what is missing before this line")  # fmt: skip
        if head is None:
            head, block = line, {}
        elif keyword == "end":
            yield head, block
            head = None
        elif keyword in block:
            raise line.fault(f"a second {keyword[:40]!r} in one bone", "leave out one of them")
        # Limits of further axes go on in lines that start with their bracket.
        elif not keyword.startswith("("):
            block[keyword] = line
    if head is not None:
        raise lines[-1].fault(
            f"the bone that begins in line {head.number} has no 'end'",
            "add it or fetch the file again",
        )


def _bone(head: Line, block: dict[str, Line]) -> Bone:
    for keyword, line in block.items():
        if keyword not in _IGNORED | {"name", "direction", "length", "axis", "dof"}:
            raise line.fault(f"unknown keyword {keyword[:40]!r} in a bone", "correct or remove it")
    for keyword in ("name", "direction", "length", "axis"):
        if keyword not in block:
            raise head.fault(f"the bone has no {keyword!r}", "add it or fetch the file again")
    name = block["name"]
    if len(name.words) != 2:
        raise name.fault("'name' must be followed by one word", "name the bone")
    axes, angles = _axis(block["axis"])
    return Bone(name.words[1], name, _offset(block), axes, angles, _freedom(block.get("dof")))


def _offset(block: dict[str, Line]) -> tuple[float, ...]:
    line = block["length"]
    (length,) = line.numbers(line.words[1:], 1, "'length'")
    if length < 0:
        raise line.fault(f"'length' must not be negative, like {length:g}", "correct it")
    line = block["direction"]
    direction = line.numbers(line.words[1:], 3, "'direction'")
    norm = math.hypot(*direction)
    if abs(norm - 1) > _DIRECTION_SLACK:
        raise line.fault(f"'direction' must have length 1, not {norm:.3g}", "correct it")
    return tuple(length * coordinate for coordinate in direction)


def _axis(line: Line) -> tuple[str, tuple[float, ...]]:
    angles = line.numbers(line.words[1:-1], 3, "'axis' before the order of axes")
    return axis_order(line, line.words[-1]), tuple(angles)


def _freedom(line: Line | None) -> str:
    """Letters of "xyz"; a bone without ``dof`` is fixed to its parent."""
    if line is None:
        return ""
    words = [word.lower() for word in line.words[1:]]
    if len(set(words)) < len(words) or not set(words) <= {"rx", "ry", "rz"}:
        raise line.fault(
            "'dof' must name rotations rx, ry, rz, each once", "leave out what stretches the bone"
        )
    return "".join(word[1] for word in words)
