"""Synthetic walk."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ikpca.errors import invalid_parameter
from ikpca.kernels import Floats
from ikpca_papers.mocap import Motion, euler, joint_positions

#: Parent and offset in meters of the joints of the trunk.
_TRUNK = {
    "pelvis": (None, (0.0, 0.0, 0.0)),
    "spine": ("pelvis", (0.0, 0.12, -0.01)),
    "chest": ("spine", (0.0, 0.16, -0.01)),
    "collar": ("chest", (0.0, 0.22, 0.0)),
    "neck": ("collar", (0.0, 0.06, 0.0)),
    "head": ("neck", (0.0, 0.10, 0.02)),
    "crown": ("head", (0.0, 0.13, 0.01)),
}
#: Joints of the left side; the right is its mirror image.
_SIDE = {
    "hip": ("pelvis", (0.09, -0.05, 0.0)),
    "knee": ("hip", (0.0, -0.43, 0.01)),
    "ankle": ("knee", (0.0, -0.42, -0.02)),
    "ball": ("ankle", (0.01, -0.07, 0.14)),
    "toes": ("ball", (0.0, 0.0, 0.07)),
    "shoulder": ("collar", (0.17, -0.02, 0.0)),
    "elbow": ("shoulder", (0.02, -0.30, 0.0)),
    "wrist": ("elbow", (0.0, -0.26, 0.0)),
    "knuckles": ("wrist", (0.0, -0.09, 0.01)),
    "fingertips": ("knuckles", (0.0, -0.09, 0.0)),
}
_PELVIS_HEIGHT = 0.965
#: Frames per second, seconds from one step of the left foot to the next, meters per second.
_FRAME_RATE, _STRIDE, _SPEED = 120.0, 1.1, 1.3


def synthetic_walker(frames: int = 360) -> Motion:
    """Synthesize a person of 1.7 m who walks along z, with bones of constant length.

    Parameters
    ----------
    frames : int, default=360
        At 120 frames per second; a stride has 132 frames.

    Returns
    -------
    Motion
        27 joints, in meters.

    Examples
    --------
    >>> from ikpca_papers.data import synthetic_walker
    >>> synthetic_walker(frames=240).positions.shape
    (240, 27, 3)
    """
    if not frames >= 1:
        raise invalid_parameter("frames", frames, "must be 1 or more", "pass 360 for three seconds")
    seconds = np.arange(frames) / _FRAME_RATE
    phase = 2 * np.pi * seconds / _STRIDE
    names, parents, offsets = _skeleton()
    # The rotation of a joint turns the bones to its children.
    rotations = np.stack([euler("xyz", _angles(names[p], phase)) for p in parents.clip(0)], axis=1)
    rotations[:, 0] = np.eye(3)
    # Highest when one leg is upright, twice per stride; sways towards the standing foot.
    height = _PELVIS_HEIGHT - 0.01 * np.cos(2 * phase)
    place = np.stack([0.02 * np.sin(phase), height, _SPEED * seconds], axis=1)
    positions = joint_positions(parents, place, rotations, offsets)
    return Motion(names, parents, np.linalg.norm(offsets, axis=1), positions, _FRAME_RATE, 1.0)


def _skeleton() -> tuple[tuple[str, ...], NDArray[np.intp], Floats]:
    """Return names, parents and offsets of the joints."""
    joints = dict(_TRUNK)
    for side, mirror in (("left", 1.0), ("right", -1.0)):
        for name, (parent, (x, y, z)) in _SIDE.items():
            holder = parent if parent in _TRUNK else f"{side} {parent}"
            joints[f"{side} {name}"] = (holder, (mirror * x, y, z))
    names = tuple(joints)
    parents = [-1 if parent is None else names.index(parent) for parent, _ in joints.values()]
    return names, np.array(parents), np.array([offset for _, offset in joints.values()])


def _angles(name: str, phase: Floats) -> Floats:
    """Rotations of a joint about x (forward is negative), y and z, in radians."""
    side, _, joint = name.rpartition(" ")
    # The legs differ by half a stride; the right side mirrors the left.
    own = phase + (np.pi if side == "right" else 0.0)
    outwards = -1.0 if side == "right" else 1.0
    x, y, z = _ROTATIONS[joint](own) if joint in _ROTATIONS else (0.0, 0.0, 0.0)
    return np.stack(np.broadcast_arrays(x, outwards * y, outwards * z, phase)[:3], axis=1)


def _bump(phase: Floats, at: float, width: float) -> Floats:
    """Smooth peak of height 1 at a fraction of the stride, nearly 0 elsewhere."""
    return np.exp((np.cos(phase - 2 * np.pi * at) - 1) / width**2)


#: Rotations about x, y and z of each joint; phase 0 is the heel strike of its side.
_ROTATIONS: dict[str, Callable[[Floats], tuple[Floats | float, ...]]] = {
    "pelvis": lambda p: (0.02 * np.sin(2 * p), -0.09 * np.cos(p), 0.05 * np.sin(p)),
    # Spine and chest rotate against the pelvis, by a little more.
    "spine": lambda p: (0.03 - 0.01 * np.sin(2 * p), 0.08 * np.cos(p), -0.03 * np.sin(p)),
    "chest": lambda p: (0.03 - 0.01 * np.sin(2 * p), 0.08 * np.cos(p), -0.03 * np.sin(p)),
    "neck": lambda p: (0.02 * np.cos(2 * p) - 0.03, -0.07 * np.cos(p), 0.01 * np.sin(p)),
    "hip": lambda p: (-0.15 - 0.37 * np.cos(p), 0.0, 0.0),
    # Bends a little under the weight, and far while the leg swings.
    "knee": lambda p: (0.08 + 0.25 * _bump(p, 0.14, 0.5) + 0.95 * _bump(p, 0.72, 0.55), 0.0, 0.0),
    "ankle": lambda p: (0.35 * _bump(p, 0.64, 0.4) - 0.15 * _bump(p, 0.42, 0.6), 0.0, 0.03),
    "ball": lambda p: (-0.45 * _bump(p, 0.58, 0.4), 0.0, 0.0),
    # An arm swings against the leg of its side.
    "shoulder": lambda p: (0.35 * np.cos(p) - 0.02, 0.05 * np.cos(p), 0.08),
    "elbow": lambda p: (0.15 * np.cos(p - 0.4) - 0.35, 0.0, 0.0),
    "wrist": lambda p: (0.06 * np.sin(p) - 0.1, 0.0, 0.0),
}
