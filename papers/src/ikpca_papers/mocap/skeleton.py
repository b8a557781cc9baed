"""Skeletons, motions and forward kinematics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.kernels import Floats


@dataclass(frozen=True, eq=False)
class Skeleton:
    """Joints and the bones between them.

    Parameters
    ----------
    names : tuple of str
        One per joint, all different; joint 0 is the root.
    parents : array of int, shape (joints,)
        Parent of every joint; −1 for the root. A parent comes before its children.
    offsets : array of shape (joints, 3)
        From parent to joint at rest; zero for the root.

    Examples
    --------
    >>> from ikpca_papers.mocap import Skeleton
    >>> names = ("shoulder", "elbow", "wrist")
    >>> arm = Skeleton(names, [-1, 0, 1], [[0, 0, 0], [3, 0, 4], [0, 2, 0]])
    >>> arm.bone_lengths
    array([0., 5., 2.])
    """

    names: tuple[str, ...]
    parents: NDArray[np.intp]
    offsets: Floats

    def __post_init__(self) -> None:
        names = tuple(self.names)
        parents = _read_only_copy(self.parents, np.intp)
        offsets = _read_only_copy(self.offsets, np.float64)
        if parents.shape != (len(names),) or offsets.shape != (len(names), 3) or not names:
            raise InvalidInput(
                f"names, parents and offsets have {len(names)}, {parents.shape} and "
                f"{offsets.shape} entries: a skeleton has one name, one parent and three "
                "coordinates per joint; pass as many of each."
            )
        if len(set(names)) < len(names):
            raise invalid_parameter("names", names, "must all be different", "rename the joints")
        if parents[0] != -1 or np.any(parents[1:] < 0) or np.any(parents >= np.arange(len(names))):
            raise invalid_parameter(
                "parents", parents.tolist(), "must be −1 first, then an earlier joint each",
                "sort the joints from the root outwards",
            )  # fmt: skip
        if not np.isfinite(offsets).all():
            raise InvalidInput("offsets contain NaN or infinity; pass finite lengths.")
        for name, value in (("names", names), ("parents", parents), ("offsets", offsets)):
            object.__setattr__(self, name, value)

    @property
    def bone_lengths(self) -> Floats:
        """Distance of every joint from its parent; 0 for the root."""
        return np.linalg.norm(self.offsets, axis=1)


@dataclass(frozen=True, eq=False)
class Motion:
    """Positions of the joints of a skeleton in every frame.

    Parameters
    ----------
    skeleton : Skeleton
    positions : array of shape (frames, joints, 3)
        y is up.
    frame_rate : float
        Frames per second.
    metres_per_unit : float or None
        Unit of length; None if it is unknown.

    Examples
    --------
    >>> from ikpca_papers.mocap import Motion, Skeleton
    >>> stick = Skeleton(("root", "tip"), [-1, 0], [[0, 0, 0], [0, 1, 0]])
    >>> motion = Motion(stick, [[[0, 0, 0], [0, 1, 0]], [[1, 0, 0], [1, 1, 0]]], frame_rate=2.0)
    >>> motion.n_frames, motion.seconds, motion.bone_lengths()[:, 1]
    (2, 1.0, array([1., 1.]))
    """

    skeleton: Skeleton
    positions: Floats
    frame_rate: float
    metres_per_unit: float | None = None

    def __post_init__(self) -> None:
        positions = _read_only_copy(self.positions, np.float64)
        expected = (len(self.skeleton.names), 3)
        if positions.ndim != 3 or positions.shape[1:] != expected or not len(positions):
            raise InvalidInput(
                f"positions of shape {positions.shape}: must be (frames, {expected[0]}, 3) for "
                "this skeleton, with one frame or more; pass joint positions."
            )
        if not np.isfinite(positions).all():
            raise InvalidInput("positions contain NaN or infinity; leave out or fill such frames.")
        for name in ("frame_rate", "metres_per_unit"):
            value = getattr(self, name)
            if value is not None and not 0 < value < np.inf:
                raise invalid_parameter(
                    name, value, "must be positive and finite", "pass 120.0 or 1.0, say"
                )
        object.__setattr__(self, "positions", positions)

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return len(self.positions)

    @property
    def seconds(self) -> float:
        """Duration."""
        return self.n_frames / self.frame_rate

    def bone_lengths(self) -> Floats:
        """Distances of joints from their parents in every frame, shape (frames, joints)."""
        near = self.positions[:, np.maximum(self.skeleton.parents, 0)]
        return np.linalg.norm(self.positions - near, axis=2)

    def with_positions(self, positions: ArrayLike) -> Self:
        """Return the motion with other positions, such as noisy or denoised ones."""
        return replace(self, positions=np.asarray(positions))


def _read_only_copy(values: Any, dtype: Any) -> NDArray[Any]:
    copy = np.array(values, dtype=dtype)
    copy.flags.writeable = False
    return copy


def euler(axes: str, angles: Floats) -> Floats:
    """Rotation matrices of Euler angles about fixed axes, the first axis applied first.

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
        rotation = _rotation_about(axis, angles[..., column]) @ rotation
    return rotation


def _rotation_about(axis: str, angle: Floats) -> Floats:
    first, second = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    rotation = np.zeros((*angle.shape, 3, 3))
    rotation[...] = np.eye(3)
    rotation[..., first, first] = rotation[..., second, second] = np.cos(angle)
    rotation[..., second, first] = np.sin(angle)
    rotation[..., first, second] = -np.sin(angle)
    return rotation


