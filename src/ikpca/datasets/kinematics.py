"""From joint angles to joint positions, all frames at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ikpca.kernels import Floats

__all__ = ["chain", "euler", "global_rotations"]


def euler(axes: str, angles: Floats) -> Floats:
    """Rotation matrices of Euler angles about fixed axes, the first axis turned about first.

    Parameters
    ----------
    axes : str
        Letters of "xyz"; "xyz" gives R = Rz Ry Rx.
    angles : array of shape (..., len(axes))
        In radians.

    Returns
    -------
    array of shape (..., 3, 3)
    """
    rotation = np.broadcast_to(np.eye(3), (*angles.shape[:-1], 3, 3))
    for column, axis in enumerate(axes):
        rotation = _about(axis, angles[..., column]) @ rotation
    return rotation


def _about(axis: str, angle: Floats) -> Floats:
    first, second = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    rotation = np.zeros((*angle.shape, 3, 3))
    rotation[...] = np.eye(3)
    rotation[..., first, first] = rotation[..., second, second] = np.cos(angle)
    rotation[..., second, first] = np.sin(angle)
    rotation[..., first, second] = -np.sin(angle)
    return rotation


def global_rotations(parents: NDArray[np.intp], local: Floats) -> Floats:
    """G = G_parent · L for every joint; ``local`` has shape (frames, joints, 3, 3)."""
    result = local.copy()
    for joint, parent in enumerate(parents[1:], start=1):
        result[:, joint] = result[:, parent] @ local[:, joint]
    return result


def chain(parents: NDArray[np.intp], root: Floats, bones: Floats) -> Floats:
    """Put bones end to end.

    Parameters
    ----------
    parents : array of shape (joints,)
        Each before its children.
    root : array of shape (frames, 3)
        Positions of joint 0.
    bones : array of shape (frames, joints, 3)
        From parent to joint, as it points in the frame.

    Returns
    -------
    array of shape (frames, joints, 3)
    """
    positions = bones.copy()
    positions[:, 0] = root
    for joint, parent in enumerate(parents[1:], start=1):
        positions[:, joint] += positions[:, parent]
    return positions
