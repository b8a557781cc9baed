"""BVH files: skeleton and frames in one."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ikpca.datasets.bvh_hierarchy import BvhJoint, read_hierarchy
from ikpca.datasets.kinematics import chain, euler, global_rotations
from ikpca.datasets.limits import check_size
from ikpca.datasets.lines import Line, read_lines
from ikpca.datasets.skeleton import Motion, Skeleton
from ikpca.kernels import Floats

__all__ = ["read_bvh"]

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
    >>> from ikpca.datasets import read_bvh
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
