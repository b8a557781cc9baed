"""ASF skeleton files of the Acclaim format."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ikpca_papers.mocap.skeleton import Skeleton
from ikpca_papers.mocap.text import Line, check_joints, read_lines

#: Not needed for positions: numbers, joint limits, masses.
_IGNORED = {"id", "limits", "bodymass", "cofmass"}
#: Tolerance for the length of a direction, which is rounded.
_DIRECTION_TOLERANCE = 0.01


@dataclass(frozen=True)
class Bone:
    """Bone of an ASF file.

    Parameters
    ----------
    name : str
    line : Line
        Line of the name.
    offset : tuple of float
        Length times direction, in the coordinates of the whole body.
    axes : str
        The order of rotations about its axes, such as "xyz".
    axis_angles : tuple of float
        Euler angles of its own coordinate system, in the file's unit.
    dof : str
        The rotation axes of the joint, in the order of the values of a frame.
    """

    name: str
    line: Line
    offset: tuple[float, ...]
    axes: str
    axis_angles: tuple[float, ...]
    dof: str


def read_bones(lines: list[Line]) -> list[Bone]:
    """Parse all bones, in the order of the file."""
    bones = [_bone(head, block) for head, block in _blocks(lines)]
    seen: set[str] = {"root"}
    for bone in bones:
        if bone.name in seen:
            raise bone.line.error(
                f"the name {bone.name!r} is taken", "give every bone a name of its own"
            )
        seen.add(bone.name)
    return bones


def axis_order(line: Line, word: str) -> str:
    """Parse an order of rotations: three different letters of "xyz"."""
    axes = word.lower()
    if sorted(axes) != ["x", "y", "z"]:
        raise line.error(f"the order of axes must be like XYZ, not {word[:40]!r}", "write XYZ")
    return axes


def _blocks(lines: list[Line]) -> Iterator[tuple[Line, dict[str, Line]]]:
    """Yield the line of ``begin`` and the lines of the block by keyword."""
    head: Line | None = None
    block: dict[str, Line] = {}
    for line in lines:
        keyword = line.words[0].lower()
        if (keyword == "begin") != (head is None):
            raise line.error("every bone must start with 'begin' and end with 'end'",
                             "add what is missing before this line")  # fmt: skip
        if head is None:
            head, block = line, {}
        elif keyword == "end":
            yield head, block
            head = None
        elif keyword in block:
            raise line.error(f"a second {keyword[:40]!r} in one bone", "leave out one of them")
        # Limits of further axes are on lines that start with a bracket.
        elif not keyword.startswith("("):
            block[keyword] = line
    if head is not None:
        raise lines[-1].error(
            f"the bone that begins in line {head.number} has no 'end'",
            "add it or fetch the file again",
        )


def _bone(head: Line, block: dict[str, Line]) -> Bone:
    for keyword, line in block.items():
        if keyword not in _IGNORED | {"name", "direction", "length", "axis", "dof"}:
            raise line.error(f"unknown keyword {keyword[:40]!r} in a bone", "correct or remove it")
    for keyword in ("name", "direction", "length", "axis"):
        if keyword not in block:
            raise head.error(f"the bone has no {keyword!r}", "add it or fetch the file again")
    name = block["name"]
    if len(name.words) != 2:
        raise name.error("'name' must be followed by one word", "name the bone")
    axes, angles = _axis(block["axis"])
    return Bone(name.words[1], name, _offset(block), axes, angles, _rotation_axes(block.get("dof")))


def _offset(block: dict[str, Line]) -> tuple[float, ...]:
    line = block["length"]
    (length,) = line.numbers(line.words[1:], 1, "'length'")
    if length < 0:
        raise line.error(f"'length' must not be negative, like {length:g}", "correct it")
    line = block["direction"]
    direction = line.numbers(line.words[1:], 3, "'direction'")
    norm = math.hypot(*direction)
    if abs(norm - 1) > _DIRECTION_TOLERANCE:
        raise line.error(f"'direction' must have length 1, not {norm:.3g}", "correct it")
    return tuple(length * coordinate for coordinate in direction)


def _axis(line: Line) -> tuple[str, tuple[float, ...]]:
    angles = line.numbers(line.words[1:-1], 3, "'axis' before the order of axes")
    return axis_order(line, line.words[-1]), tuple(angles)


def _rotation_axes(line: Line | None) -> str:
    """Parse ``dof`` as letters of "xyz"; a bone without it is fixed to its parent."""
    if line is None:
        return ""
    words = [word.lower() for word in line.words[1:]]
    if len(set(words)) < len(words) or not set(words) <= {"rx", "ry", "rz"}:
        raise line.error(
            "'dof' must name rotations rx, ry, rz, each once", "leave out what stretches the bone"
        )
    return "".join(word[1] for word in words)


def order_bones(lines: list[Line], bones: list[Bone]) -> list[tuple[Bone, int]]:
    """Sort bones depth first from the root; return each with the number of its parent joint.

    Joint 0 is the root; joint j is the far end of the j-th bone of the result.
    """
    by_name = {bone.name: bone for bone in bones}
    children = _children(_hierarchy_body(lines), by_name)
    result: list[tuple[Bone, int]] = []
    waiting = [(name, 0) for name in reversed(children.get("root", []))]
    while waiting:
        name, parent = waiting.pop()
        result.append((by_name[name], parent))
        joint = len(result)
        waiting += [(child, joint) for child in reversed(children.get(name, []))]
    _check_connected(bones, {bone.name for bone, _ in result}, children, lines)
    return result


def _hierarchy_body(lines: list[Line]) -> list[Line]:
    """Return the lines between ``begin`` and ``end``."""
    if lines[0].words[0].lower() != "begin":
        raise lines[0].error("the hierarchy must start with 'begin'", "add the missing 'begin'")
    if lines[-1].words[0].lower() != "end":
        raise lines[-1].error(
            "the hierarchy has no 'end'", "add the missing 'end' or fetch the file again"
        )
    return lines[1:-1]


def _children(lines: list[Line], bones: dict[str, Bone]) -> dict[str, list[str]]:
    """Return children by parent; a child has one parent only."""
    children: dict[str, list[str]] = {}
    placed: set[str] = {"root"}
    for line in lines:
        parent, *names = line.words
        for name in (parent, *names):
            if name not in bones and name != "root":
                raise line.error(
                    f"bone {name[:40]!r} is not defined in :bonedata", "define or correct it"
                )
        for name in names:
            if name in placed:
                raise line.error(
                    f"{name!r} can have one parent only, and the root none",
                    "remove it from all lines but one",
                )
            placed.add(name)
        children.setdefault(parent, []).extend(names)
    return children


def _check_connected(
    bones: list[Bone], reached: set[str], children: dict[str, list[str]], lines: list[Line]
) -> None:
    """Reject bones outside the tree: without a parent, or on a cycle."""
    unreachable = [bone for bone in bones if bone.name not in reached]
    if not unreachable:
        return
    children_names = {child for names in children.values() for child in names}
    for bone in unreachable:
        if bone.name not in children_names:
            raise bone.line.error(
                f"bone {bone.name!r} has no parent in :hierarchy", "add it there or remove it"
            )
    cyclic = {bone.name for bone in unreachable}
    line = next(line for line in lines if line.words[0] in cyclic)
    raise line.error(
        f"bone {line.words[0]!r} hangs on itself through a cycle and not on the root",
        "correct the hierarchy",
    )


_METRES_PER_INCH = 0.0254
_ROOT_CHANNELS = ("tx", "ty", "tz", "rx", "ry", "rz")


class _Section(NamedTuple):
    head: Line
    body: list[Line]


class _Units(NamedTuple):
    meters: float
    degrees: bool


@dataclass(frozen=True)
class AsfRoot:
    """Position and orientation of the root.

    Parameters
    ----------
    order : tuple of str
        "tx" to "rz" in the order of the values of a frame.
    position, orientation : tuple of float
        At rest; the orientation as Euler angles of its coordinate system.
    axes : str
        The order of rotations of ``orientation``.
    """

    order: tuple[str, ...]
    position: tuple[float, ...]
    orientation: tuple[float, ...]
    axes: str


@dataclass(frozen=True)
class AsfSkeleton:
    """Contents of an ASF file.

    Parameters
    ----------
    skeleton : Skeleton
        Joint 0 is the root, joint j the far end of bone j − 1.
    root : AsfRoot
    bones : tuple of Bone
        Depth first from the root.
    metres_per_unit : float
    degrees : bool
        Unit of angles: degrees or radians.
    """

    skeleton: Skeleton
    root: AsfRoot
    bones: tuple[Bone, ...]
    metres_per_unit: float
    degrees: bool


def read_asf(path: str | Path) -> AsfSkeleton:
    """Read the skeleton of an ASF file."""
    sections = _sections(read_lines(path))
    units = _units(sections.get("units"))
    root = _root(sections["root"])
    bones = read_bones(sections["bonedata"].body)
    check_joints(len(bones) + 1, sections["bonedata"].head)
    tree = order_bones(sections["hierarchy"].body, bones)
    skeleton = Skeleton(
        ("root", *(bone.name for bone, _ in tree)),
        np.array([-1, *(parent for _, parent in tree)]),
        np.array([(0.0, 0.0, 0.0), *(bone.offset for bone, _ in tree)]),
    )
    return AsfSkeleton(skeleton, root, tuple(bone for bone, _ in tree), units.meters, units.degrees)


def _sections(lines: list[Line]) -> dict[str, _Section]:
    """Group lines by ``:keyword``, without comments and blank lines."""
    sections: dict[str, _Section] = {}
    body: list[Line] | None = None
    for line in lines:
        text = line.text.strip()
        if not text or text.startswith("#"):
            continue
        if text.startswith(":"):
            name = text[1:].split(maxsplit=1)[0].lower() if text != ":" else ""
            if name in sections:
                raise line.error(f"a second section :{name[:40]}", "leave out one of them")
            body = []
            sections[name] = _Section(line, body)
        elif body is None:
            raise line.error(
                "an ASF file must start with a section such as ':version'", "pass an ASF file"
            )
        else:
            body.append(line)
    for name in ("root", "bonedata", "hierarchy"):
        _check_section(sections, name, lines[-1])
    return sections


def _check_section(sections: dict[str, _Section], name: str, last: Line) -> None:
    remedy = "add it or fetch the file again"
    if name not in sections:
        raise last.error(f"the file ends without a section :{name}", remedy)
    if not sections[name].body:
        raise sections[name].head.error(f"the section :{name} is empty", remedy)


def _units(section: _Section | None) -> _Units:
    """Parse units; lengths are inches divided by ``length``, which is 0.45 at CMU."""
    length, degrees = 1.0, True
    for line in section.body if section else []:
        keyword, *values = line.words
        if keyword.lower() == "length":
            (length,) = line.numbers(values, 1, "'length'")
            if not length > 1e-6:
                raise line.error(f"'length' must be positive, not {length:g}", "write 1.0")
        elif keyword.lower() == "angle":
            unit = values[0].lower() if len(values) == 1 else ""
            if unit not in {"deg", "rad"}:
                raise line.error("'angle' must be deg or rad", "write 'angle deg'")
            degrees = unit == "deg"
    return _Units(_METRES_PER_INCH / length, degrees)


def _root(section: _Section) -> AsfRoot:
    order: tuple[str, ...] = ()
    axes = "xyz"
    numbers = {"position": [0.0] * 3, "orientation": [0.0] * 3}
    for line in section.body:
        keyword, *values = line.words
        match keyword.lower():
            case "order":
                order = _order(line, values)
            case "axis" if len(values) == 1:
                axes = axis_order(line, values[0])
            case "position" | "orientation" as name:
                numbers[name] = line.numbers(values, 3, f"'{name}'")
            case _:
                raise line.error(
                    "the root has order, axis XYZ, position and orientation only",
                    "correct or remove the line",
                )
    if not order:
        raise section.head.error("the root has no 'order'", "add 'order TX TY TZ RX RY RZ'")
    return AsfRoot(order, tuple(numbers["position"]), tuple(numbers["orientation"]), axes)


def _order(line: Line, words: list[str]) -> tuple[str, ...]:
    order = tuple(word.lower() for word in words)
    if not order or len(set(order)) < len(order) or not set(order) <= set(_ROOT_CHANNELS):
        raise line.error(
            "'order' must name TX TY TZ RX RY RZ, each once at most", "correct the line"
        )
    return order