def global_rotations(parents: NDArray[np.intp], local: Floats) -> Floats:
    """Compute G = G_parent · L for every joint; ``local`` has shape (frames, joints, 3, 3)."""
    result = local.copy()
    for joint, parent in enumerate(parents[1:], start=1):
        result[:, joint] = result[:, parent] @ local[:, joint]
    return result


def chain_bones(parents: NDArray[np.intp], root: Floats, bones: Floats) -> Floats:
    """Sum bones along the skeleton to positions.

    Parameters
    ----------
    parents : array of shape (joints,)
        Each before its children.
    root : array of shape (frames, 3)
        Positions of joint 0.
    bones : array of shape (frames, joints, 3)
        Vectors from parent to joint.

    Returns
    -------
    array of shape (frames, joints, 3)
    """
    positions = bones.copy()
    positions[:, 0] = root
    for joint, parent in enumerate(parents[1:], start=1):
        positions[:, joint] += positions[:, parent]
    return positions


def body_centered(motion: Motion) -> Motion:
    """Subtract the position of the root from every joint.

    Parameters
    ----------
    motion : Motion

    Returns
    -------
    Motion

    Examples
    --------
    >>> from ikpca_papers.mocap import body_centered, synthetic_walker
    >>> centered = body_centered(synthetic_walker(frames=10))
    >>> float(abs(centered.positions[:, 0]).max())
    0.0
    """
    return motion.with_positions(motion.positions - motion.positions[:, :1])


def in_metres(motion: Motion, metres_per_unit: float | None = None) -> Motion:
    """Scale lengths to meters.

    Parameters
    ----------
    motion : Motion
    metres_per_unit : float, optional
        Required if the motion has no unit, as from BVH files.

    Returns
    -------
    Motion

    Examples
    --------
    >>> from ikpca_papers.mocap import Motion, Skeleton, in_metres
    >>> stick = Skeleton(("root", "tip"), [-1, 0], [[0, 0, 0], [0, 30, 0]])
    >>> motion = Motion(stick, [[[0, 0, 0], [0, 30, 0]]], frame_rate=120.0)
    >>> in_metres(motion, 0.01).positions[0, 1]
    array([0. , 0.3, 0. ])
    """
    unit = motion.metres_per_unit if metres_per_unit is None else metres_per_unit
    if unit is None:
        raise invalid_parameter(
            "metres_per_unit", None, "the file does not contain the unit of length",
            "pass metres_per_unit; CMU's recordings have 0.0254 / 0.45",
        )  # fmt: skip
    if not 0 < unit < np.inf:
        raise invalid_parameter(
            "metres_per_unit", unit, "must be positive and finite", "pass 0.01 for cm"
        )
    return replace(
        motion,
        skeleton=replace(motion.skeleton, offsets=unit * motion.skeleton.offsets),
        positions=unit * motion.positions,
        metres_per_unit=1.0,
    )


def with_noise(motion: Motion, scale: float, seed: int) -> Motion:
    """Add independent Gaussian noise to every coordinate of every joint.

    Parameters
    ----------
    motion : Motion
    scale : float
        Standard deviation, in the motion's unit of length.
    seed : int
        The same seed gives the same noise.

    Returns
    -------
    Motion

    Examples
    --------
    >>> from ikpca_papers.mocap import synthetic_walker, with_noise
    >>> walk = synthetic_walker(frames=200)
    >>> noisy = with_noise(walk, 0.05, seed=0)
    >>> round(float((noisy.positions - walk.positions).std()), 2)
    0.05
    """
    if not 0 <= scale < np.inf:
        raise invalid_parameter("scale", scale, "must be finite and not negative", "pass 0.05, say")
    noise = np.random.default_rng(seed).normal(size=motion.positions.shape)
    return motion.with_positions(motion.positions + scale * noise)


def as_rows(motion: Motion) -> Floats:
    """Return one row of 3 · joints coordinates per frame.

    Parameters
    ----------
    motion : Motion

    Returns
    -------
    ndarray of shape (frames, 3 · joints)

    Examples
    --------
    >>> from ikpca_papers.mocap import as_rows, synthetic_walker
    >>> as_rows(synthetic_walker(frames=10)).shape
    (10, 81)
    """
    return motion.positions.reshape(motion.n_frames, -1)


def from_rows(motion: Motion, rows: ArrayLike) -> Motion:
    """Return the motion with positions from rows, the inverse of :func:`as_rows`.

    Parameters
    ----------
    motion : Motion
        Source of skeleton and frame rate.
    rows : array of shape (frames, 3 · joints)

    Returns
    -------
    Motion

    Examples
    --------
    >>> from ikpca_papers.mocap import as_rows, from_rows, synthetic_walker
    >>> walk = synthetic_walker(frames=10)
    >>> bool((from_rows(walk, as_rows(walk)).positions == walk.positions).all())
    True
    """
    values = np.asarray(rows)
    width = 3 * len(motion.skeleton.names)
    if values.ndim != 2 or values.shape[1] != width:
        raise InvalidInput(
            f"rows of shape {values.shape}: this skeleton has {width} coordinates per frame; "
            "pass rows as as_rows returns them."
        )
    return motion.with_positions(values.reshape(len(values), -1, 3))
