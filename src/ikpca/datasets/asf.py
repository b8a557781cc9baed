"""ASF files: the skeleton of the Acclaim format, whose frames are in AMC files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ikpca.datasets.bones import Bone, axis_order, read_bones
from ikpca.datasets.hierarchy import from_the_root
from ikpca.datasets.limits import check_joints
from ikpca.datasets.lines import Line, read_lines
from ikpca.datasets.skeleton import Skeleton

__all__ = ["AsfSkeleton", "read_asf"]

_METRES_PER_INCH = 0.0254
_ROOT_CHANNELS = ("tx", "ty", "tz", "rx", "ry", "rz")


class _Section(NamedTuple):
    head: Line
    body: list[Line]


class _Units(NamedTuple):
    metres: float
    degrees: bool


@dataclass(frozen=True)
class AsfRoot:
    """How the root is placed.

    Parameters
    ----------
    order : tuple of str
        "tx" to "rz" in the order of the values of a frame.
    position, orientation : tuple of float
        Where it rests, and the Euler angles of its coordinate system.
    axes : str
        The order of turning for ``orientation``.
    """

    order: tuple[str, ...]
    position: tuple[float, ...]
    orientation: tuple[float, ...]
    axes: str


@dataclass(frozen=True)
class AsfSkeleton:
    """All that an ASF file says about positions.

    Parameters
    ----------
    skeleton : Skeleton
        Joint 0 is the root, joint j the far end of bone j − 1.
    root : AsfRoot
    bones : tuple of Bone
        From the root outwards.
    metres_per_unit : float
    degrees : bool
        Whether angles are in degrees.
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
    tree = from_the_root(sections["hierarchy"].body, bones)
    skeleton = Skeleton(
        ("root", *(bone.name for bone, _ in tree)),
        np.array([-1, *(parent for _, parent in tree)]),
        np.array([(0.0, 0.0, 0.0), *(bone.offset for bone, _ in tree)]),
    )
    return AsfSkeleton(skeleton, root, tuple(bone for bone, _ in tree), units.metres, units.degrees)


def _sections(lines: list[Line]) -> dict[str, _Section]:
    """Lines with content by the ``:keyword`` they stand under; comments are left out."""
    sections: dict[str, _Section] = {}
    body: list[Line] | None = None
    for line in lines:
        text = line.text.strip()
        if not text or text.startswith("#"):
            continue
        if text.startswith(":"):
            name = text[1:].split(maxsplit=1)[0].lower() if text != ":" else ""
            if name in sections:
                raise line.fault(f"a second section :{name[:40]}", "leave out one of them")
            body = []
            sections[name] = _Section(line, body)
        elif body is None:
            raise line.fault(
                "an ASF file must start with a section such as ':version'", "pass an ASF file"
            )
        else:
            body.append(line)
    for name in ("root", "bonedata", "hierarchy"):
        _complete(sections, name, lines[-1])
    return sections


def _complete(sections: dict[str, _Section], name: str, last: Line) -> None:
    remedy = "add it or fetch the file again"
    if name not in sections:
        raise last.fault(f"the file ends without a section :{name}", remedy)
    if not sections[name].body:
        raise sections[name].head.fault(f"the section :{name} is empty", remedy)


def _units(section: _Section | None) -> _Units:
    """Lengths are inches divided by ``length``, which CMU sets to 0.45."""
    length, degrees = 1.0, True
    for line in section.body if section else []:
        keyword, *values = line.words
        if keyword.lower() == "length":
            (length,) = line.numbers(values, 1, "'length'")
            if not length > 1e-6:
                raise line.fault(f"'length' must be positive, not {length:g}", "write 1.0")
        elif keyword.lower() == "angle":
            unit = values[0].lower() if len(values) == 1 else ""
            if unit not in {"deg", "rad"}:
                raise line.fault("'angle' must be deg or rad", "write 'angle deg'")
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
                raise line.fault(
                    "the root has order, axis XYZ, position and orientation only",
                    "correct or remove the line",
                )
    if not order:
        raise section.head.fault("the root has no 'order'", "add 'order TX TY TZ RX RY RZ'")
    return AsfRoot(order, tuple(numbers["position"]), tuple(numbers["orientation"]), axes)


def _order(line: Line, words: list[str]) -> tuple[str, ...]:
    order = tuple(word.lower() for word in words)
    if not order or len(set(order)) < len(order) or not set(order) <= set(_ROOT_CHANNELS):
        raise line.fault(
            "'order' must name TX TY TZ RX RY RZ, each once at most", "correct the line"
        )
    return order
