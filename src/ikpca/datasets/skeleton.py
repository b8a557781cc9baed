"""A skeleton, and how it moved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ikpca.errors import InvalidInput, refuse
from ikpca.kernels import Floats

__all__ = ["Motion", "Skeleton"]


@dataclass(frozen=True, eq=False)
class Skeleton:
    """Joints and the bones between them.

    Parameters
    ----------
    names : tuple of str
        One per joint, all different; joint 0 is the root.
    parents : array of int, shape (joints,)
        The joint at the near end of the bone that ends in this one; −1 for the root. A parent comes
        before its children.
    offsets : array of shape (joints, 3)
        From parent to joint at rest; zero for the root.

    Examples
    --------
    >>> from ikpca.datasets import Skeleton
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
        parents = _frozen(self.parents, np.intp)
        offsets = _frozen(self.offsets, np.float64)
        if parents.shape != (len(names),) or offsets.shape != (len(names), 3) or not names:
            raise InvalidInput(
                f"names, parents and offsets have {len(names)}, {parents.shape} and "
                f"{offsets.shape} entries: a skeleton has one name, one parent and three "
                "coordinates per joint; pass as many of each."
            )
        if len(set(names)) < len(names):
            raise refuse("names", names, "must all be different", "rename the joints")
        if parents[0] != -1 or np.any(parents[1:] < 0) or np.any(parents >= np.arange(len(names))):
            raise refuse(
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
    """Where every joint of a skeleton was in every frame.

    Parameters
    ----------
    skeleton : Skeleton
    positions : array of shape (frames, joints, 3)
        y is up.
    frame_rate : float
        Frames per second.
    metres_per_unit : float or None
        What the lengths are measured in; None where the file does not say.

    Examples
    --------
    >>> from ikpca.datasets import Motion, Skeleton
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
        positions = _frozen(self.positions, np.float64)
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
                raise refuse(name, value, "must be positive and finite", "pass 120.0 or 1.0, say")
        object.__setattr__(self, "positions", positions)

    @property
    def n_frames(self) -> int:
        """How many frames."""
        return len(self.positions)

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return self.n_frames / self.frame_rate

    def bone_lengths(self) -> Floats:
        """Distances of joints from their parents in every frame, shape (frames, joints)."""
        near = self.positions[:, np.maximum(self.skeleton.parents, 0)]
        return np.linalg.norm(self.positions - near, axis=2)

    def with_positions(self, positions: ArrayLike) -> Self:
        """The same skeleton at the same pace elsewhere: noisy, denoised, centred."""
        return replace(self, positions=np.asarray(positions))


def _frozen(values: Any, dtype: Any) -> NDArray[Any]:
    """A copy that nobody can write to."""
    copy = np.array(values, dtype=dtype)
    copy.flags.writeable = False
    return copy
