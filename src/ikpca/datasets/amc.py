"""AMC files: the frames of the Acclaim format, for the skeleton of an ASF file."""

from __future__ import annotations

from collections.abc import Container
from itertools import chain as joined
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ikpca.datasets.asf import AsfSkeleton, read_asf
from ikpca.datasets.kinematics import chain, euler, global_rotations
from ikpca.datasets.limits import check_size
from ikpca.datasets.lines import Line, read_lines
from ikpca.datasets.skeleton import Motion
from ikpca.kernels import Floats

__all__ = ["read_asf_amc"]


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
    >>> from ikpca.datasets import read_asf_amc
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
